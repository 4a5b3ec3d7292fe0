import { concatBytes } from "../base/bytes.ts";
import type { Logger } from "../base/log.ts";
import type { BoundPod } from "../kube/types.ts";
import { textLimits } from "../kube/yaml_tree.ts";
import { readStream } from "./manifest.ts";
import type { PodSource } from "./source.ts";

/** The pod manifest path that stands for standard input. */
export const stdinPath = "-";

/** What the standard input source needs. */
export interface StdinSourceOptions {
  readonly stdin: ReadableStream<Uint8Array>;
  readonly log: Logger;
  readonly nodeName: string;
  /** Gate PreventStaticPodAPIReferences; default true. */
  readonly preventApiReferences?: boolean;
}

/**
 * Static pods from standard input: `--pod-manifest-path=-`, our own addition, taken as a file source with the path `-`.
 * The documents, separated by `---`, are pods or lists; they are read to the end of the input, for until then it isn't
 * known which pods are wanted, and then never change. A bad document is logged and left out.
 */
export class StdinSource implements PodSource {
  readonly name = "file";
  readonly #options: StdinSourceOptions;
  readonly #problems = new Map<string, string>();

  constructor(options: StdinSourceOptions) {
    this.#options = options;
  }

  get problems(): ReadonlyMap<string, string> {
    return this.#problems;
  }

  async run(signal: AbortSignal, emit: (pods: readonly BoundPod[]) => void): Promise<void> {
    const { log, nodeName, preventApiReferences } = this.#options;
    const text = await this.#readAll(signal);
    if (text === undefined || signal.aborted) return;
    const { pods, warnings, errors } = readStream(text, {
      origin: { source: "file", path: stdinPath },
      nodeName,
      ...(preventApiReferences === undefined ? {} : { preventApiReferences }),
    });
    for (const warning of warnings) log.warn("Manifest", { path: "standard input", warning });
    errors.forEach((error, i) => this.#problem(`standard input, problem ${i + 1}`, error.message));
    emit(pods);
  }

  #problem(where: string, problem: string): void {
    this.#problems.set(where, problem);
    this.#options.log.error("Manifest can't be used", { path: where, problem });
  }

  /** The whole input; undefined when it was called off or is too long. */
  async #readAll(signal: AbortSignal): Promise<Uint8Array | undefined> {
    const reader = this.#options.stdin.getReader();
    const onAbort = () => void reader.cancel().catch(() => {}); // the read below ends, which is all that is wanted
    if (signal.aborted) onAbort();
    signal.addEventListener("abort", onAbort, { once: true });
    const chunks: Uint8Array[] = [];
    let size = 0;
    try {
      while (true) {
        const { done, value } = await reader.read();
        if (done) return concatBytes(chunks);
        size += value.length;
        if (size >= textLimits.bytes) {
          this.#problem("standard input", `is longer than ${textLimits.bytes} bytes; split it into files`);
          await reader.cancel();
          return undefined;
        }
        chunks.push(value);
      }
    } finally {
      signal.removeEventListener("abort", onAbort);
      reader.releaseLock();
    }
  }
}
