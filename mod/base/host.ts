/** What a path is. */
export type FileKind = "file" | "directory" | "symlink" | "socket" | "fifo" | "charDevice" | "blockDevice";

/** Facts about a path. */
export interface FileInfo {
  readonly kind: FileKind;
  /** Bytes. */
  readonly size: number;
  /** Permission bits, including setuid, setgid and sticky (07777). */
  readonly mode: number;
  readonly uid: number;
  readonly gid: number;
  readonly dev: number;
  readonly ino: number;
  /** Milliseconds since the epoch. */
  readonly mtimeMs: number;
}

/** A file open for reading. Disposing closes it; a read after that rejects. */
export interface OpenFile extends Disposable {
  /**
   * Reads into a buffer from this place of the file; returns how many bytes it read: fewer than fit when fewer are
   * there, 0 at the end. One read at a time.
   */
  read(into: Uint8Array, at: number): Promise<number>;
  /** Facts about the open file itself, wherever its name has gone. */
  info(): Promise<FileInfo>;
}

/** A file of the kernel's that stays open. Disposing closes it. */
export interface KeptFile extends Disposable {
  /** What the kernel tells now; undefined when it has gone, or is longer than a value or a short list. */
  read(): string | undefined;
}

/** One line of the mount table. */
export interface MountEntry {
  readonly id: number;
  readonly source: string;
  readonly target: string;
  readonly type: string;
  readonly root: string;
  readonly options: readonly string[];
  /** Optional fields of mountinfo, such as `shared:12`. */
  readonly propagation: readonly string[];
}

/** Room on a file system. */
export interface FsSpace {
  /** Bytes in all, free for root, free for others. */
  readonly total: number;
  readonly free: number;
  readonly available: number;
  readonly inodes: number;
  readonly inodesFree: number;
}

/** What `groupTree` makes of a tree. */
export interface GroupTreeOptions {
  readonly gid: number;
  /** Mode bits that files, and directories, get besides those that they have. */
  readonly fileBits: number;
  readonly directoryBits: number;
  /** Ends the walk between two entries. */
  readonly signal?: AbortSignal;
  /** Told after each entry. */
  readonly onEntry?: () => void;
}

/** How a program ended. */
export interface CommandResult {
  readonly code: number;
  readonly stdout: string;
  readonly stderr: string;
}

/**
 * The machine as the agent uses it: files, mounts, programs, kernel facts. Handed in everywhere, so that unit tests and
 * the simulation run on an in-memory one (fake_host.ts). Every method rejects with a KubeletError of code Host that
 * names the operation and the path and keeps the cause; `isMissing` tells a missing path from other failures.
 */
export interface Host {
  /** Where procfs can be read (a private bind mount under scoped permissions; deno.md). */
  readonly procRoot: string;
  /** Where the cgroup hierarchies are mounted. */
  readonly cgroupRoot: string;

  readText(path: string): Promise<string>;
  /**
   * Reads a file that the kernel makes up (procfs, control groups) at once: such a read takes microseconds and never
   * waits for a disk, and a promise for each would cost many times that. Never for other files: a disk that hangs would
   * hold up the whole agent. Undefined when there is no such file, or its group or process has gone; throws otherwise.
   */
  readTextNow(path: string): string | undefined;
  /**
   * As readTextNow, for a file that is read again and again: stays open, which makes reading it four times cheaper.
   * Undefined when there is no such file. For values and short lists of control groups only.
   */
  keepOpen(path: string): KeptFile | undefined;
  readBytes(path: string, limit?: number): Promise<Uint8Array>;
  /**
   * The last `bytes` bytes of a regular file; what is none (a FIFO, a device) is refused with EINVAL, without waiting for
   * anybody, and with `nofollow` a link at the end of the path with ELOOP.
   */
  readTail(path: string, bytes: number, options?: { nofollow?: boolean }): Promise<Uint8Array>;
  /** Opens a regular file for reading in pieces; what is none (a FIFO, a device) is refused with EINVAL. */
  open(path: string): Promise<OpenFile>;
  /** Writes a file; with `atomic` through a temporary file beside it and a rename. `mode` is set whatever the umask. */
  write(path: string, data: string | Uint8Array, options?: { mode?: number; atomic?: boolean }): Promise<void>;
  /** Writes to a control file that must exist (cgroup and sysctl files): no truncation, no creation. */
  writeControl(path: string, data: string): Promise<void>;
  /** Makes a directory and its parents. `mode` is set on each directory it makes, whatever the umask (default 0755). */
  mkdir(path: string, options?: { mode?: number }): Promise<void>;
  readDir(path: string): Promise<{ name: string; kind: FileKind }[]>;
  /** Follows links; undefined when there is nothing at the path. */
  stat(path: string): Promise<FileInfo | undefined>;
  /** Does not follow a link at the end of the path; undefined when there is nothing at the path. */
  lstat(path: string): Promise<FileInfo | undefined>;
  readLink(path: string): Promise<string>;
  realPath(path: string): Promise<string>;
  symlink(target: string, path: string): Promise<void>;
  rename(from: string, to: string): Promise<void>;
  /**
   * Writes the gzip of a regular file to `to`, replacing it, with the permission bits of the source. Neither is held in
   * memory whole. Nothing is left at `to` when it fails.
   */
  gzip(from: string, to: string, signal?: AbortSignal): Promise<void>;
  chmod(path: string, mode: number): Promise<void>;
  chown(path: string, uid: number, gid: number): Promise<void>;
  /**
   * Gives a directory and all below it to a group and adds mode bits, the innermost first and `path` itself last. No
   * link is followed or changed, also when it is put in the place of something meanwhile, and no other file system is
   * entered. What is right already is not touched.
   */
  groupTree(path: string, options: GroupTreeOptions): Promise<void>;
  /** Removes a file, link or empty directory; a missing path is no error. */
  remove(path: string): Promise<void>;
  /**
   * Removes a directory and all below it without following links and without crossing into another file system:
   * a mount found below is an error (code Host) that names it, and nothing on it is touched. A missing path is no error.
   */
  removeTree(path: string): Promise<void>;
  space(path: string): Promise<FsSpace>;
  /**
   * Yields when something below `path` (a directory, or a file) may have changed, until the signal aborts; with the paths
   * that are known to have been deleted since it last yielded, though they may be there again.
   */
  watch(path: string, signal: AbortSignal): AsyncIterable<readonly string[] | void>;
  /**
   * The kernel's log from now on, the text of each record, until the signal aborts. Iterating rejects when the machine has
   * none, or does not let it be read.
   */
  kernelLog(signal: AbortSignal): AsyncIterable<string>;
  /** Takes the advisory lock of a file for the life of the process; undefined when another process holds it. */
  lock(path: string): Promise<Disposable | undefined>;

  mount(options: { source: string; target: string; type?: string; options?: string[] }): Promise<void>;
  /**
   * Bind-mounts what is at `path` below `root` over `target`, opening it step by step without following any link, so
   * that a container which can write below `root` cannot lead the mount elsewhere. `path` is relative, without `..`;
   * "" is `root` itself. Directories of `path` that are missing are made with `mode`. `target` is made as an empty
   * directory or file when it is missing (its parent must exist).
   */
  mountBelow(options: { root: string; path: string; target: string; mode?: number }): Promise<void>;
  /** Unmounts; a target that is not mounted is no error. */
  unmount(target: string): Promise<void>;
  mounts(): Promise<MountEntry[]>;

  /** Runs a program to its end. `stdin` is closed after it was written; the signal kills the program. */
  run(command: string, args: string[], options?: {
    stdin?: string;
    env?: Record<string, string>;
    signal?: AbortSignal;
  }): Promise<CommandResult>;
  /** Sends a signal to a process; a process that is gone is no error. */
  kill(pid: number, signal: "SIGKILL" | "SIGTERM" | "SIGHUP"): void;
  hostname(): string;
  /** Bytes of memory and number of usable CPUs. */
  capacity(): Promise<{ memory: number; cpus: number; swap: number }>;
}
