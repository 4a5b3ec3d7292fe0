import type { Channel } from "./channel.ts";
import type { Clock } from "./clock.ts";
import { errno, FakeTree, type Found, infoOf, type Inode, type KernelFs } from "./fake_host_fs.ts";
import type { CommandResult, FileInfo, FileKind, FsSpace, Host } from "./host.ts";
import { hostError, isMissing } from "./host_error.ts";

/** What a fault hook sees: the Host method's name. */
export type HostOperation = Exclude<keyof Host, "procRoot" | "cgroupRoot">;

/** Returns the error to fail with, or undefined to let the operation pass. */
export type FaultHook = (operation: HostOperation, path: string) => Error | undefined;

/** Operations that change a file system: those that a full or read-only one refuses. */
const writes = new Set<HostOperation>([
  "write",
  "writeControl",
  "mkdir",
  "symlink",
  "rename",
  "gzip",
  "chmod",
  "chown",
  "groupTree",
  "remove",
  "removeTree",
  "mountBelow",
]);
/** Operations that need new room. */
const grows = new Set<HostOperation>(["write", "gzip", "mkdir", "symlink"]);

/** Options of a FakeHost. */
export interface FakeHostOptions {
  /** Gives mtimes; without it time stands at 0. */
  clock?: Pick<Clock, "now">;
  /** Files to begin with, path → text; parents are made. */
  files?: Record<string, string>;
  procRoot?: string;
  cgroupRoot?: string;
  hostname?: string;
  capacity?: { memory: number; cpus: number; swap: number };
  /** Answers `run`; undefined means that there is no such program. */
  run?: (
    command: string,
    args: string[],
    options: { stdin?: string; env?: Record<string, string> },
  ) => CommandResult | Promise<CommandResult> | undefined;
  /** Called at `kill`, after it was recorded. */
  onKill?: (pid: number, signal: string) => void;
}

/** The state behind FakeHost, and what tests do to it: put files, make faults, look. */
export class FakeMachine {
  readonly procRoot: string;
  readonly cgroupRoot: string;
  /** Signals sent, in order; like all records here the older half is dropped once there are many. */
  readonly kills: { pid: number; signal: string }[] = [];
  /** Programs run, in order. */
  readonly commands: { command: string; args: string[]; stdin?: string }[] = [];
  /** Operations as they reached the fault hooks, in order; a test may clear it. */
  readonly operations: { operation: HostOperation; path: string }[] = [];
  /** Answers `run`; may be replaced at any time. */
  onRun: FakeHostOptions["run"];
  onKill: FakeHostOptions["onKill"];
  /** What the kernel's log says from now on; a machine without it has no such log. */
  kernelRecords: Channel<string> | undefined;
  capacityNow: { memory: number; cpus: number; swap: number };
  protected readonly fs: FakeTree;
  protected readonly name: string;
  protected readonly faults = new Set<FaultHook>();
  protected readonly locks = new Set<string>();
  protected readonly watchers = new Set<{ path: string; wake: (removed?: string) => void }>();

  constructor(options: FakeHostOptions = {}) {
    this.fs = new FakeTree(options.clock ?? { now: () => 0 });
    this.procRoot = options.procRoot ?? "/proc";
    this.cgroupRoot = options.cgroupRoot ?? "/sys/fs/cgroup";
    this.name = options.hostname ?? "node1";
    this.capacityNow = options.capacity ?? { memory: 8 * 2 ** 30, cpus: 4, swap: 0 };
    this.onRun = options.run;
    this.onKill = options.onKill;
    for (const [path, text] of Object.entries(options.files ?? {})) this.put(path, text);
  }

  // Test helpers: synchronous, and never subject to faults.

  /** Adds a fault hook; disposing the result takes it away again. */
  fault(hook: FaultHook): Disposable {
    this.faults.add(hook);
    return { [Symbol.dispose]: () => void this.faults.delete(hook) };
  }

  /** Below `path` nothing new fits (ENOSPC) until the result is disposed. */
  full(path: string): Disposable {
    return this.fault((op, p) => grows.has(op) && below(p, path) ? errno("ENOSPC") : undefined);
  }

  /** Below `path` nothing can be changed (EROFS) until the result is disposed. */
  readOnly(path: string): Disposable {
    return this.fault((op, p) => writes.has(op) && below(p, path) ? errno("EROFS") : undefined);
  }

  /** Below `path` every operation is refused (EACCES) until the result is disposed. */
  denied(path: string): Disposable {
    return this.fault((_, p) => below(p, path) ? errno("EACCES") : undefined);
  }

  /** Writes a file and its parents, whatever was there. */
  put(path: string, data: string | Uint8Array, mode = 0o644): void {
    this.mkdirs(parentOf(path), 0o755);
    this.store(path, bytesOf(data), mode);
  }

  /** Makes a directory and its parents. */
  putDir(path: string, mode = 0o755): void {
    this.mkdirs(path, 0o755);
    this.fs.need(path).inode.mode = mode;
  }

  /** Makes a socket, device, fifo or (with `link`) symbolic link, and its parents. */
  putNode(path: string, kind: FileKind, link?: string): void {
    this.mkdirs(parentOf(path), 0o755);
    const found = this.fs.find(path, false);
    this.fs.attach(found, this.fs.inode(kind, found.parent.fs, link === undefined ? {} : { link }));
    this.changed(found.path);
  }

  /** Mounts a file system whose directories come with files of the kernel's making, such as a cgroup hierarchy. */
  putKernelFs(path: string, type: string, kernel: KernelFs): void {
    this.mkdirs(path, 0o755);
    this.fs.mount({ source: type, target: path, type, kernel });
  }

  /** The text of a file, or undefined. */
  text(path: string): string | undefined {
    const inode = this.quiet(path)?.inode;
    return inode?.kind === "file" ? new TextDecoder().decode(inode.data) : undefined;
  }

  /** True when something is at the path (links are not followed at its end). */
  exists(path: string): boolean {
    return this.quiet(path, false)?.inode !== undefined;
  }

  /** Every path below a directory, sorted; directories end in `/`, links show ` -> target`. Mounts are entered. */
  tree(path: string): string[] {
    const out: string[] = [];
    const walk = (at: string) => {
      for (const name of [...this.fs.need(at).inode.children.keys()].sort()) {
        const full = join(at, name);
        const { inode } = this.fs.need(full, false);
        const shown = full.slice(path === "/" ? 1 : path.length + 1);
        out.push(shown + (inode.kind === "directory" ? "/" : inode.kind === "symlink" ? ` -> ${inode.link}` : ""));
        if (inode.kind === "directory") walk(full);
      }
    };
    if (this.exists(path)) walk(path);
    return out;
  }

  /** Sets what `space` tells of the file system at a path. */
  setSpace(path: string, space: FsSpace): void {
    this.fs.need(path).inode.fs.space = space;
  }

  /** Takes a lock as another process would. */
  holdLock(path: string): Disposable {
    this.locks.add(path);
    return { [Symbol.dispose]: () => void this.locks.delete(path) };
  }

  // For the Host on top.

  protected check(operation: HostOperation, path: string): void {
    record(this.operations, { operation, path });
    for (const hook of this.faults) {
      const error = hook(operation, path);
      if (error) throw hostError(operation, path, error);
    }
  }

  // The body runs at once; only its result is handed over through a promise.
  // deno-lint-ignore require-await
  protected async attempt<T>(operation: HostOperation, path: string, body: () => T): Promise<T> {
    this.check(operation, path);
    try {
      return body();
    } catch (thrown) {
      throw hostError(operation, path, thrown);
    }
  }

  protected missingOk<T>(find: () => T): T | undefined {
    try {
      return find();
    } catch (thrown) {
      if (isMissing(thrown)) return undefined;
      throw thrown;
    }
  }

  protected quiet(path: string, follow = true): Found | undefined {
    return this.missingOk(() => this.fs.find(path, follow));
  }

  protected info(path: string, follow: boolean): FileInfo | undefined {
    const inode = this.quiet(path, follow)?.inode;
    return inode && infoOf(inode);
  }

  protected file(path: string): Inode {
    const { inode } = this.fs.need(path);
    if (inode.kind === "directory") throw errno("EISDIR");
    return inode;
  }

  protected alter(path: string, change: (inode: Inode) => void): void {
    const found = this.fs.need(path);
    if (found.readOnly) throw errno("EROFS");
    change(found.inode);
    this.changed(found.path);
  }

  protected mkdirs(path: string, mode: number): void {
    let at = "";
    for (const name of path.split("/").filter((s) => s !== "")) {
      at += `/${name}`;
      const made = this.fs.mkdir(at, mode);
      if (made) this.changed(made);
    }
  }

  protected store(path: string, data: Uint8Array, mode: number | undefined): void {
    const found = this.fs.find(path, true);
    if (found.readOnly) throw errno("EROFS");
    if (found.inode?.kind === "directory") throw errno("EISDIR");
    this.fs.room(found.parent.fs, data.length - (found.inode?.data.length ?? 0));
    const inode = found.inode ?? this.fs.inode("file", found.parent.fs);
    if (!found.inode) this.fs.attach(found, inode);
    inode.data = data;
    if (mode !== undefined) inode.mode = mode & 0o7777;
    this.fs.touch(inode);
    this.changed(found.path);
  }

  protected changed(path: string, removed = false): void {
    for (const watcher of this.watchers) {
      const real = this.quiet(watcher.path)?.path ?? watcher.path;
      if ([watcher.path, real].some((w) => below(path, w) || below(w, path))) {
        watcher.wake(removed ? path : undefined);
      }
    }
  }
}

/** Keeps a record of bounded length, for simulations that run for long. */
export function record<T>(list: T[], entry: T): void {
  if (list.length >= 20_000) list.splice(0, 10_000);
  list.push(entry);
}

export function bytesOf(data: string | Uint8Array): Uint8Array {
  return typeof data === "string" ? new TextEncoder().encode(data) : data.slice();
}

export function below(path: string, top: string): boolean {
  return path === top || top === "/" || path.startsWith(`${top}/`);
}

export function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

export function join(directory: string, name: string): string {
  return directory === "/" ? `/${name}` : `${directory}/${name}`;
}
