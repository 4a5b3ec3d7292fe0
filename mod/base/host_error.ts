import { KubeletError } from "./errors.ts";

/** What an operator can do about the kernel's refusals that are seen most. */
const remedies: Record<string, string> = {
  ENOSPC: "no space or no inodes left on that file system: free some, or move the directory to a larger one",
  EDQUOT: "the disk quota is used up: free some space or raise the quota",
  EROFS: "the file system is read-only: mount it read-write, or choose another directory",
  EACCES: "permission denied: this must run as root, and no security module may forbid the path",
  EPERM: "not permitted: this must run as root with the capability for it, and the file must not be immutable",
  EMFILE: "too many open files: raise the process's limit (LimitNOFILE= or ulimit -n)",
  ENFILE: "too many open files on the machine: raise fs.file-max",
  EBUSY: "it is in use: a process or a mount still holds it",
  ELOOP: "too many symbolic links in the path",
  EIO: "input/output error: check the disk and the kernel log",
  ESTALE: "the network file system lost the file: remount it",
};

/** Watches have limits of their own behind the same error numbers. */
const watchRemedies: Record<string, string> = {
  ENOSPC: "no inotify watches left: raise fs.inotify.max_user_watches",
  EMFILE: "no inotify instances left: raise fs.inotify.max_user_instances, or the limit of open files",
};

/** Names of the run-time's error classes that come without an error number. */
const byName: Record<string, string> = {
  NotFound: "ENOENT",
  PermissionDenied: "EACCES",
  NotCapable: "NOTCAPABLE",
  AlreadyExists: "EEXIST",
  NotADirectory: "ENOTDIR",
  IsADirectory: "EISDIR",
  FilesystemLoop: "ELOOP",
  Busy: "EBUSY",
};

/** A refused operation on the machine: which one, on which path, and the kernel's error name (such as `ENOSPC`). */
export class HostError extends KubeletError {
  override readonly name = "HostError";
  constructor(
    readonly operation: string,
    readonly path: string,
    readonly errno: string,
    message: string,
    options?: { cause?: unknown },
  ) {
    super("Host", message, options);
  }
}

/** The kernel's name of an error (`ENOENT`), or "" when it has none. */
export function errnoOf(thrown: unknown): string {
  if (thrown instanceof HostError) return thrown.errno;
  if (!(thrown instanceof Error)) return "";
  const code = (thrown as { code?: unknown }).code;
  if (typeof code === "string" && /^E[A-Z0-9]+$/.test(code)) return code;
  const number = /\(os error (\d+)\)/.exec(thrown.message)?.[1];
  return (number && byNumber[number]) ?? byName[thrown.name] ?? "";
}

const byNumber: Record<string, string> = {
  "1": "EPERM",
  "2": "ENOENT",
  "3": "ESRCH",
  "5": "EIO",
  "13": "EACCES",
  "16": "EBUSY",
  "17": "EEXIST",
  "18": "EXDEV",
  "19": "ENODEV",
  "20": "ENOTDIR",
  "21": "EISDIR",
  "22": "EINVAL",
  "23": "ENFILE",
  "24": "EMFILE",
  "28": "ENOSPC",
  "30": "EROFS",
  "36": "ENAMETOOLONG",
  "39": "ENOTEMPTY",
  "40": "ELOOP",
  "95": "EOPNOTSUPP",
  "116": "ESTALE",
  "122": "EDQUOT",
};

/** Wraps what the kernel or run-time threw; an error that is already one of ours is passed on. */
export function hostError(operation: string, path: string, cause: unknown): KubeletError {
  if (cause instanceof KubeletError) return cause;
  const errno = errnoOf(cause);
  // The run-time's own words tell of flags that whoever starts the agent never sees (docs/permissions.md).
  if (errno === "NOTCAPABLE") {
    const why =
      "this was started without that right, which root has for the paths that the configuration names: run it " +
      "as root; kubelet --denolet-permissions FLAGS lists them";
    return new HostError(operation, path, errno, `${operation} ${path}: ${why}`, { cause });
  }
  const remedy = (operation === "watch" ? watchRemedies[errno] : undefined) ?? remedies[errno];
  const text = cause instanceof Error ? cause.message : String(cause);
  return new HostError(operation, path, errno, `${operation} ${path}: ${text}${remedy ? ` (${remedy})` : ""}`, {
    cause,
  });
}

/** True when the error means that there is nothing at the path. */
export function isMissing(thrown: unknown): boolean {
  const errno = errnoOf(thrown);
  return errno === "ENOENT" || errno === "ENOTDIR";
}
