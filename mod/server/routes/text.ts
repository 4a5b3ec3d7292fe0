import { promisify } from "node:util";
import { gzip } from "node:zlib";
import { messageOf } from "../../base/errors.ts";
import { Shared } from "./shared.ts";
import { httpError, send, writeError } from "../respond.ts";
import type { RequestContext, Route, RouteGroup } from "../types.ts";

/** A page: text or its bytes. Without a content type it is Prometheus text. */
export type Page = string | Uint8Array<ArrayBuffer> | {
  readonly body: string | Uint8Array<ArrayBuffer>;
  readonly contentType: string;
};

/** What of its request a page may depend on. */
export type PageRequest = Pick<RequestContext, "method" | "query">;

/** Makes a page. A rejection becomes a 500 with the error's text. */
export type TextProvider = (request: PageRequest) => Promise<Page> | Page;

const prometheus = "text/plain; version=0.0.4; charset=utf-8; escaping=underscores";
const zip = promisify(gzip);
/** Shorter bodies are sent as they are. */
const zipFrom = 1024;

/** Queries that are longer are nobody's but who sent them. */
const sharedQuery = 256;

/** A page as it is sent. */
interface Made {
  readonly body: Uint8Array<ArrayBuffer>;
  readonly contentType: string;
  /** The body zipped, once for all who want it so. */
  zipped(): Promise<Uint8Array<ArrayBuffer>>;
}

/**
 * Requests for a page that come at the same time share it, and its zipped form; each gets one that was begun after it
 * came (see Shared). The figures in it may be up to a second older, as collections of statistics are shared too.
 */
class SharedPages {
  readonly #provider: TextProvider;
  readonly #pages = new Map<string, Shared<Made>>();
  /** What was zipped of the very bytes that a provider gives again. */
  readonly #zipped = new WeakMap<Uint8Array, Promise<Uint8Array<ArrayBuffer>>>();

  constructor(provider: TextProvider) {
    this.#provider = provider;
  }

  async get(request: PageRequest): Promise<Made> {
    const query = request.query.toString();
    if (query.length > sharedQuery) return await this.#make(request);
    const key = `${request.method} ${query}`;
    const shared = this.#pages.get(key) ?? new Shared(() => this.#make(request));
    this.#pages.set(key, shared);
    try {
      return await shared.ask();
    } finally {
      if (shared.idle && this.#pages.get(key) === shared) this.#pages.delete(key);
    }
  }

  async #make({ method, query }: PageRequest): Promise<Made> {
    const page = await this.#provider({ method, query });
    const made = typeof page === "string" || page instanceof Uint8Array
      ? { body: page, contentType: prometheus }
      : page;
    const { contentType } = made;
    const body = typeof made.body === "string" ? new TextEncoder().encode(made.body) : made.body;
    const zipped = () => {
      const known = this.#zipped.get(body) ?? zippedOf(body);
      this.#zipped.set(body, known);
      return known;
    };
    return { body, contentType, zipped };
  }
}

/** A page of group A: below /stats/ it takes GET and POST and errors read `Internal Error: …` (http.md section 3). */
export function textGroup(path: string, provider: TextProvider): RouteGroup {
  const stats = path.startsWith("/stats/");
  const [, first = "", second] = path.split("/");
  const pages = new SharedPages(provider);
  const handler = async (context: RequestContext) => {
    let page: Made;
    try {
      page = await pages.get(context);
    } catch (thrown) {
      if (context.signal.aborted) throw thrown;
      const text = messageOf(thrown);
      context.log.error("a page could not be made", { path, error: text });
      if (stats) return writeError(context, 500, `Internal Error: ${text}`);
      return httpError(context, 500, text);
    }
    if (!context.signal.aborted) await sendPage(context, page);
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

async function zippedOf(body: Uint8Array<ArrayBuffer>): Promise<Uint8Array<ArrayBuffer>> {
  // In large pieces: each is a way through the thread pool and back. Memory for speed, while it lasts.
  return new Uint8Array(await zip(body, { level: 1, memLevel: 9, chunkSize: 256 << 10 }));
}

async function sendPage(context: RequestContext, { body, contentType, zipped: inZip }: Made): Promise<void> {
  const headers = { "content-type": contentType };
  const accepted = String(context.request.headers["accept-encoding"] ?? "").split(",").map((each) => each.trim());
  const zipped = accepted.some((each) => /^gzip(;q=(?!0(\.0*)?$).*)?$/i.test(each));
  if (!zipped || body.length < zipFrom) return send(context, 200, body, headers);
  send(context, 200, await inZip(), { ...headers, "content-encoding": "gzip" });
}
