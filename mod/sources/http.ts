import { concatBytes } from "../base/bytes.ts";
import type { Clock } from "../base/clock.ts";
import { Deadline } from "../base/deadline.ts";
import { asError, isAborted, KubeletError, messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import type { BoundPod } from "../kube/types.ts";
import { textLimits } from "../kube/yaml_tree.ts";
import { readPodOrList } from "./manifest.ts";
import type { PodSource } from "./source.ts";
import { redactUrl } from "./static_pod.ts";

/** The part of `fetch` that the source uses. */
export type FetchLike = (
  url: string,
  init: { method: "GET"; headers: Headers; signal: AbortSignal },
) => Promise<Response>;

/** What the URL source needs. */
export interface HttpSourceOptions {
  readonly fetch: FetchLike;
  readonly clock: Clock;
  readonly log: Logger;
  readonly nodeName: string;
  readonly url: string;
  /** staticPodURLHeader: each name with its values. */
  readonly headers?: Readonly<Record<string, readonly string[]>>;
  /** Milliseconds from the end of one poll to the next (httpCheckFrequency, default 20 s). */
  readonly periodMs: number;
  /** Gate PreventStaticPodAPIReferences; default true. */
  readonly preventApiReferences?: boolean;
}

/** Milliseconds for one poll, the body included. */
const timeoutMs = 10_000;
/** Failures in a row that are logged for all; later ones are details. */
const loudFailures = 3;

/**
 * Static pods from a URL that is polled (features.md B2, pkg/kubelet/config/http.go). An empty answer means no pods. A
 * failure, a bad status or a bad answer says nothing, so the pods stay; the same answer is not read twice.
 */
export class HttpSource implements PodSource {
  readonly name = "http";
  readonly #options: HttpSourceOptions;
  readonly #problems = new Map<string, string>();
  readonly #shownUrl: string;
  #failures = 0;
  /** The last answer and, when it was no good, why. */
  #last: { body: Uint8Array; problem?: KubeletError } | undefined;

  constructor(options: HttpSourceOptions) {
    this.#options = options;
    this.#shownUrl = redactUrl(options.url);
  }

  get problems(): ReadonlyMap<string, string> {
    return this.#problems;
  }

  async run(signal: AbortSignal, emit: (pods: readonly BoundPod[]) => void): Promise<void> {
    const { clock, periodMs } = this.#options;
    try {
      while (true) {
        await this.poll(signal, emit);
        await clock.sleep(periodMs, signal);
      }
    } catch (thrown) {
      if (!isAborted(thrown)) throw thrown;
    }
  }

  /** Asks once. Failures are logged and kept as the source's problem; only an abort is thrown. */
  async poll(signal: AbortSignal, emit: (pods: readonly BoundPod[]) => void): Promise<void> {
    try {
      const body = await this.#fetch(signal);
      if (body.length === 0) {
        emit([]);
        this.#last = undefined;
        throw new KubeletError("BadManifest", `${this.#shownUrl}: the answer is empty; an empty PodList means no pods`);
      }
      const pods = this.#read(body);
      if (pods) emit(pods);
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      this.#failed(asError(thrown));
      return;
    }
    if (this.#failures > 0) this.#options.log.info("Read the static pods from the URL", { url: this.#shownUrl });
    this.#failures = 0;
    this.#problems.clear();
  }

  /** The pods of an answer; undefined when it is the one already known. */
  #read(body: Uint8Array): readonly BoundPod[] | undefined {
    const { url, nodeName, log, preventApiReferences } = this.#options;
    const last = this.#last;
    if (last && last.body.length === body.length && last.body.every((byte, i) => byte === body[i])) {
      if (last.problem) throw last.problem;
      return undefined;
    }
    try {
      const { pods, warnings } = readPodOrList(body, {
        origin: { source: "http", url },
        nodeName,
        ...(preventApiReferences === undefined ? {} : { preventApiReferences }),
      });
      for (const warning of warnings) log.warn("Manifest", { url: this.#shownUrl, warning });
      this.#last = { body };
      return pods;
    } catch (thrown) {
      if (thrown instanceof KubeletError) this.#last = { body, problem: thrown };
      throw thrown;
    }
  }

  async #fetch(signal: AbortSignal): Promise<Uint8Array> {
    const { clock, fetch, url } = this.#options;
    using limit = new Deadline({ clock, signal, ms: timeoutMs, what: `${this.#shownUrl}: no answer` });
    try {
      const response = await fetch(url, { method: "GET", headers: this.#headers(), signal: limit.signal });
      if (response.status !== 200) {
        await response.body?.cancel();
        const status = `${response.status} ${response.statusText}`.trim();
        throw new KubeletError("Network", `${this.#shownUrl}: the server answered ${status}; 200 is needed`);
      }
      return await readAll(response, this.#shownUrl);
    } catch (thrown) {
      if (limit.over) throw limit.signal.reason;
      if (thrown instanceof KubeletError) throw thrown;
      throw new KubeletError("Network", `${this.#shownUrl}: ${messageOf(thrown)}`, { cause: thrown });
    } finally {
      // What is left of an answer that nobody reads on.
      limit.end();
    }
  }

  #headers(): Headers {
    const headers = new Headers();
    for (const [name, values] of Object.entries(this.#options.headers ?? {})) {
      for (const value of values) headers.append(name, value);
    }
    return headers;
  }

  #failed(error: Error): void {
    const { log } = this.#options;
    this.#problems.set(this.#shownUrl, error.message);
    const fields = { url: this.#shownUrl, error: error.message };
    if (this.#failures < loudFailures) log.warn("Reading the static pods from the URL failed", fields);
    else if (this.#failures === loudFailures) {
      log.warn("Reading the static pods from the URL still fails; further failures are shown at -v=4 only", fields);
    } else log.detail(4, "Reading the static pods from the URL failed", fields);
    this.#failures++;
  }
}

/** The body of an answer, up to the size of a manifest. */
async function readAll(response: Response, url: string): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of response.body ?? []) {
    size += chunk.length;
    if (size >= textLimits.bytes) {
      throw new KubeletError("BadManifest", `${url}: the answer is longer than ${textLimits.bytes} bytes`);
    }
    chunks.push(chunk);
  }
  return concatBytes(chunks);
}
