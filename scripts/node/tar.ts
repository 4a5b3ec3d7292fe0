/** One member of an archive. */
export type TarEntry =
  & {
    /** Relative path, without a slash at either end. */
    readonly path: string;
    /** Permission bits; 0755 for directories, 0644 for files when not given. */
    readonly mode?: number;
    readonly uid?: number;
    readonly gid?: number;
  }
  & (
    | { readonly kind: "directory" }
    | { readonly kind: "file"; readonly data: Uint8Array | string }
    | { readonly kind: "symlink"; readonly target: string }
  );

const block = 512;
const encoder = new TextEncoder();
const flags = { file: "0", symlink: "2", directory: "5" } as const;

/**
 * An archive in the POSIX ustar format, with time stamps of 0 so that the same members give the same bytes.
 * Throws a RangeError for a name that the format has no room for (100 bytes, or 155 + 100 around a slash).
 */
export function tar(entries: readonly TarEntry[]): Uint8Array {
  const parts = entries.flatMap((entry) => {
    const data = entry.kind === "file" ? bytesOf(entry.data) : new Uint8Array();
    return [header(entry, data.length), data, new Uint8Array((block - data.length % block) % block)];
  });
  parts.push(new Uint8Array(2 * block));
  const out = new Uint8Array(parts.reduce((sum, part) => sum + part.length, 0));
  let at = 0;
  for (const part of parts) {
    out.set(part, at);
    at += part.length;
  }
  return out;
}

function bytesOf(data: Uint8Array | string): Uint8Array {
  return typeof data === "string" ? encoder.encode(data) : data;
}

function header(entry: TarEntry, size: number): Uint8Array {
  const out = new Uint8Array(block);
  const put = (at: number, room: number, text: string) => {
    const bytes = encoder.encode(text);
    if (bytes.length > room) throw new RangeError(`tar: ${entry.path}: no room for ${JSON.stringify(text)}`);
    out.set(bytes, at);
  };
  const number = (at: number, room: number, value: number) =>
    put(at, room, value.toString(8).padStart(room - 1, "0") + "\0");
  const { prefix, name } = split(entry.kind === "directory" ? `${entry.path}/` : entry.path);
  put(0, 100, name);
  number(100, 8, entry.mode ?? (entry.kind === "directory" ? 0o755 : entry.kind === "symlink" ? 0o777 : 0o644));
  number(108, 8, entry.uid ?? 0);
  number(116, 8, entry.gid ?? 0);
  number(124, 12, size);
  number(136, 12, 0);
  put(148, 8, " ".repeat(8)); // the checksum counts its own field as blanks
  put(156, 1, flags[entry.kind]);
  if (entry.kind === "symlink") put(157, 100, entry.target);
  put(257, 8, "ustar\x0000");
  put(345, 155, prefix);
  put(148, 8, out.reduce((sum, byte) => sum + byte, 0).toString(8).padStart(6, "0") + "\0 ");
  return out;
}

function split(path: string): { prefix: string; name: string } {
  const length = (text: string) => encoder.encode(text).length;
  if (length(path) <= 100) return { prefix: "", name: path };
  for (let at = path.indexOf("/"); at > 0; at = path.indexOf("/", at + 1)) {
    const prefix = path.slice(0, at), name = path.slice(at + 1);
    if (name.length > 0 && length(prefix) <= 155 && length(name) <= 100) return { prefix, name };
  }
  throw new RangeError(`tar: path too long: ${path}`);
}
