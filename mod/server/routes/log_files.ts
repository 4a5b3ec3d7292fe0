import { drained } from "../drained.ts";
import { httpError, send } from "../respond.ts";
import type { RequestContext } from "../types.ts";
import { contentTypeOf, parseRange } from "./file_headers.ts";

/** Read at once from a file, bytes. */
const chunkSize = 256 << 10;

const escapes: Readonly<Record<string, string>> = {
  "&": "&amp;",
  "<": "&lt;",
  ">": "&gt;",
  '"': "&#34;",
  "'": "&#39;",
};

function escapeHtml(text: string): string {
  return text.replace(/[&<>"']/g, (char) => escapes[char] ?? char);
}

function href(name: string): string {
  const encoded = encodeURIComponent(name).replace(/%(24|26|2B|2C|3A|3B|3D|40)/g, (hex) => decodeURIComponent(hex));
  return encoded.split("/", 1)[0]?.includes(":") ? `./${encoded}` : encoded;
}

/** A directory's page: names in order, directories with a slash. */
export function listing(entries: readonly { name: string; isDirectory: boolean }[]): string {
  const names = entries.map(({ name, isDirectory }) => isDirectory ? `${name}/` : name).sort();
  const lines = names.map((name) => {
    const directory = name.endsWith("/");
    const bare = directory ? name.slice(0, -1) : name;
    return `<a href="${escapeHtml(href(bare))}${directory ? "/" : ""}">${escapeHtml(name)}</a>\n`;
  });
  return `<!doctype html>\n<meta name="viewport" content="width=device-width">\n<pre>\n${lines.join("")}</pre>\n`;
}

function isBelow(path: string, root: string): boolean {
  return path === root || path.startsWith(root === "/" ? root : `${root}/`);
}

async function realPath(path: string): Promise<string | undefined> {
  try {
    return await Deno.realPath(path);
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound || thrown instanceof Deno.errors.NotADirectory) return undefined;
    throw thrown;
  }
}

/** What to tell of a failed look at a file. */
function refuse(context: RequestContext, thrown: unknown): void {
  if (thrown instanceof Deno.errors.NotFound || thrown instanceof Deno.errors.NotADirectory) {
    return httpError(context, 404, "404 page not found");
  }
  if (thrown instanceof Deno.errors.PermissionDenied || thrown instanceof Deno.errors.FilesystemLoop) {
    return httpError(context, 403, "403 Forbidden");
  }
  context.log.error("a log file could not be served", { path: context.path, error: String(thrown) });
  httpError(context, 500, "500 Internal Server Error");
}

/**
 * Serves a file or directory below a root, as the reference's file server does. Links are followed only as far as they
 * lead below one of `roots`: a container that can write below /var/log must not reach the node's other files by them
 * (the reference follows them anywhere).
 * @param path below the first root, decoded; `..` in it is resolved without leaving the root
 */
export async function serveFile(context: RequestContext, roots: readonly string[], path: string): Promise<void> {
  const segments: string[] = [];
  for (const segment of path.split("/")) {
    if (segment === "..") segments.pop();
    else if (segment !== "" && segment !== ".") segments.push(segment);
  }
  if (path.includes("\0")) return httpError(context, 404, "404 page not found");
  if (segments.at(-1) === "index.html" && !path.endsWith("/")) return moved(context, "./");
  try {
    const allowed = (await Promise.all(roots.map(realPath))).filter((root) => root !== undefined);
    const real = await Deno.realPath([roots[0] ?? "/", ...segments].join("/"));
    if (!allowed.some((root) => isBelow(real, root))) return httpError(context, 403, "403 Forbidden");
    const info = await Deno.stat(real);
    const slash = path === "" || path.endsWith("/");
    if (info.isDirectory) {
      const last = segments.at(-1);
      if (!slash && last !== undefined) return moved(context, `${encodeURIComponent(last)}/`);
      const index = await realPath(`${real}/index.html`);
      const page = index !== undefined && allowed.some((root) => isBelow(index, root)) ? index : undefined;
      if (page !== undefined && (await Deno.stat(page)).isFile) return await openAndSend(context, page);
      return await sendDirectory(context, real, info.mtime);
    }
    if (slash && segments.length > 0) return moved(context, `../${encodeURIComponent(segments.at(-1) ?? "")}`);
    await openAndSend(context, real);
  } catch (thrown) {
    if (context.response.headersSent) throw thrown;
    refuse(context, thrown);
  }
}

/** Opens the regular file at a path without links; undefined when it is none, or when the path changed meanwhile. */
async function openJudged(real: string): Promise<{ file: Deno.FsFile; info: Deno.FileInfo } | undefined> {
  const judged = await Deno.stat(real);
  // Pipes, sockets and devices have no content to serve, and opening one could block.
  if (!judged.isFile) return undefined;
  const file = await Deno.open(real);
  try {
    const info = await file.stat();
    if (info.ino === judged.ino && info.dev === judged.dev && await Deno.realPath(real) === real) return { file, info };
  } catch (thrown) {
    file.close();
    throw thrown;
  }
  file.close();
  return undefined;
}

async function openAndSend(context: RequestContext, real: string): Promise<void> {
  const opened = await openJudged(real);
  if (!opened) return httpError(context, 403, "403 Forbidden");
  using file = opened.file;
  await sendFile(context, file, { name: real, size: opened.info.size, mtime: opened.info.mtime });
}

/** Opens the file of a name below the first root; undefined when there is none that may be read. */
export async function findLog(roots: readonly string[], name: string): Promise<Deno.FsFile | undefined> {
  const [root] = roots;
  const real = root === undefined ? undefined : await realPath(`${root}/${name}`);
  if (root === undefined || real === undefined) return undefined;
  const allowed = await Promise.all(roots.map(realPath));
  if (!allowed.some((each) => each !== undefined && isBelow(real, each))) return undefined;
  return (await openJudged(real))?.file;
}

function moved(context: RequestContext, location: string): void {
  const query = context.url.search;
  context.response.setHeader("location", `${location}${query}`);
  send(context, 301, "");
}

/** Whole seconds, as HTTP dates have them. */
function seconds(date: Date): number {
  return Math.floor(date.getTime() / 1000) * 1000;
}

function unchanged(context: RequestContext, mtime: Date | null): boolean {
  const since = Date.parse(context.request.headers["if-modified-since"] ?? "");
  return mtime !== null && !Number.isNaN(since) && seconds(mtime) <= since;
}

async function sendDirectory(context: RequestContext, path: string, mtime: Date | null): Promise<void> {
  const headers = mtime ? { "last-modified": mtime.toUTCString() } : {};
  if (unchanged(context, mtime)) {
    context.response.writeHead(304, headers).end();
    return;
  }
  const entries: { name: string; isDirectory: boolean }[] = [];
  for await (const entry of Deno.readDir(path)) entries.push(entry);
  send(context, 200, listing(entries), { "content-type": "text/html; charset=utf-8", ...headers });
}

async function sendFile(
  context: RequestContext,
  file: Deno.FsFile,
  { name, size, mtime }: { name: string; size: number; mtime: Date | null },
): Promise<void> {
  const { response, request, signal } = context;
  const headers: Record<string, string> = { "accept-ranges": "bytes" };
  if (mtime) headers["last-modified"] = mtime.toUTCString();
  if (unchanged(context, mtime)) {
    response.writeHead(304, headers).end();
    return;
  }
  const ifRange = request.headers["if-range"];
  const current = ifRange === undefined || (mtime !== null && Date.parse(String(ifRange)) === seconds(mtime));
  const range = current ? parseRange(request.headers.range, size) : undefined;
  if (range === "unsatisfiable") {
    return httpError(context, 416, "invalid range: failed to overlap", { "content-range": `bytes */${size}` });
  }
  if (range === "malformed") return httpError(context, 416, "invalid range");
  const buffer = new Uint8Array(chunkSize);
  const sniffed = await file.read(buffer.subarray(0, 512)) ?? 0;
  headers["content-type"] = contentTypeOf(name, buffer.subarray(0, sniffed));
  const { start, length } = range ?? { start: 0, length: size };
  if (range) headers["content-range"] = `bytes ${start}-${start + length - 1}/${size}`;
  headers["content-length"] = String(length);
  response.writeHead(range ? 206 : 200, headers);
  await file.seek(start, Deno.SeekMode.Start);
  for (let left = length; left > 0 && !signal.aborted;) {
    const got = await file.read(buffer.subarray(0, Math.min(left, chunkSize)));
    if (!got) throw new Error(`${name} became shorter while it was sent`);
    left -= got;
    if (!response.write(buffer.slice(0, got))) await drained(response, signal);
  }
  response.end();
}
