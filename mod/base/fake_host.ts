import { gzipSync } from "node:zlib";
import { abortedBy } from "./errors.ts";
import { errno, type Found, infoOf, type Inode } from "./fake_host_fs.ts";
import { below, bytesOf, FakeMachine, join, record } from "./fake_machine.ts";
import type {
  CommandResult,
  FileInfo,
  FileKind,
  FsSpace,
  GroupTreeOptions,
  Host,
  KeptFile,
  MountEntry,
  OpenFile,
} from "./host.ts";
import { hostError } from "./host_error.ts";

export type { KernelFs } from "./fake_host_fs.ts";
export { errno } from "./fake_host_fs.ts";
export type { FakeHostOptions, FaultHook, HostOperation } from "./fake_machine.ts";

/**
 * A machine in memory, for tests and the simulation: files, links, mounts, watches, locks, programmable commands and
 * faults. Deterministic: no timers, no I/O. Its errors are the ones that the real Host gives.
 */
export class FakeHost extends FakeMachine implements Host {
  readText(path: string): Promise<string> {
    return this.attempt("readText", path, () => new TextDecoder().decode(this.file(path).data));
  }

  readTextNow(path: string): string | undefined {
    this.check("readText", path);
    try {
      return this.missingOk(() => new TextDecoder().decode(this.file(path).data));
    } catch (thrown) {
      throw hostError("readText", path, thrown);
    }
  }

  keepOpen(path: string): KeptFile | undefined {
    if (this.readTextNow(path) === undefined) return undefined;
    const { inode } = this.fs.need(path);
    return {
      // What was removed has gone, also when another is there under its name.
      read: () => this.quiet(path)?.inode === inode ? this.readTextNow(path) : undefined,
      [Symbol.dispose]: () => {},
    };
  }

  readBytes(path: string, limit?: number): Promise<Uint8Array> {
    return this.attempt("readBytes", path, () => this.file(path).data.slice(0, limit));
  }

  readTail(path: string, bytes: number, { nofollow = false }: { nofollow?: boolean } = {}): Promise<Uint8Array> {
    return this.attempt("readTail", path, () => {
      const { kind } = this.fs.need(path, !nofollow).inode;
      if (kind === "symlink") throw errno("ELOOP");
      if (kind !== "file" && kind !== "directory") throw errno("EINVAL");
      const { data } = this.file(path);
      return data.slice(Math.max(0, data.length - bytes));
    });
  }

  open(path: string): Promise<OpenFile> {
    return this.attempt("open", path, () => {
      const { inode } = this.fs.need(path);
      if (inode.kind !== "file") throw errno("EINVAL");
      let open = true;
      const alive = () => {
        if (!open) throw errno("EBADF");
      };
      // The inode, not the name: a file that was renamed or removed can still be read.
      return {
        read: (into, at) =>
          this.attempt("open", path, () => {
            alive();
            const part = inode.data.subarray(at, at + into.length);
            into.set(part);
            return part.length;
          }),
        info: () =>
          this.attempt("stat", path, () => {
            alive();
            return infoOf(inode);
          }),
        [Symbol.dispose]: () => {
          open = false;
        },
      };
    });
  }

  write(path: string, data: string | Uint8Array, options: { mode?: number; atomic?: boolean } = {}): Promise<void> {
    return this.attempt("write", path, () => {
      const found = this.fs.find(path, false);
      if (options.atomic && found.inode?.kind === "symlink") found.parent.children.delete(found.name);
      this.store(path, bytesOf(data), options.mode);
    });
  }

  writeControl(path: string, data: string): Promise<void> {
    return this.attempt("writeControl", path, () => {
      const found = this.fs.need(path);
      if (found.inode.kind !== "file") throw errno("EISDIR");
      if (found.readOnly) throw errno("EROFS");
      const kernel = found.inode.fs.kernel;
      found.inode.data = bytesOf(kernel?.onWrite ? kernel.onWrite(found.path, data) : data);
      this.fs.touch(found.inode);
      this.changed(found.path);
    });
  }

  mkdir(path: string, options: { mode?: number } = {}): Promise<void> {
    return this.attempt("mkdir", path, () => this.mkdirs(path, options.mode ?? 0o755));
  }

  readDir(path: string): Promise<{ name: string; kind: FileKind }[]> {
    return this.attempt("readDir", path, () => {
      const { inode } = this.fs.need(path);
      if (inode.kind !== "directory") throw errno("ENOTDIR");
      return [...inode.children].map(([name, child]) => ({ name, kind: child.kind }));
    });
  }

  stat(path: string): Promise<FileInfo | undefined> {
    return this.attempt("stat", path, () => this.info(path, true));
  }

  lstat(path: string): Promise<FileInfo | undefined> {
    return this.attempt("lstat", path, () => this.info(path, false));
  }

  readLink(path: string): Promise<string> {
    return this.attempt("readLink", path, () => {
      const { inode } = this.fs.need(path, false);
      if (inode.kind !== "symlink") throw errno("EINVAL");
      return inode.link;
    });
  }

  realPath(path: string): Promise<string> {
    return this.attempt("realPath", path, () => this.fs.need(path).path);
  }

  symlink(target: string, path: string): Promise<void> {
    return this.attempt("symlink", path, () => {
      const found = this.fs.find(path, false);
      if (found.inode) throw errno("EEXIST");
      this.fs.attach(found, this.fs.inode("symlink", found.parent.fs, { link: target }));
      this.changed(found.path);
    });
  }

  rename(from: string, to: string): Promise<void> {
    return this.attempt("rename", from, () => {
      const source = this.fs.need(from, false);
      const target = this.fs.find(to, false);
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
      this.fs.attach(target, source.inode);
      this.fs.touch(source.parent);
      this.changed(source.path);
      this.changed(target.path);
    });
  }

  gzip(from: string, to: string, signal?: AbortSignal): Promise<void> {
    return this.attempt("gzip", from, () => {
      if (signal?.aborted) throw abortedBy(signal);
      const { inode } = this.fs.need(from);
      if (inode.kind !== "file") throw errno("EINVAL");
      this.store(to, gzipSync(inode.data), inode.mode & 0o777);
    });
  }

  chmod(path: string, mode: number): Promise<void> {
    return this.attempt("chmod", path, () => this.alter(path, (inode) => inode.mode = mode & 0o7777));
  }

  chown(path: string, uid: number, gid: number): Promise<void> {
    return this.attempt("chown", path, () =>
      this.alter(path, (inode) => {
        inode.uid = uid;
        inode.gid = gid;
      }));
  }

  groupTree(path: string, options: GroupTreeOptions): Promise<void> {
    return this.attempt("groupTree", path, () => {
      const { gid, fileBits, directoryBits, signal, onEntry } = options;
      const top = this.fs.need(path, false);
      if (top.inode.kind === "symlink") throw errno("ELOOP");
      if (top.readOnly) throw errno("EROFS");
      const walk = (inode: Inode) => {
        if (signal?.aborted) throw abortedBy(signal);
        if (inode.kind === "symlink") return;
        for (const child of inode.children.values()) walk(child);
        inode.gid = gid;
        inode.mode |= inode.kind === "directory" ? directoryBits : fileBits;
        onEntry?.();
      };
      walk(top.inode);
      this.changed(top.path);
    });
  }

  remove(path: string): Promise<void> {
    return this.attempt("remove", path, () => {
      const found = this.missingOk(() => this.fs.need(path, false));
      if (!found) return;
      this.fs.remove(found);
      this.changed(found.path, true);
    });
  }

  removeTree(path: string): Promise<void> {
    return this.attempt("removeTree", path, () => {
      const found = this.missingOk(() => this.fs.need(path, false));
      if (!found) return;
      const mounts = this.fs.mountsBelow(found.path);
      if (mounts[0] !== undefined) {
        throw Object.assign(new Error(`${mounts[0]} is a mount point: nothing was removed`), { code: "EBUSY" });
      }
      const empty = (at: Found & { inode: Inode }) => {
        if (at.inode.kind === "directory") {
          for (const [name, inode] of [...at.inode.children]) {
            empty({ ...at, parent: at.inode, name, path: join(at.path, name), inode, mountPoint: false });
          }
        }
        this.fs.remove(at);
      };
      empty(found);
      this.changed(found.path);
    });
  }

  space(path: string): Promise<FsSpace> {
    return this.attempt("space", path, () => {
      const { fs } = this.fs.need(path).inode;
      const total = fs.limit ?? 100 * 2 ** 30;
      const room = total - (fs.limit === undefined ? 0 : this.fs.used(this.fs.need(path).inode));
      return fs.space ?? { total, free: room, available: room, inodes: 1_000_000, inodesFree: 900_000 };
    });
  }

  async *kernelLog(signal: AbortSignal): AsyncIterable<string> {
    if (!this.kernelRecords) throw hostError("kernelLog", "/dev/kmsg", errno("ENOENT"));
    yield* this.kernelRecords.values(signal);
  }

  async *watch(path: string, signal: AbortSignal): AsyncIterable<readonly string[] | void> {
    this.check("watch", path);
    let woken = false;
    let notify = () => {};
    const removed: string[] = [];
    const watcher = {
      path,
      wake: (gone?: string) => {
        woken = true;
        if (gone !== undefined) removed.push(gone);
        notify();
      },
    };
    const stop = () => notify();
    this.watchers.add(watcher);
    signal.addEventListener("abort", stop, { once: true });
    try {
      while (!signal.aborted) {
        if (!woken) await new Promise<void>((resolve) => notify = resolve);
        if (signal.aborted) return;
        if (!woken) continue;
        woken = false;
        yield removed.splice(0);
      }
    } finally {
      this.watchers.delete(watcher);
      signal.removeEventListener("abort", stop);
    }
  }

  lock(path: string): Promise<Disposable | undefined> {
    return this.attempt("lock", path, () => {
      if (this.locks.has(path)) return undefined;
      if (!this.fs.find(path, true).inode) this.store(path, new Uint8Array(), 0o600);
      return this.holdLock(path);
    });
  }

  mount(options: { source: string; target: string; type?: string; options?: string[] }): Promise<void> {
    return this.attempt("mount", options.target, () => {
      this.fs.mount(options);
      this.changed(options.target);
    });
  }

  mountBelow(options: { root: string; path: string; target: string; mode?: number }): Promise<void> {
    return this.attempt("mountBelow", join(options.root, options.path), () => {
      const parts = options.path.split("/").filter((p) => p !== "" && p !== ".");
      if (options.path.startsWith("/") || parts.includes("..")) throw errno("EINVAL");
      let at = options.root;
      for (const part of parts) {
        at = join(at, part);
        if (this.fs.find(at, false).inode?.kind === "symlink") throw errno("ELOOP");
        if (!this.exists(at)) this.mkdirs(at, options.mode ?? 0o755);
      }
      const source = this.fs.need(at, false);
      if (!this.exists(options.target)) {
        if (source.inode.kind === "directory") this.mkdirs(options.target, 0o750);
        else this.store(options.target, new Uint8Array(), 0o640);
      }
      this.fs.mount({ source: at, target: options.target, options: ["bind"] });
      this.changed(options.target);
    });
  }

  unmount(target: string): Promise<void> {
    return this.attempt("unmount", target, () => {
      if (this.missingOk(() => this.fs.unmount(target))) this.changed(target);
    });
  }

  mounts(): Promise<MountEntry[]> {
    return this.attempt("mounts", "", () => this.fs.table());
  }

  async run(
    command: string,
    args: string[],
    options: { stdin?: string; env?: Record<string, string>; signal?: AbortSignal } = {},
  ): Promise<CommandResult> {
    const { signal, ...rest } = options;
    if (signal?.aborted) throw abortedBy(signal);
    record(this.commands, { command, args, ...(rest.stdin === undefined ? {} : { stdin: rest.stdin }) });
    this.check("run", command);
    const answer = this.onRun?.(command, args, rest);
    if (answer === undefined) throw hostError("run", command, errno("ENOENT"));
    return await raceAbort(answer, signal);
  }

  kill(pid: number, signal: "SIGKILL" | "SIGTERM" | "SIGHUP"): void {
    this.check("kill", String(pid));
    if (!Number.isSafeInteger(pid) || pid <= 1) throw hostError("kill", String(pid), errno("EINVAL"));
    record(this.kills, { pid, signal });
    this.onKill?.(pid, signal);
  }

  hostname(): string {
    return this.name;
  }

  capacity(): Promise<{ memory: number; cpus: number; swap: number }> {
    return this.attempt("capacity", "", () => ({ ...this.capacityNow }));
  }
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
