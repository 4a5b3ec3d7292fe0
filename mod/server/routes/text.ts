import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { messageOf } from "../../base/errors.ts";
import { httpError, send, writeError } from "../respond.ts";
import type { RequestContext, Route, RouteGroup } from "../types.ts";

/** A page: text or its bytes. Without a content type it is Prometheus text. */
export type Page = string | Uint8Array<ArrayBuffer> | { readonly body: string; readonly contentType: string };

/** Makes a page. A rejection becomes a 500 with the error's text. */
export type TextProvider = (context: RequestContext) => Promise<Page> | Page;

const prometheus = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
const zip = promisify(gzip);
/** Shorter bodies are sent as they are. */
const zipFrom = 1024;

/** A page of group A: below /stats/ it takes GET and POST and errors read `Internal Error: …` (http.md section 3). */
export function textGroup(path: string, provider: TextProvider): RouteGroup {
  const stats = path.startsWith("/stats/");
  const [, first = "", second] = path.split("/");
  const handler = async (context: RequestContext) => {
    let page: Page;
    try {
      page = await provider(context);
    } catch (thrown) {
      if (context.signal.aborted) throw thrown;
      const text = messageOf(thrown);
      context.log.error("a page could not be made", { path, error: text });
      if (stats) return writeError(context, 500, `Internal Error: ${text}`);
      return httpError(context, 500, text);
    }
    const { body, contentType } = typeof page === "string" || page instanceof Uint8Array
      ? { body: page, contentType: prometheus }
      : page;
    await sendZipped(context, body, contentType);
  };
  const route: Route = { methods: stats ? ["GET", "POST"] : "*", path, handler };
  return {
    name: path,
    access: "A",
    buckets: first === "metrics" && second !== undefined ? ["metrics", `metrics/${second}`] : [first],
    ...(stats ? { root: "/stats/" } : {}),
    routes: [route],
  };
}

async function sendZipped(
  context: RequestContext,
  body: string | Uint8Array<ArrayBuffer>,
  contentType: string,
): Promise<void> {
  const headers = { "content-type": contentType };
  const accepted = String(context.request.headers["accept-encoding"] ?? "").split(",").map((each) => each.trim());
  const zipped = accepted.some((each) => /^gzip(;q=(?!0(\.0*)?$).*)?$/i.test(each));
  if (!zipped || body.length < zipFrom) return send(context, 200, body, headers);
  // In large pieces: each is a way through the thread pool and back. Memory for speed, while it lasts.
  const bytes = await zip(body, { level: 1, memLevel: 9, chunkSize: 256 << 10 });
  send(context, 200, new Uint8Array(bytes), { ...headers, "content-encoding": "gzip" });
}
