import { Channel } from "../base/channel.ts";
import type { Clock } from "../base/clock.ts";
import { isAborted, KubeletError, messageOf } from "../base/errors.ts";
import type { FileInfo, Host } from "../base/host.ts";
import { isMissing } from "../base/host_error.ts";
import type { Logger } from "../base/log.ts";
import type { BoundPod } from "../kube/types.ts";
import { textLimits } from "../kube/yaml_tree.ts";
import { readPod } from "./manifest.ts";
import type { PodSource } from "./source.ts";

/** Why a look at the files is taken. */
export type Look = "watch" | "period";

/** What the file source needs. */
export interface FileSourceOptions {
  readonly host: Pick<Host, "stat" | "lstat" | "readDir" | "readBytes" | "watch">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly nodeName: string;
  /** A directory of manifests, or one manifest. */
  readonly path: string;
  /** Milliseconds between looks that don't depend on events (fileCheckFrequency, default 20 s). */
  readonly periodMs: number;
  /** Gate PreventStaticPodAPIReferences; default true. */
  readonly preventApiReferences?: boolean;
}

/** Milliseconds to wait after an event, so that a burst of them (an editor, a copy) is one look; a pod's start waits too. */
const settleMs = 5;
/** Milliseconds before a broken watch is tried again: the first time, and at most. */
const watchRetryMs = 1000;
const watchRetryMaxMs = 20_000;

/** Milliseconds between the first looks, and how many there are at most, while a manifest cannot be read at the start. */
const firstLookMs = 1000;
const firstLooks = 5;

interface Entry {
  /** The text last read; undefined when the file can't be read. */
  text: Uint8Array | undefined;
  /** The last good pod. */
  pod: BoundPod | undefined;
  /** What is wrong with the file now. */
  problem: string | undefined;
  /** True when the disk does not give the file. */
  unread?: true;
}

/**
 * Static pods from a directory or a single file (features.md B1, pkg/kubelet/config/file.go). Names that begin with a
 * dot and sub-directories are left out, links are followed, and nothing but a regular file is ever opened. A file that
 * turned bad keeps its pod for the moment; a directory's pod goes when a periodic look finds the same bad text again,
 * a single file's pod stays until the file is good or gone. A file that cannot be read at all (a fault of the disk) keeps
 * its pod, for a pod that runs must not end with the disk; at the start nothing is said for some seconds while there is
 * such a file. A missing path is an empty source.
 */
export class FileSource implements PodSource {
  readonly name = "file";
  readonly #options: FileSourceOptions;
  readonly #path: string;
  readonly #entries = new Map<string, Entry>();
  readonly #problems = new Map<string, string>();
  /** Manifests that were deleted since the last look, though they may be there again. */
  readonly #deleted = new Set<string>();
  /** Looks at the directory that did not give every manifest; `firstLooks` once one has, or when it was tried enough. */
  #looked = 0;

  constructor(options: FileSourceOptions) {
    this.#options = options;
    this.#path = options.path.replace(/(?<=.)\/+$/, "");
  }

  get problems(): ReadonlyMap<string, string> {
    return this.#problems;
  }

  /** By the spec's identity: two files may want one UID, and whoever passes a pod on changes only its metadata. */
  fileOf({ spec }: Pick<BoundPod, "spec">): string | undefined {
    for (const [path, { pod }] of this.#entries) if (pod?.spec === spec) return path;
    return undefined;
  }

  async run(signal: AbortSignal, emit: (pods: readonly BoundPod[]) => void): Promise<void> {
    const looks = new Channel<Look>();
    looks.push("period");
    await Promise.all([
      this.#tick(signal, looks),
      this.#watch(signal, looks),
      this.#listen(signal, looks, emit),
    ]);
  }

  /** Looks at the files; undefined when the path can't be read, so that nothing is to be said. */
  async list(look: Look): Promise<readonly BoundPod[] | undefined> {
    let info: FileInfo | undefined;
    try {
      info = await this.#options.host.stat(this.#path);
    } catch (thrown) {
      return this.#unreadable(thrown);
    }
    if (info === undefined) {
      this.#entries.clear();
      this.#report(new Map([[this.#path, "does not exist; waiting for it"]]));
      return [];
    }
    if (info.kind === "directory") return await this.#listDirectory(look);
    if (info.kind !== "file") {
      return this.#unreadable(`is a ${info.kind}, neither a directory nor a file`);
    }
    return await this.#listFile(info);
  }

  async #listDirectory(look: Look): Promise<readonly BoundPod[] | undefined> {
    const { host } = this.#options;
    let names: string[];
    try {
      names = (await host.readDir(this.#path)).map(({ name }) => name).filter((name) => !name.startsWith(".")).sort();
    } catch (thrown) {
      return this.#unreadable(thrown);
    }
    const problems = new Map<string, string>();
    const seen = new Set<string>();
    const pods: BoundPod[] = [];
    for (const name of names) {
      const path = this.#path === "/" ? `/${name}` : `${this.#path}/${name}`;
      const entry = await this.#look(path, look, problems);
      if (!entry) continue;
      seen.add(path);
      if (entry.problem !== undefined) problems.set(path, entry.problem);
      if (entry.pod) pods.push(entry.pod);
    }
    for (const path of this.#entries.keys()) {
      if (!seen.has(path)) this.#entries.delete(path);
    }
    this.#report(problems);
    // What a file wants that was never read is not known; to leave its pod out would end one that runs already.
    const unknown = [...this.#entries.values()].some((e) => e.unread && !e.pod);
    this.#looked = unknown ? this.#looked + 1 : firstLooks;
    return this.#looked < firstLooks ? undefined : pods;
  }

  /** One file of the directory; undefined when there is no manifest at the path (any more). */
  async #look(path: string, look: Look, problems: Map<string, string>): Promise<Entry | undefined> {
    let info: FileInfo | undefined;
    try {
      info = await this.#options.host.stat(path);
      if (info === undefined) {
        // Gone since the directory was read, which is no problem, or a link to nothing.
        if (await this.#options.host.lstat(path)) problems.set(path, "is a link that leads nowhere");
        return undefined;
      }
    } catch (thrown) {
      return this.#unread(path, messageOf(thrown));
    }
    if (info.kind === "directory") {
      problems.set(path, "is a directory; manifests in sub-directories are not read");
      return undefined;
    }
    if (info.kind !== "file") {
      problems.set(path, `is a ${info.kind}, not a file; it is not opened`);
      return undefined;
    }
    return await this.#read(path, info, look);
  }

  async #listFile(info: FileInfo): Promise<readonly BoundPod[] | undefined> {
    const entry = await this.#read(this.#path, info, "watch");
    if (entry === undefined) return undefined;
    this.#report(entry.problem === undefined ? new Map() : new Map([[this.#path, entry.problem]]));
    // A bad single file says nothing, as in the reference: neither a new state nor that it was read.
    return entry.problem === undefined && entry.pod ? [entry.pod] : undefined;
  }

  /** Reads and decodes a file unless its text is the one already known. */
  async #read(path: string, info: FileInfo, look: Look): Promise<Entry | undefined> {
    const { host, nodeName, log, preventApiReferences } = this.#options;
    if (info.size >= textLimits.bytes) {
      return this.#bad(path, undefined, `is ${info.size} bytes long; the limit is ${textLimits.bytes}`, look);
    }
    let text: Uint8Array;
    try {
      text = await host.readBytes(path, textLimits.bytes);
    } catch (thrown) {
      if (isMissing(thrown)) return undefined;
      return this.#unread(path, messageOf(thrown));
    }
    const before = this.#entries.get(path);
    if (before?.text && sameBytes(before.text, text)) {
      return before.problem === undefined ? before : this.#bad(path, text, before.problem, look);
    }
    try {
      const { pods, warnings } = readPod(text, {
        origin: { source: "file", path },
        nodeName,
        ...(preventApiReferences === undefined ? {} : { preventApiReferences }),
      });
      for (const warning of warnings) log.warn("Manifest", { path, warning });
      const entry: Entry = { text, pod: pods[0], problem: undefined };
      this.#entries.set(path, entry);
      return entry;
    } catch (thrown) {
      if (!(thrown instanceof KubeletError)) throw thrown;
      return this.#bad(path, text, thrown.message, look);
    }
  }

  /** Notes a bad file. It keeps its pod, unless a periodic look finds again what an earlier look found. */
  #bad(path: string, text: Uint8Array | undefined, problem: string, look: Look): Entry {
    const before = this.#entries.get(path);
    const again = look === "period" && before?.problem === problem && sameText(before.text, text);
    const entry: Entry = { text, pod: again ? undefined : before?.pod, problem };
    this.#entries.set(path, entry);
    return entry;
  }

  /** Notes a file that the disk does not give: that says nothing of what it wants, so its pod stays as long as it lasts. */
  #unread(path: string, problem: string): Entry {
    const entry: Entry = { text: undefined, pod: this.#entries.get(path)?.pod, problem, unread: true };
    this.#entries.set(path, entry);
    return entry;
  }

  #unreadable(why: unknown): undefined {
    this.#report(new Map([[this.#path, typeof why === "string" ? why : messageOf(why)]]));
    return undefined;
  }

  /** Logs each problem when it begins or changes, and its end. */
  #report(now: ReadonlyMap<string, string>): void {
    const { log } = this.#options;
    for (const [path, problem] of now) {
      if (this.#problems.get(path) === problem) continue;
      this.#problems.set(path, problem);
      log.error("Manifest can't be used", { path, problem });
    }
    for (const path of [...this.#problems.keys()]) {
      if (now.has(path)) continue;
      this.#problems.delete(path);
      log.info("Manifest is in order again, or gone", { path });
    }
  }

  async #listen(signal: AbortSignal, looks: Channel<Look>, emit: (pods: readonly BoundPod[]) => void): Promise<void> {
    for await (const look of looks.values(signal)) {
      try {
        const deleted = this.#takeDeleted();
        const pods = await this.list(look);
        if (signal.aborted) return;
        if (pods) {
          const anew = this.#anew(deleted);
          if (anew.size > 0) emit(pods.filter(({ metadata }) => !anew.has(metadata.uid)));
          emit(pods);
        } else if (this.#looked > 0 && this.#looked < firstLooks) {
          await this.#options.clock.sleep(firstLookMs, signal);
          looks.latest("period", "period");
        }
      } catch (thrown) {
        if (signal.aborted) return;
        // A fault of ours in one look must not end the source: the next look may go well.
        this.#options.log.error("Looking at the manifests failed", { path: this.#path, error: messageOf(thrown) });
      }
    }
  }

  /** The paths of deleted manifests with the UIDs of what they wanted. */
  #takeDeleted(): Map<string, string> {
    const deleted = new Map<string, string>();
    for (const path of this.#deleted) {
      const uid = this.#entries.get(path)?.pod?.metadata.uid;
      if (uid !== undefined) deleted.set(path, uid);
    }
    this.#deleted.clear();
    return deleted;
  }

  /** UIDs that a manifest wants again which was deleted: the pod goes and comes, as if each had been seen by itself. */
  #anew(deleted: ReadonlyMap<string, string>): Set<string> {
    return new Set(
      [...deleted].flatMap(([path, uid]) => this.#entries.get(path)?.pod?.metadata.uid === uid ? [uid] : []),
    );
  }

  async #tick(signal: AbortSignal, looks: Channel<Look>): Promise<void> {
    await untilAborted(async () => {
      while (true) {
        await this.#options.clock.sleep(this.#options.periodMs, signal);
        looks.latest("period", "period");
      }
    });
  }

  /** Asks for a look after changes; Host.watch minds paths that come, go and are replaced. */
  async #watch(signal: AbortSignal, looks: Channel<Look>): Promise<void> {
    const { clock, host, log } = this.#options;
    let retry = watchRetryMs;
    await untilAborted(async () => {
      while (true) {
        try {
          for await (const removed of host.watch(this.#path, signal)) {
            for (const path of removed ?? []) this.#deleted.add(path);
            retry = watchRetryMs;
            await clock.sleep(settleMs, signal);
            looks.latest("watch", "watch");
          }
        } catch (thrown) {
          if (signal.aborted) throw thrown;
          log.detail(2, "Watching the manifests failed; looking at each period still works", {
            path: this.#path,
            error: messageOf(thrown),
          });
        }
        await clock.sleep(retry, signal);
        retry = Math.min(retry * 2, watchRetryMaxMs);
      }
    });
  }
}

/** Runs to the end that an abort brings, which is a good one. */
async function untilAborted(run: () => Promise<void>): Promise<void> {
  try {
    await run();
  } catch (thrown) {
    if (!isAborted(thrown)) throw thrown;
  }
}

function sameBytes(a: Uint8Array, b: Uint8Array): boolean {
  return a.length === b.length && a.every((byte, i) => byte === b[i]);
}

function sameText(a: Uint8Array | undefined, b: Uint8Array | undefined): boolean {
  return a === undefined || b === undefined ? a === b : sameBytes(a, b);
}
