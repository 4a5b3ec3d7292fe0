import type { Clock } from "./clock.ts";
import { abortedBy } from "./errors.ts";
import { errno, FakeTree, type Found, infoOf, type Inode, type KernelFs } from "./fake_host_fs.ts";
import type { CommandResult, FileInfo, FileKind, FsSpace, Host, MountEntry } from "./host.ts";
import { hostError, isMissing } from "./host_error.ts";

export type { KernelFs } from "./fake_host_fs.ts";
export { errno } from "./fake_host_fs.ts";

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
  "chmod",
  "chown",
  "remove",
  "removeTree",
  "mountBelow",
]);
/** Operations that need new room. */
const grows = new Set<HostOperation>(["write", "mkdir", "symlink"]);

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

/**
 * A machine in memory, for tests and the simulation: files, links, mounts, watches, locks, programmable commands and
 * faults. Deterministic: no timers, no I/O. Its errors are the ones that the real Host gives.
 */
export class FakeHost implements Host {
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
  capacityNow: { memory: number; cpus: number; swap: number };
  readonly #tree: FakeTree;
  readonly #hostname: string;
  readonly #faults = new Set<FaultHook>();
  readonly #locks = new Set<string>();
  readonly #watchers = new Set<{ path: string; wake: () => void }>();

  constructor(options: FakeHostOptions = {}) {
    this.#tree = new FakeTree(options.clock ?? { now: () => 0 });
    this.procRoot = options.procRoot ?? "/proc";
    this.cgroupRoot = options.cgroupRoot ?? "/sys/fs/cgroup";
    this.#hostname = options.hostname ?? "node1";
    this.capacityNow = options.capacity ?? { memory: 8 * 2 ** 30, cpus: 4, swap: 0 };
    this.onRun = options.run;
    this.onKill = options.onKill;
    for (const [path, text] of Object.entries(options.files ?? {})) this.put(path, text);
  }

  // Test helpers: synchronous, and never subject to faults.

  /** Adds a fault hook; disposing the result takes it away again. */
  fault(hook: FaultHook): Disposable {
    this.#faults.add(hook);
    return { [Symbol.dispose]: () => void this.#faults.delete(hook) };
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
    this.#mkdirs(parentOf(path), 0o755);
    this.#store(path, bytesOf(data), mode);
  }

  /** Makes a directory and its parents. */
  putDir(path: string, mode = 0o755): void {
    this.#mkdirs(path, 0o755);
    this.#tree.need(path).inode.mode = mode;
  }

  /** Makes a socket, device, fifo or (with `link`) symbolic link, and its parents. */
  putNode(path: string, kind: FileKind, link?: string): void {
    this.#mkdirs(parentOf(path), 0o755);
    const found = this.#tree.find(path, false);
    this.#tree.attach(found, this.#tree.inode(kind, found.parent.fs, link === undefined ? {} : { link }));
    this.#changed(found.path);
  }

  /** Mounts a file system whose directories come with files of the kernel's making, such as a cgroup hierarchy. */
  putKernelFs(path: string, type: string, kernel: KernelFs): void {
    this.#mkdirs(path, 0o755);
    this.#tree.mount({ source: type, target: path, type, kernel });
  }

  /** The text of a file, or undefined. */
  text(path: string): string | undefined {
    const inode = this.#quiet(path)?.inode;
    return inode?.kind === "file" ? new TextDecoder().decode(inode.data) : undefined;
  }

  /** True when something is at the path (links are not followed at its end). */
  exists(path: string): boolean {
    return this.#quiet(path, false)?.inode !== undefined;
  }

  /** Every path below a directory, sorted; directories end in `/`, links show ` -> target`. Mounts are entered. */
  tree(path: string): string[] {
    const out: string[] = [];
    const walk = (at: string) => {
      for (const name of [...this.#tree.need(at).inode.children.keys()].sort()) {
        const full = join(at, name);
        const { inode } = this.#tree.need(full, false);
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
    this.#tree.need(path).inode.fs.space = space;
  }

  /** Takes a lock as another process would. */
  holdLock(path: string): Disposable {
    this.#locks.add(path);
    return { [Symbol.dispose]: () => void this.#locks.delete(path) };
  }

  // The Host.

  readText(path: string): Promise<string> {
    return this.#do("readText", path, () => new TextDecoder().decode(this.#file(path).data));
  }

  readBytes(path: string, limit?: number): Promise<Uint8Array> {
    return this.#do("readBytes", path, () => this.#file(path).data.slice(0, limit));
  }

  readTail(path: string, bytes: number): Promise<Uint8Array> {
    return this.#do("readTail", path, () => {
      const { data } = this.#file(path);
      return data.slice(Math.max(0, data.length - bytes));
    });
  }

  write(path: string, data: string | Uint8Array, options: { mode?: number; atomic?: boolean } = {}): Promise<void> {
    return this.#do("write", path, () => {
      const found = this.#tree.find(path, false);
      if (options.atomic && found.inode?.kind === "symlink") found.parent.children.delete(found.name);
      this.#store(path, bytesOf(data), options.mode);
    });
  }

  writeControl(path: string, data: string): Promise<void> {
    return this.#do("writeControl", path, () => {
      const found = this.#tree.need(path);
      if (found.inode.kind !== "file") throw errno("EISDIR");
      if (found.readOnly) throw errno("EROFS");
      const kernel = found.inode.fs.kernel;
      found.inode.data = bytesOf(kernel?.onWrite ? kernel.onWrite(found.path, data) : data);
      this.#tree.touch(found.inode);
      this.#changed(found.path);
    });
  }

  mkdir(path: string, options: { mode?: number } = {}): Promise<void> {
    return this.#do("mkdir", path, () => this.#mkdirs(path, options.mode ?? 0o755));
  }

  readDir(path: string): Promise<{ name: string; kind: FileKind }[]> {
    return this.#do("readDir", path, () => {
      const { inode } = this.#tree.need(path);
      if (inode.kind !== "directory") throw errno("ENOTDIR");
      return [...inode.children].map(([name, child]) => ({ name, kind: child.kind }));
    });
  }

  stat(path: string): Promise<FileInfo | undefined> {
    return this.#do("stat", path, () => this.#info(path, true));
  }

  lstat(path: string): Promise<FileInfo | undefined> {
    return this.#do("lstat", path, () => this.#info(path, false));
  }

  readLink(path: string): Promise<string> {
    return this.#do("readLink", path, () => {
      const { inode } = this.#tree.need(path, false);
      if (inode.kind !== "symlink") throw errno("EINVAL");
      return inode.link;
    });
  }

  realPath(path: string): Promise<string> {
    return this.#do("realPath", path, () => this.#tree.need(path).path);
  }

  symlink(target: string, path: string): Promise<void> {
    return this.#do("symlink", path, () => {
      const found = this.#tree.find(path, false);
      if (found.inode) throw errno("EEXIST");
      this.#tree.attach(found, this.#tree.inode("symlink", found.parent.fs, { link: target }));
      this.#changed(found.path);
    });
  }

  rename(from: string, to: string): Promise<void> {
    return this.#do("rename", from, () => {
      const source = this.#tree.need(from, false);
      const target = this.#tree.find(to, false);
      if (source.readOnly || target.readOnly) throw errno("EROFS");
      if (source.mountPoint || target.mountPoint) throw errno("EBUSY");
      if (source.inode.fs !== target.parent.fs) throw errno("EXDEV");
      if (below(target.path, source.path) && target.path !== source.path) throw errno("EINVAL");
      if (target.inode) {
        if (target.inode.kind === "directory" && source.inode.kind !== "directory") throw errno("EISDIR");
        if (target.inode.kind !== "directory" && source.inode.kind === "directory") throw errno("ENOTDIR");
        if (target.inode.kind === "directory" && target.inode.children.size > 0) throw errno("ENOTEMPTY");
      }
      source.parent.children.delete(source.name);
      this.#tree.attach(target, source.inode);
      this.#tree.touch(source.parent);
      this.#changed(source.path);
      this.#changed(target.path);
    });
  }

  chmod(path: string, mode: number): Promise<void> {
    return this.#do("chmod", path, () => this.#alter(path, (inode) => inode.mode = mode & 0o7777));
  }

  chown(path: string, uid: number, gid: number): Promise<void> {
    return this.#do("chown", path, () =>
      this.#alter(path, (inode) => {
        inode.uid = uid;
        inode.gid = gid;
      }));
  }

  remove(path: string): Promise<void> {
    return this.#do("remove", path, () => {
      const found = this.#missingOk(() => this.#tree.need(path, false));
      if (!found) return;
      this.#tree.remove(found);
      this.#changed(found.path);
    });
  }

  removeTree(path: string): Promise<void> {
    return this.#do("removeTree", path, () => {
      const found = this.#missingOk(() => this.#tree.need(path, false));
      if (!found) return;
      const mounts = this.#tree.mountsBelow(found.path);
      if (mounts[0] !== undefined) {
        throw Object.assign(new Error(`${mounts[0]} is a mount point: nothing was removed`), { code: "EBUSY" });
      }
      const empty = (at: Found & { inode: Inode }) => {
        if (at.inode.kind === "directory") {
          for (const [name, inode] of [...at.inode.children]) {
            empty({ ...at, parent: at.inode, name, path: join(at.path, name), inode, mountPoint: false });
          }
        }
        this.#tree.remove(at);
      };
      empty(found);
      this.#changed(found.path);
    });
  }

  space(path: string): Promise<FsSpace> {
    return this.#do("space", path, () => {
      const { fs } = this.#tree.need(path).inode;
      const total = fs.limit ?? 100 * 2 ** 30;
      const room = total - (fs.limit === undefined ? 0 : this.#tree.used(this.#tree.need(path).inode));
      return fs.space ?? { total, free: room, available: room, inodes: 1_000_000, inodesFree: 900_000 };
    });
  }

  async *watch(path: string, signal: AbortSignal): AsyncIterable<void> {
    this.#check("watch", path);
    let woken = false;
    let notify = () => {};
    const watcher = {
      path,
      wake: () => {
        woken = true;
        notify();
      },
    };
    const stop = () => notify();
    this.#watchers.add(watcher);
    signal.addEventListener("abort", stop, { once: true });
    try {
      while (!signal.aborted) {
        if (!woken) await new Promise<void>((resolve) => notify = resolve);
        if (signal.aborted) return;
        if (!woken) continue;
        woken = false;
        yield;
      }
    } finally {
      this.#watchers.delete(watcher);
      signal.removeEventListener("abort", stop);
    }
  }

  lock(path: string): Promise<Disposable | undefined> {
    return this.#do("lock", path, () => {
      if (this.#locks.has(path)) return undefined;
      if (!this.#tree.find(path, true).inode) this.#store(path, new Uint8Array(), 0o600);
      return this.holdLock(path);
    });
  }

  mount(options: { source: string; target: string; type?: string; options?: string[] }): Promise<void> {
    return this.#do("mount", options.target, () => {
      this.#tree.mount(options);
      this.#changed(options.target);
    });
  }

  mountBelow(options: { root: string; path: string; target: string; mode?: number }): Promise<void> {
    return this.#do("mountBelow", join(options.root, options.path), () => {
      const parts = options.path.split("/").filter((p) => p !== "" && p !== ".");
      if (options.path.startsWith("/") || parts.includes("..")) throw errno("EINVAL");
      let at = options.root;
      for (const part of parts) {
        at = join(at, part);
        if (this.#tree.find(at, false).inode?.kind === "symlink") throw errno("ELOOP");
        if (!this.exists(at)) this.#mkdirs(at, options.mode ?? 0o755);
      }
      const source = this.#tree.need(at, false);
      if (!this.exists(options.target)) {
        if (source.inode.kind === "directory") this.#mkdirs(options.target, 0o750);
        else this.#store(options.target, new Uint8Array(), 0o640);
      }
      this.#tree.mount({ source: at, target: options.target, options: ["bind"] });
      this.#changed(options.target);
    });
  }

  unmount(target: string): Promise<void> {
    return this.#do("unmount", target, () => {
      if (this.#missingOk(() => this.#tree.unmount(target))) this.#changed(target);
    });
  }

  mounts(): Promise<MountEntry[]> {
    return this.#do("mounts", "", () => this.#tree.table());
  }

  async run(
    command: string,
    args: string[],
    options: { stdin?: string; env?: Record<string, string>; signal?: AbortSignal } = {},
  ): Promise<CommandResult> {
    const { signal, ...rest } = options;
    if (signal?.aborted) throw abortedBy(signal);
    record(this.commands, { command, args, ...(rest.stdin === undefined ? {} : { stdin: rest.stdin }) });
    this.#check("run", command);
    const answer = this.onRun?.(command, args, rest);
    if (answer === undefined) throw hostError("run", command, errno("ENOENT"));
    return await raceAbort(answer, signal);
  }

  kill(pid: number, signal: "SIGKILL" | "SIGTERM" | "SIGHUP"): void {
    this.#check("kill", String(pid));
    if (!Number.isSafeInteger(pid) || pid <= 1) throw hostError("kill", String(pid), errno("EINVAL"));
    record(this.kills, { pid, signal });
    this.onKill?.(pid, signal);
  }

  hostname(): string {
    return this.#hostname;
  }

  capacity(): Promise<{ memory: number; cpus: number; swap: number }> {
    return this.#do("capacity", "", () => ({ ...this.capacityNow }));
  }

  // Inside.

  #check(operation: HostOperation, path: string): void {
    record(this.operations, { operation, path });
    for (const hook of this.#faults) {
      const error = hook(operation, path);
      if (error) throw hostError(operation, path, error);
    }
  }

  // The body runs at once; only its result is handed over through a promise.
  // deno-lint-ignore require-await
  async #do<T>(operation: HostOperation, path: string, body: () => T): Promise<T> {
    this.#check(operation, path);
    try {
      return body();
    } catch (thrown) {
      throw hostError(operation, path, thrown);
    }
  }

  #missingOk<T>(find: () => T): T | undefined {
    try {
      return find();
    } catch (thrown) {
      if (isMissing(thrown)) return undefined;
      throw thrown;
    }
  }

  #quiet(path: string, follow = true): Found | undefined {
    return this.#missingOk(() => this.#tree.find(path, follow));
  }

  #info(path: string, follow: boolean): FileInfo | undefined {
    const inode = this.#quiet(path, follow)?.inode;
    return inode && infoOf(inode);
  }

  #file(path: string): Inode {
    const { inode } = this.#tree.need(path);
    if (inode.kind === "directory") throw errno("EISDIR");
    return inode;
  }

  #alter(path: string, change: (inode: Inode) => void): void {
    const found = this.#tree.need(path);
    if (found.readOnly) throw errno("EROFS");
    change(found.inode);
    this.#changed(found.path);
  }

  #mkdirs(path: string, mode: number): void {
    let at = "";
    for (const name of path.split("/").filter((s) => s !== "")) {
      at += `/${name}`;
      const made = this.#tree.mkdir(at, mode);
      if (made) this.#changed(made);
    }
  }

  #store(path: string, data: Uint8Array, mode: number | undefined): void {
    const found = this.#tree.find(path, true);
    if (found.readOnly) throw errno("EROFS");
    if (found.inode?.kind === "directory") throw errno("EISDIR");
    this.#tree.room(found.parent.fs, data.length - (found.inode?.data.length ?? 0));
    const inode = found.inode ?? this.#tree.inode("file", found.parent.fs);
    if (!found.inode) this.#tree.attach(found, inode);
    inode.data = data;
    if (mode !== undefined) inode.mode = mode & 0o7777;
    this.#tree.touch(inode);
    this.#changed(found.path);
  }

  #changed(path: string): void {
    for (const watcher of this.#watchers) {
      const real = this.#quiet(watcher.path)?.path ?? watcher.path;
      if ([watcher.path, real].some((w) => below(path, w) || below(w, path))) watcher.wake();
    }
  }
}

/** Keeps a record of bounded length, for simulations that run for long. */
function record<T>(list: T[], entry: T): void {
  if (list.length >= 20_000) list.splice(0, 10_000);
  list.push(entry);
}

function bytesOf(data: string | Uint8Array): Uint8Array {
  return typeof data === "string" ? new TextEncoder().encode(data) : data.slice();
}

function below(path: string, top: string): boolean {
  return path === top || top === "/" || path.startsWith(`${top}/`);
}

function parentOf(path: string): string {
  return path.slice(0, path.lastIndexOf("/")) || "/";
}

function join(directory: string, name: string): string {
  return directory === "/" ? `/${name}` : `${directory}/${name}`;
}

/** The promise, or a rejection as soon as the signal aborts. */
async function raceAbort<T>(answer: T | Promise<T>, signal: AbortSignal | undefined): Promise<T> {
  if (!signal) return await answer;
  const { promise, reject } = Promise.withResolvers<never>();
  const onAbort = () => reject(abortedBy(signal));
  signal.addEventListener("abort", onAbort, { once: true });
  try {
    return await Promise.race([answer, promise]);
  } finally {
    signal.removeEventListener("abort", onAbort);
  }
}
