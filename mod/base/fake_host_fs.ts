import type { Clock } from "./clock.ts";
import type { FileInfo, FileKind, FsSpace, MountEntry } from "./host.ts";

/** An error as the kernel would give it. */
export function errno(name: string): Error {
  return Object.assign(new Error(`${texts[name] ?? name} (${name})`), { code: name });
}

const texts: Record<string, string> = {
  EACCES: "Permission denied",
  EBUSY: "Device or resource busy",
  EEXIST: "File exists",
  EINVAL: "Invalid argument",
  EISDIR: "Is a directory",
  ELOOP: "Too many levels of symbolic links",
  EMFILE: "Too many open files",
  ENODEV: "No such device",
  ENOENT: "No such file or directory",
  ENOSPC: "No space left on device",
  ENOTDIR: "Not a directory",
  ENOTEMPTY: "Directory not empty",
  EROFS: "Read-only file system",
  EXDEV: "Invalid cross-device link",
};

/** Hooks of a file system that the kernel would make up, such as a cgroup hierarchy. */
export interface KernelFs {
  /** Files that a new directory has from the start. */
  files(path: string): Record<string, string>;
  /** Called before a control file is written; returns the text to store, or throws. */
  onWrite?(path: string, data: string): string;
}

/** One file system: what a mount shows. */
export interface FakeFs {
  readonly dev: number;
  readonly type: string;
  /** Bytes that fit, for tmpfs with a size; undefined means no limit. */
  readonly limit?: number;
  readonly kernel?: KernelFs;
  space?: FsSpace;
}

/** One inode. */
export interface Inode {
  readonly kind: FileKind;
  readonly fs: FakeFs;
  readonly ino: number;
  mode: number;
  uid: number;
  gid: number;
  mtimeMs: number;
  data: Uint8Array;
  /** Where a link points. */
  readonly link: string;
  readonly children: Map<string, Inode>;
}

interface FakeMount {
  readonly entry: MountEntry;
  readonly root: Inode;
  /** The inode that it hides. */
  readonly over: Inode;
  readonly readOnly: boolean;
}

/** Where a path led: its parent's inode and true path, its own name, and the inode if there is one. */
export interface Found {
  readonly parent: Inode;
  readonly name: string;
  readonly path: string;
  readonly inode: Inode | undefined;
  readonly readOnly: boolean;
  /** True when a mount is attached at the path itself. */
  readonly mountPoint: boolean;
}

/** The tree of inodes and mounts behind FakeHost. Synchronous, and throws kernel-like errors. */
export class FakeTree {
  readonly #clock: Pick<Clock, "now">;
  readonly #mounts: FakeMount[] = [];
  readonly root: Inode;
  #ino = 1;
  #dev = 1;
  #mountId = 1;

  constructor(clock: Pick<Clock, "now">) {
    this.#clock = clock;
    this.root = this.inode("directory", this.newFs("ext4"), { mode: 0o755 });
  }

  newFs(type: string, options: { limit?: number; kernel?: KernelFs } = {}): FakeFs {
    return { dev: this.#dev++, type, ...options };
  }

  inode(kind: FileKind, fs: FakeFs, options: { mode?: number; link?: string } = {}): Inode {
    return {
      kind,
      fs,
      ino: this.#ino++,
      mode: options.mode ?? (kind === "symlink" ? 0o777 : 0o644),
      uid: 0,
      gid: 0,
      mtimeMs: this.#clock.now(),
      data: new Uint8Array(),
      link: options.link ?? "",
      children: new Map(),
    };
  }

  touch(inode: Inode): void {
    inode.mtimeMs = this.#clock.now();
  }

  /** Finds a path; throws ENOENT, ENOTDIR or ELOOP when a part before the last cannot be passed. */
  find(path: string, follow: boolean): Found {
    if (!path.startsWith("/") || path.includes("\0")) throw errno("EINVAL");
    let links = 0;
    const todo = path.split("/").filter((s) => s !== "" && s !== ".").reverse();
    if (path.length > 4096 || todo.some((s) => s.length > 255)) throw errno("ENAMETOOLONG");
    const top = this.#enter(this.root, false);
    const trail: { inode: Inode; name: string; readOnly: boolean; mountPoint: boolean }[] = [
      { ...top, name: "" },
    ];
    const last = () => trail.at(-1)!;
    const pathOf = () => "/" + trail.slice(1).map((t) => t.name).join("/");
    for (let name = todo.pop(); name !== undefined; name = todo.pop()) {
      const here = last();
      if (here.inode.kind !== "directory") throw errno("ENOTDIR");
      if (name === "..") {
        if (trail.length > 1) trail.pop();
        continue;
      }
      const child = here.inode.children.get(name);
      if (!child) {
        if (todo.length > 0) throw errno("ENOENT");
        const readOnly = here.readOnly;
        const parent = pathOf();
        return {
          parent: here.inode,
          name,
          path: parent === "/" ? `/${name}` : `${parent}/${name}`,
          inode: undefined,
          readOnly,
          mountPoint: false,
        };
      }
      if (child.kind === "symlink" && (follow || todo.length > 0)) {
        if (++links > 40) throw errno("ELOOP");
        if (child.link.startsWith("/")) trail.length = 1;
        todo.push(...child.link.split("/").filter((s) => s !== "" && s !== ".").reverse());
        continue;
      }
      trail.push({ ...this.#enter(child, here.readOnly), name });
    }
    const end = last();
    return {
      parent: trail.at(-2)?.inode ?? end.inode,
      name: end.name,
      path: pathOf(),
      inode: end.inode,
      readOnly: end.readOnly,
      mountPoint: end.mountPoint,
    };
  }

  /** The inode that shows at a place: the root of the newest mount over it, if any. */
  #enter(inode: Inode, readOnly: boolean): { inode: Inode; readOnly: boolean; mountPoint: boolean } {
    let mountPoint = false;
    for (let again = true; again;) {
      again = false;
      for (const mount of this.#mounts) {
        if (mount.over === inode && mount.root !== inode) {
          ({ root: inode, readOnly } = mount);
          mountPoint = again = true;
          break;
        }
      }
    }
    return { inode, readOnly, mountPoint };
  }

  /** Finds something that must be there. */
  need(path: string, follow = true): Found & { inode: Inode } {
    const found = this.find(path, follow);
    if (!found.inode) throw errno("ENOENT");
    return { ...found, inode: found.inode };
  }

  /** Puts an inode at a place that `find` told to be empty. */
  attach(found: Found, inode: Inode): void {
    if (found.readOnly) throw errno("EROFS");
    found.parent.children.set(found.name, inode);
    this.touch(found.parent);
  }

  mkdir(path: string, mode: number): string | undefined {
    const found = this.find(path, true);
    if (found.inode) {
      if (found.inode.kind !== "directory") throw errno("EEXIST");
      return undefined;
    }
    const fs = found.parent.fs;
    const inode = this.inode("directory", fs, { mode });
    this.attach(found, inode);
    this.#fill(inode, found.path);
    return found.path;
  }

  #fill(directory: Inode, path: string): void {
    for (const [name, text] of Object.entries(directory.fs.kernel?.files(path) ?? {})) {
      const file = this.inode("file", directory.fs);
      file.data = new TextEncoder().encode(text);
      directory.children.set(name, file);
    }
  }

  /** Removes one entry; kernel-made files go with their directory. */
  remove(found: Found & { inode: Inode }): void {
    if (found.readOnly) throw errno("EROFS");
    if (found.mountPoint || found.inode === this.root) throw errno("EBUSY");
    if (found.inode.kind === "directory") {
      const kernel = found.inode.fs.kernel !== undefined;
      if ([...found.inode.children.values()].some((c) => !kernel || c.kind === "directory")) throw errno("ENOTEMPTY");
      const procs = found.inode.children.get("cgroup.procs");
      if (kernel && procs && procs.data.length > 0) throw errno("EBUSY");
      if (this.#mounts.some((m) => m.over === found.inode)) throw errno("EBUSY");
    }
    found.parent.children.delete(found.name);
    this.touch(found.parent);
  }

  /** Bytes used below an inode. */
  used(inode: Inode): number {
    let sum = inode.data.length;
    for (const child of inode.children.values()) sum += this.used(child);
    return sum;
  }

  /** Throws ENOSPC when `more` bytes don't fit in the file system of the inode. */
  room(fs: FakeFs, more: number): void {
    if (fs.limit === undefined) return;
    const root = this.#mounts.find((m) => m.root.fs === fs)?.root;
    if (root && this.used(root) + more > fs.limit) throw errno("ENOSPC");
  }

  mount(options: { source: string; target: string; type?: string; options?: string[]; kernel?: KernelFs }): void {
    const flags = (options.options ?? []).flatMap((o) => o.split(","));
    const target = this.need(options.target);
    const remount = flags.includes("remount");
    const same = this.#mounts.findLastIndex((m) => m.entry.target === target.path);
    const readOnly = flags.includes("ro") || (!flags.includes("rw") && remount && !!this.#mounts[same]?.readOnly);
    if (remount) {
      const old = this.#mounts[same];
      if (!old) throw errno("EINVAL");
      this.#mounts[same] = { ...old, readOnly, entry: { ...old.entry, options: [readOnly ? "ro" : "rw"] } };
      return;
    }
    const onlyPropagation = flags.find((f) => /^r?(shared|private|slave|unbindable)$/.test(f));
    if (onlyPropagation && !options.type && !flags.some((f) => f === "bind" || f === "rbind")) {
      const old = this.#mounts[same];
      if (!old) throw errno("EINVAL");
      const shared = onlyPropagation.endsWith("shared") ? ["shared:1"] : [];
      this.#mounts[same] = { ...old, entry: { ...old.entry, propagation: shared } };
      return;
    }
    const bind = flags.includes("bind") || flags.includes("rbind");
    let root: Inode, type: string, source: string, within = "/";
    if (bind) {
      const found = this.need(options.source);
      if ((found.inode.kind === "directory") !== (target.inode.kind === "directory")) throw errno("ENOTDIR");
      root = found.inode;
      type = root.fs.type;
      source = options.source;
      within = found.path;
    } else {
      const size = flags.map((f) => /^size=(\d+)$/.exec(f)?.[1]).find((s) => s !== undefined);
      const fs = this.newFs(options.type ?? "none", {
        ...(size === undefined ? {} : { limit: Number(size) }),
        ...(options.kernel ? { kernel: options.kernel } : {}),
      });
      const mode = flags.map((f) => /^mode=([0-7]+)$/.exec(f)?.[1]).find((s) => s !== undefined);
      root = this.inode("directory", fs, { mode: mode ? parseInt(mode, 8) : fs.type === "tmpfs" ? 0o1777 : 0o755 });
      this.#fill(root, target.path);
      type = fs.type;
      source = options.source;
    }
    // A bind of a directory over itself hides nothing, but stands in the table.
    this.#mounts.push({
      root,
      over: target.inode,
      readOnly,
      entry: {
        id: this.#mountId++,
        source,
        target: target.path,
        type,
        root: within,
        options: [readOnly ? "ro" : "rw", ...flags.filter((f) => /^(size|mode|noswap)\b/.test(f))],
        propagation: [],
      },
    });
  }

  /** Takes the newest mount at the target away; false when there is none. */
  unmount(target: string): boolean {
    const path = this.find(target, true).path;
    const at = this.#mounts.findLastIndex((m) => m.entry.target === path);
    if (at < 0) return false;
    if (this.#mounts.some((m, i) => i > at && m.entry.target.startsWith(`${path}/`))) throw errno("EBUSY");
    this.#mounts.splice(at, 1);
    return true;
  }

  /** Mount points at or below a path. */
  mountsBelow(path: string): string[] {
    return this.#mounts.map((m) => m.entry.target).filter((t) => t === path || t.startsWith(`${path}/`));
  }

  table(): MountEntry[] {
    const root: MountEntry = {
      id: 0,
      source: "/dev/root",
      target: "/",
      type: "ext4",
      root: "/",
      options: ["rw"],
      propagation: [],
    };
    return [root, ...this.#mounts.map((m) => m.entry)];
  }
}

/** The facts of an inode. */
export function infoOf(inode: Inode): FileInfo {
  return {
    kind: inode.kind,
    size: inode.kind === "symlink" ? inode.link.length : inode.data.length,
    mode: inode.mode,
    uid: inode.uid,
    gid: inode.gid,
    dev: inode.fs.dev,
    ino: inode.ino,
    mtimeMs: inode.mtimeMs,
  };
}
