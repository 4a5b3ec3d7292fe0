import { statfs } from "node:fs/promises";
import { concatBytes } from "./bytes.ts";
import type { FileInfo, FileKind, FsSpace, Host, MountEntry, OpenFile } from "./host.ts";
import { HostError, hostError, isMissing } from "./host_error.ts";
import { groupTree } from "./deno_group_tree.ts";
import { gzipFile } from "./deno_gzip.ts";
import { kernelLog } from "./deno_kernel_log.ts";
import { makeFileKeeper } from "./deno_kept_file.ts";
import { killProcess } from "./deno_kill.ts";
import { makeLink } from "./deno_link.ts";
import { mount, mountBelow, unmount } from "./deno_mount.ts";
import { beyond, isRefused, mkdirOutside, touchOutside } from "./deno_outside.ts";
import { makeNowReader } from "./deno_read_now.ts";
import { readTail } from "./deno_read_tail.ts";
import { removeDirectoryTree } from "./deno_remove_tree.ts";
import { run } from "./deno_run.ts";
import { watchPath } from "./deno_watch.ts";
import { parseMountinfo } from "./mountinfo.ts";

interface KindFlags {
  isFile: boolean;
  isDirectory: boolean;
  isSymlink: boolean;
  isSocket?: boolean | null;
  isFifo?: boolean | null;
  isCharDevice?: boolean | null;
  isBlockDevice?: boolean | null;
}

function kindOf(flags: KindFlags): FileKind | undefined {
  if (flags.isSymlink) return "symlink";
  if (flags.isDirectory) return "directory";
  if (flags.isFile) return "file";
  if (flags.isSocket) return "socket";
  if (flags.isFifo) return "fifo";
  if (flags.isCharDevice) return "charDevice";
  if (flags.isBlockDevice) return "blockDevice";
  return undefined;
}

function infoOf(info: Deno.FileInfo): FileInfo {
  return {
    kind: kindOf(info) ?? "file",
    size: info.size,
    mode: (info.mode ?? 0) & 0o7777,
    uid: info.uid ?? 0,
    gid: info.gid ?? 0,
    dev: info.dev,
    ino: info.ino ?? 0,
    mtimeMs: info.mtime?.getTime() ?? 0,
  };
}

async function guard<T>(operation: string, path: string, body: () => Promise<T>): Promise<T> {
  try {
    return await body();
  } catch (thrown) {
    throw hostError(operation, path, thrown);
  }
}

async function optional<T>(operation: string, path: string, body: () => Promise<T>): Promise<T | undefined> {
  try {
    return await body();
  } catch (thrown) {
    if (isMissing(thrown)) return undefined;
    throw hostError(operation, path, thrown);
  }
}

async function readUpTo(file: Deno.FsFile, limit: number): Promise<Uint8Array> {
  const chunks: Uint8Array[] = [];
  let left = limit;
  while (left > 0) {
    const buffer = new Uint8Array(Math.min(left, 65536));
    const n = await file.read(buffer);
    if (n === null) break;
    chunks.push(buffer.subarray(0, n));
    left -= n;
  }
  return concatBytes(chunks);
}

async function openRegular(path: string): Promise<OpenFile> {
  // Opening a FIFO would hang, and holds a thread of the process while it does.
  const found = await Deno.stat(path);
  if (!found.isFile) {
    throw new HostError("open", path, "EINVAL", `open ${path}: is no regular file: only those can be read in pieces`);
  }
  const file = await Deno.open(path);
  return {
    read: (into, at) =>
      guard("read", path, async () => {
        await file.seek(at, Deno.SeekMode.Start);
        let filled = 0;
        while (filled < into.length) {
          const n = await file.read(into.subarray(filled));
          if (n === null || n === 0) break;
          filled += n;
        }
        return filled;
      }),
    info: () => guard("stat", path, async () => infoOf(await file.stat())),
    [Symbol.dispose]: () => file.close(),
  };
}

async function writeAll(file: Deno.FsFile, data: Uint8Array): Promise<void> {
  for (let at = 0; at < data.length;) at += await file.write(data.subarray(at));
}

async function writeAtomic(path: string, data: Uint8Array, mode: number | undefined): Promise<void> {
  const slash = path.lastIndexOf("/");
  // Hidden, so that readers of the directory (static pods, plugins) leave it alone.
  const temporary = `${path.slice(0, slash + 1)}.${path.slice(slash + 1)}.${crypto.randomUUID().slice(0, 8)}.tmp`;
  try {
    {
      using file = await Deno.open(temporary, { write: true, createNew: true, mode: mode ?? 0o644 });
      await writeAll(file, data);
      if (mode !== undefined) await Deno.chmod(temporary, mode);
      // Without it a power cut can leave the new name with no content.
      await file.syncData();
    }
    await Deno.rename(temporary, path);
  } catch (thrown) {
    await optional("remove", temporary, () => Deno.remove(temporary));
    throw thrown;
  }
}

async function makeDirectory(path: string, mode: number): Promise<void> {
  try {
    await Deno.mkdir(path, { mode });
    await Deno.chmod(path, mode);
  } catch (thrown) {
    if (isMissing(thrown) && path.lastIndexOf("/") > 0 && !(await Deno.lstat(path).catch(() => undefined))) {
      await makeDirectory(path.slice(0, path.lastIndexOf("/")), mode);
      return await makeDirectory(path, mode);
    }
    // There now: it was before, or somebody has made it since (that its parent was missing is no matter then).
    const there = isMissing(thrown) || thrown instanceof Deno.errors.AlreadyExists ? await Deno.stat(path) : undefined;
    if (!there?.isDirectory) throw thrown;
  }
}

function numberIn(text: string, key: string): number {
  return Number(new RegExp(`^${key}:\\s+(\\d+) kB$`, "m").exec(text)?.[1] ?? 0) * 1024;
}

/**
 * The real machine. `procRoot`, `cgroupRoot`, `sysRoot` and `kernelLog` are where procfs, the cgroup hierarchies, sysfs
 * and /dev/kmsg can be read: private bind mounts under scoped permissions (deno.md). Outside of the paths that may be read and written, it
 * can only tell what a path is, and make directories and empty files (docs/permissions.md). Mounting runs /usr/bin/mount and /usr/bin/umount; under scoped permissions
 * symbolic links are made by /usr/bin/ln and signals sent by /usr/bin/kill. Permissions: read and write of the agent's directories, procRoot and
 * cgroupRoot, run of those programs, and sys of hostname, statfs and uid.
 */
export function createDenoHost(
  options: { procRoot?: string; cgroupRoot?: string; sysRoot?: string; kernelLog?: string } = {},
): Host {
  const procRoot = options.procRoot ?? "/proc";
  const { sysRoot = "/sys" } = options;
  const inSys = (path: string) => path.startsWith("/sys/") ? `${sysRoot}${path.slice("/sys".length)}` : path;
  const mounts = (): Promise<MountEntry[]> =>
    guard(
      "mounts",
      `${procRoot}/self/mountinfo`,
      async () => parseMountinfo(await Deno.readTextFile(`${procRoot}/self/mountinfo`)),
    );
  const context = { procRoot, run, mounts };
  return {
    procRoot,
    cgroupRoot: options.cgroupRoot ?? "/sys/fs/cgroup",
    readText: (path) => guard("readText", path, () => Deno.readTextFile(inSys(path))),
    readTextNow: makeNowReader(),
    keepOpen: makeFileKeeper(),
    readBytes: (path, limit) =>
      guard("readBytes", path, async () => {
        if (limit === undefined) return await Deno.readFile(path);
        using file = await Deno.open(path);
        return await readUpTo(file, limit);
      }),
    readTail: (path, bytes, options) => guard("readTail", path, () => readTail(path, bytes, options)),
    open: (path) => guard("open", path, () => openRegular(path)),
    write: (path, data, { mode, atomic } = {}) =>
      guard("write", path, async () => {
        const bytes = typeof data === "string" ? new TextEncoder().encode(data) : data;
        if (atomic) return await writeAtomic(path, bytes, mode);
        let file: Deno.FsFile;
        try {
          file = await Deno.open(path, { write: true, create: true, truncate: true, mode: mode ?? 0o644 });
        } catch (thrown) {
          // Only an empty file may be made anywhere: hostPath volumes of type FileOrCreate.
          if (!isRefused(thrown) || bytes.length > 0) throw thrown;
          return await touchOutside(context, path);
        }
        using _closed = file;
        if (mode !== undefined) await Deno.chmod(path, mode);
        await writeAll(file, bytes);
      }),
    writeControl: (path, data) =>
      guard("writeControl", path, async () => {
        using file = await Deno.open(path, { write: true });
        // One system call: the kernel takes a control file's value whole.
        await file.write(new TextEncoder().encode(data));
      }),
    mkdir: (path, { mode = 0o755 } = {}) =>
      guard("mkdir", path, async () => {
        try {
          await makeDirectory(path.replace(/(?<=.)\/+$/, ""), mode);
        } catch (thrown) {
          if (!isRefused(thrown)) throw thrown;
          await mkdirOutside(context, path, mode);
        }
      }),
    readDir: (path) =>
      guard("readDir", path, async () => {
        const entries: { name: string; kind: FileKind }[] = [];
        for await (const entry of Deno.readDir(inSys(path))) {
          const kind = kindOf(entry) ?? kindOf(await Deno.lstat(`${inSys(path)}/${entry.name}`).catch(() => entry));
          if (kind !== undefined) entries.push({ name: entry.name, kind });
        }
        return entries;
      }),
    stat: (path) => optional("stat", path, async () => infoOf(await beyond(procRoot, path, Deno.stat))),
    lstat: (path) => optional("lstat", path, async () => infoOf(await beyond(procRoot, path, Deno.lstat))),
    readLink: (path) => guard("readLink", path, () => beyond(procRoot, path, Deno.readLink)),
    realPath: (path) => guard("realPath", path, () => beyond(procRoot, path, Deno.realPath)),
    symlink: (target, path) => makeLink(context, target, path),
    rename: (from, to) => guard("rename", from, () => Deno.rename(from, to)),
    gzip: (from, to, signal) => guard("gzip", from, () => gzipFile(from, to, signal)),
    chmod: (path, mode) => guard("chmod", path, () => Deno.chmod(path, mode)),
    chown: (path, uid, gid) => guard("chown", path, () => Deno.chown(path, uid, gid)),
    groupTree: (path, options) => guard("groupTree", path, () => groupTree(procRoot, path, options)),
    remove: (path) => optional("remove", path, () => Deno.remove(path)),
    removeTree: (path) =>
      guard("removeTree", path, async () => {
        const info = await optional("lstat", path, () => Deno.lstat(path));
        if (!info) return;
        if (!info.isDirectory) return void await optional("remove", path, () => Deno.remove(path));
        const real = await Deno.realPath(path);
        const mounted = (await mounts()).find((m) => m.target === real || m.target.startsWith(`${real}/`));
        if (mounted) {
          throw new HostError(
            "removeTree",
            path,
            "EBUSY",
            `removeTree ${path}: ${mounted.target} is a mount point: nothing was removed (unmount it first)`,
          );
        }
        await removeDirectoryTree(path, procRoot);
      }),
    space: (path): Promise<FsSpace> =>
      guard("space", path, async () => {
        const s = await beyond(procRoot, path, (seen) => statfs(seen));
        return {
          total: s.blocks * s.bsize,
          free: s.bfree * s.bsize,
          available: s.bavail * s.bsize,
          inodes: s.files,
          inodesFree: s.ffree,
        };
      }),
    watch: watchPath,
    kernelLog: (signal) => kernelLog(options.kernelLog ?? "/dev/kmsg", signal),
    lock: (path) =>
      guard("lock", path, async () => {
        const file = await Deno.open(path, { write: true, create: true, mode: 0o600 });
        if (await file.tryLock(true)) {
          const release = () => {
            // closing alone leaves the lock for a moment with a child that was forked and has not become its program yet
            file.unlockSync();
            file.close();
          };
          return { [Symbol.dispose]: release };
        }
        file.close();
        return undefined;
      }),
    mount: (what) => mount(context, what),
    mountBelow: (what) => mountBelow(context, what),
    unmount: (target) => unmount(context, target),
    mounts,
    run,
    kill: killProcess,
    hostname: () => Deno.hostname(),
    capacity: () =>
      guard("capacity", `${procRoot}/meminfo`, async () => {
        const memory = await Deno.readTextFile(`${procRoot}/meminfo`);
        const stat = await Deno.readTextFile(`${procRoot}/stat`);
        return {
          memory: numberIn(memory, "MemTotal"),
          swap: numberIn(memory, "SwapTotal"),
          cpus: stat.match(/^cpu\d+ /gm)?.length ?? navigator.hardwareConcurrency,
        };
      }),
  };
}
