/** A part of a file, bytes. */
export interface ByteRange {
  readonly start: number;
  readonly length: number;
}

/**
 * Reads a Range header. Undefined: send all (no header, or several ranges, which HTTP lets a server answer whole).
 */
export function parseRange(
  header: string | undefined,
  size: number,
): ByteRange | "unsatisfiable" | "malformed" | undefined {
  if (header === undefined) return undefined;
  const list = /^bytes=(.*)$/.exec(header)?.[1];
  if (list === undefined) return "malformed";
  const parts = list.split(",").map((each) => each.trim()).filter((each) => each !== "");
  if (parts.length !== 1) return undefined;
  const [, from, to] = /^(\d{0,18})\s*-\s*(\d{0,18})$/.exec(parts[0] ?? "") ?? [];
  if (from === undefined || to === undefined || (from === "" && to === "")) return "malformed";
  if (from === "") {
    const length = Math.min(Number(to), size);
    return length === 0 ? "unsatisfiable" : { start: size - length, length };
  }
  const start = Number(from), end = to === "" ? size - 1 : Math.min(Number(to), size - 1);
  if (to !== "" && Number(to) < start) return "malformed";
  return start >= size ? "unsatisfiable" : { start, length: end - start + 1 };
}

const byExtension: Readonly<Record<string, string>> = {
  css: "text/css; charset=utf-8",
  gz: "application/gzip",
  htm: "text/html; charset=utf-8",
  html: "text/html; charset=utf-8",
  json: "application/json",
  log: "text/plain; charset=utf-8",
  svg: "image/svg+xml",
  txt: "text/plain; charset=utf-8",
  xml: "text/xml; charset=utf-8",
};

/** A file's content type by its name, else by whether its beginning is text. */
export function contentTypeOf(name: string, beginning: Uint8Array): string {
  const extension = /\.([^./]+)$/.exec(name)?.[1]?.toLowerCase() ?? "";
  if (Object.hasOwn(byExtension, extension)) return byExtension[extension] ?? "application/octet-stream";
  if (beginning[0] === 0x1f && beginning[1] === 0x8b && beginning[2] === 8) return "application/x-gzip";
  // Tab, line feed, form feed, carriage return and escape are text; other control bytes are not.
  const binary = beginning.some((byte) => byte < 0x20 && ![0x09, 0x0a, 0x0c, 0x0d, 0x1b].includes(byte));
  return binary ? "application/octet-stream" : "text/plain; charset=utf-8";
}
