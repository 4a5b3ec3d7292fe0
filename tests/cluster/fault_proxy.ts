import type { ControlPlane } from "../../scripts/cluster/control_plane.ts";

/** A request as faults are chosen by. */
export interface ProxiedCall {
  readonly method: string;
  /** Path and query. */
  readonly path: string;
  readonly watch: boolean;
  /** How many requests came since the fault was set, this one included: of all, and of those with this path. */
  readonly number: number;
  readonly nth: number;
}

/** What becomes of a request. */
export type ProxyFault =
  /** Not handed on, but answered so. */
  | { readonly kind: "answer"; readonly status: number; readonly body: string; readonly headers?: HeadersInit }
  /** Answered by the server, so many milliseconds late. */
  | { readonly kind: "slow"; readonly ms: number }
  /** Carried out by the server; the answer breaks off after so many bytes. */
  | { readonly kind: "broken"; readonly bytes: number }
  /** Carried out by the server; the answer ends after so many bytes as if that were all. */
  | { readonly kind: "short"; readonly bytes: number };

type Choice = (call: ProxiedCall) => ProxyFault | undefined;

/**
 * Stands between an agent and a real API server and does to requests what servers in trouble, and those in between, do.
 * Whoever comes is handed on as the node.
 */
export class FaultProxy implements Disposable {
  readonly #server: Deno.HttpServer<Deno.NetAddr>;
  readonly #end = new AbortController();
  readonly #upstream: Deno.HttpClient;
  readonly #target: string;
  #choose: Choice = () => undefined;
  #number = 0;
  #spoilt = 0;
  readonly #byPath = new Map<string, number>();
  /** What breaks the watches off that are open. */
  readonly #watches = new Set<AbortController>();

  private constructor(target: string, upstream: Deno.HttpClient, tls: { cert: string; key: string }) {
    this.#target = target;
    this.#upstream = upstream;
    this.#server = Deno.serve({
      hostname: "127.0.0.1",
      port: 0,
      ...tls,
      signal: this.#end.signal,
      onListen: () => {},
      // Requests that somebody gave up.
      onError: () => new Response(null, { status: 500 }),
    }, (request) => this.#handle(request));
  }

  static async start(plane: ControlPlane, nodeName: string): Promise<FaultProxy> {
    const pair = async (file: string, subject: Parameters<ControlPlane["certificate"]>[1]) => {
      const { cert, key } = await plane.certificate(file, subject);
      return { cert: await Deno.readTextFile(cert), key: await Deno.readTextFile(key) };
    };
    const node = await pair("proxied", { name: `system:node:${nodeName}`, groups: ["system:nodes"] });
    const upstream = Deno.createHttpClient({ caCerts: [plane.ca.cert], ...node });
    return new FaultProxy(plane.server, upstream, await pair("proxy", { name: "proxy", hosts: ["127.0.0.1"] }));
  }

  get server(): string {
    return `https://127.0.0.1:${this.#server.addr.port}`;
  }

  /** Requests that something was done to since the fault was set. */
  get spoilt(): number {
    return this.#spoilt;
  }

  /** From now on this decides what becomes of requests; watches that are open break off. */
  set(choose: Choice): void {
    this.#choose = choose;
    this.#number = this.#spoilt = 0;
    this.#byPath.clear();
    for (const control of this.#watches) control.abort();
    this.#watches.clear();
  }

  async #handle(request: Request): Promise<Response> {
    const { pathname, search } = new URL(request.url);
    const path = `${pathname}${search}`;
    const watch = search.includes("watch=true");
    const key = `${request.method} ${pathname} ${watch}`;
    const nth = (this.#byPath.get(key) ?? 0) + 1;
    this.#byPath.set(key, nth);
    const fault = this.#choose({ method: request.method, path, watch, number: ++this.#number, nth });
    if (fault) this.#spoilt++;
    if (fault?.kind === "answer") {
      await request.body?.cancel();
      const headers = { "content-type": "application/json", ...fault.headers };
      return new Response(fault.status === 204 ? null : fault.body, { status: fault.status, headers });
    }
    const body = request.body ? await request.text() : undefined;
    if (fault?.kind === "slow") await new Promise((resolve) => setTimeout(resolve, fault.ms));
    const headers = new Headers(request.headers);
    // The body was read whole, and goes to another host.
    for (const name of ["host", "content-length"]) headers.delete(name);
    const control = new AbortController();
    if (watch) this.#watches.add(control);
    const answer = await fetch(`${this.#target}${path}`, {
      method: request.method,
      headers,
      client: this.#upstream,
      signal: control.signal,
      ...(body === undefined ? {} : { body }),
    });
    const { status } = answer;
    const told = new Headers(answer.headers);
    for (const name of ["content-length", "content-encoding"]) told.delete(name);
    return new Response(passed(answer.body, fault, control.signal), { status, headers: told });
  }

  /** Breaks everything off: an agent that still runs would go on with its connections. */
  [Symbol.dispose](): void {
    this.set(() => undefined);
    this.#end.abort();
    this.#upstream.close();
  }
}

/** An answer's body, as far as the fault lets it through; it breaks off when the signal aborts. */
function passed(
  body: ReadableStream<Uint8Array> | null,
  fault: ProxyFault | undefined,
  signal: AbortSignal,
): ReadableStream<Uint8Array> | null {
  if (!body) return null;
  const cut = fault?.kind === "broken" || fault?.kind === "short" ? fault : undefined;
  const reader = body.getReader();
  const broken = new Error("broken off, as wished");
  let left = cut?.bytes ?? Infinity;
  return new ReadableStream<Uint8Array>({
    start(controller): void {
      signal.addEventListener("abort", () => {
        controller.error(broken);
        reader.cancel().catch(() => {});
      }, { once: true });
    },
    async pull(controller): Promise<void> {
      const { value, done } = left > 0 ? await reader.read() : { value: undefined, done: true };
      if (value) controller.enqueue(value.subarray(0, Math.min(left, value.length)));
      left -= value?.length ?? 0;
      if (!done && left > 0) return;
      if (left <= 0 && cut?.kind === "broken") controller.error(broken);
      else controller.close();
      await reader.cancel();
    },
    async cancel(): Promise<void> {
      await reader.cancel();
    },
  });
}
