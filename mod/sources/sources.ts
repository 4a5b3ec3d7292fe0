import { Channel } from "../base/channel.ts";
import type { Clock } from "../base/clock.ts";
import type { Host } from "../base/host.ts";
import type { Logger } from "../base/log.ts";
import type { Scope } from "../base/scope.ts";
import type { EventSink } from "../kube/events.ts";
import { podFullName } from "../kube/pod.ts";
import type { BoundPod } from "../kube/types.ts";
import { FileSource } from "./file.ts";
import { type FetchLike, HttpSource } from "./http.ts";
import { type Duplicate, Merger } from "./merge.ts";
import type { PodSource } from "./source.ts";
import { stdinPath, StdinSource } from "./stdin.ts";
import type { PodChange, PodSources, SourceName } from "./types.ts";

/** The configuration fields that choose the sources (config.md); durations in milliseconds. */
export interface SourcesConfig {
  /** Directory, file, or `-` for standard input; empty or absent for none. */
  readonly staticPodPath?: string;
  readonly fileCheckFrequencyMs: number;
  /** Empty or absent for none. */
  readonly staticPodURL?: string;
  readonly staticPodURLHeader?: Readonly<Record<string, readonly string[]>>;
  readonly httpCheckFrequencyMs: number;
}

/** What the sources need. */
export interface SourcesOptions {
  readonly host: Pick<Host, "stat" | "lstat" | "readDir" | "readBytes" | "watch">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events?: EventSink;
  readonly nodeName: string;
  readonly config: SourcesConfig;
  /** Needed with a staticPodURL. */
  readonly fetch?: FetchLike;
  /** Needed with the path `-`. */
  readonly stdin?: ReadableStream<Uint8Array>;
  /** Gate PreventStaticPodAPIReferences; default true. */
  readonly preventApiReferences?: boolean;
  /** More sources, such as the API server's. */
  readonly more?: readonly PodSource[];
}

/** The merged stream with its engine. */
export interface Sources extends PodSources {
  /** Starts every source in the scope; to be called once. */
  run(scope: Scope): void;
  /** What is wrong with manifests now, by file or URL, in words for an operator. */
  problems(): ReadonlyMap<string, string>;
}

/**
 * Makes the sources that the configuration names and merges them into one stream (features.md B1–B5). The stream has
 * one consumer. A source's first state is always given out, as an empty batch when it wants nothing, so that the
 * consumer wakes; `allReady` turns true just before the last of these first batches is handed over.
 */
export function createSources(options: SourcesOptions): Sources {
  return new MergedSources(options, makeSources(options));
}

function makeSources(options: SourcesOptions): PodSource[] {
  const { host, clock, log, nodeName, config, preventApiReferences } = options;
  const shared = { log, nodeName, ...(preventApiReferences === undefined ? {} : { preventApiReferences }) };
  const sources: PodSource[] = [];
  if (config.staticPodPath === stdinPath) {
    const stdin = options.stdin ?? new Blob([]).stream();
    sources.push(new StdinSource({ ...shared, stdin }));
  } else if (config.staticPodPath) {
    const path = config.staticPodPath;
    sources.push(new FileSource({ ...shared, host, clock, path, periodMs: config.fileCheckFrequencyMs }));
  }
  if (config.staticPodURL) {
    sources.push(
      new HttpSource({
        ...shared,
        clock,
        fetch: options.fetch ?? fetch,
        url: config.staticPodURL,
        headers: config.staticPodURLHeader ?? {},
        periodMs: config.httpCheckFrequencyMs,
      }),
    );
  }
  return [...sources, ...(options.more ?? [])];
}

interface Batch {
  readonly source: SourceName;
  readonly changes: readonly PodChange[];
}

class MergedSources implements Sources {
  readonly #options: SourcesOptions;
  readonly #sources: readonly PodSource[];
  readonly #merger: Merger;
  readonly #batches = new Channel<Batch>();
  /** Sources that were read, and those whose first batch was handed over. */
  readonly #read = new Set<SourceName>();
  readonly #ready = new Set<SourceName>();

  constructor(options: SourcesOptions, sources: readonly PodSource[]) {
    this.#options = options;
    this.#sources = sources;
    this.#merger = new Merger({ clock: options.clock, onDuplicate: (duplicate) => this.#duplicate(duplicate) });
  }

  get allReady(): boolean {
    return this.#sources.every(({ name }) => this.#ready.has(name));
  }

  run(scope: Scope): void {
    for (const source of this.#sources) {
      scope.spawn(`source ${source.name}`, (signal) =>
        source.run(signal, (pods) => {
          const changes = this.#merger.apply({ source: source.name, pods });
          const first = !this.#read.has(source.name);
          this.#read.add(source.name);
          if (first || changes.length > 0) this.#batches.push({ source: source.name, changes });
        }));
    }
  }

  async *changes(signal: AbortSignal): AsyncGenerator<readonly PodChange[]> {
    for await (const { source, changes } of this.#batches.values(signal)) {
      this.#ready.add(source);
      yield changes;
    }
  }

  problems(): ReadonlyMap<string, string> {
    const leftOut = this.#merger.duplicates.map((duplicate): [string, string] => {
      const { source, pod, same, kept } = duplicate;
      const by = this.#fileOf(kept) ?? `the pod ${shownPod(kept)}`;
      const text = `its pod is left out, as ${by} has the same ${same} ${named(duplicate)}; change one of the two`;
      return [this.#fileOf(pod) ?? `${source}: ${shownPod(pod)}`, text];
    });
    return new Map([...leftOut, ...this.#sources.flatMap(({ problems }) => [...problems])]);
  }

  #fileOf(pod: BoundPod): string | undefined {
    return this.#sources.map((source) => source.fileOf?.(pod)).find((path) => path !== undefined);
  }

  #duplicate(duplicate: Duplicate): void {
    const { source, pod, same, kept } = duplicate;
    const { log, events } = this.#options;
    const [path, keptPath] = [this.#fileOf(pod), this.#fileOf(kept)];
    log.error("A pod is left out because another one has its name or UID; change one of the two manifests", {
      source,
      pod: shownPod(pod),
      same,
      kept: shownPod(kept),
      ...(path === undefined ? {} : { path }),
      ...(keptPath === undefined ? {} : { keptPath }),
    });
    events?.pod({
      pod,
      type: "Warning",
      reason: "FailedValidation",
      message: `Error validating pod ${shownPod(pod)} from ${source} due to duplicate pod ${same} ${
        named(duplicate)
      }, ignoring`,
    });
  }
}

function shownPod(pod: BoundPod): string {
  return `${podFullName(pod)}(${pod.metadata.uid})`;
}

/** The name or UID that both pods of a duplicate have. */
function named({ pod, same }: Duplicate): string {
  return JSON.stringify(same === "name" ? pod.metadata.name : pod.metadata.uid);
}
