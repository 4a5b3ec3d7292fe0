import type { Clock } from "../base/clock.ts";
import { messageOf, whenAborted } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import { type Answering, listen } from "./listen.ts";
import { send } from "./respond.ts";
import { parseTarget } from "./target.ts";

/** One part of /healthz: resolves to undefined when healthy, else to the reason. */
export interface HealthCheck {
  readonly name: string;
  check(): string | undefined;
}

const text = { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" };

/** Answers /healthz and its parts (http.md section 3, rows 1 and 2); pure apart from the checks. */
export function answerHealthz(request: { method: string; url: string }, checks: readonly HealthCheck[]): {
  status: number;
  body: string;
} {
  const url = new URL(request.url);
  if (request.method !== "GET" && request.method !== "HEAD") return { status: 405, body: "Method Not Allowed\n" };
  if (url.pathname === "/healthz" || url.pathname === "/healthz/") return answerAll(url, checks);
  const name = url.pathname.startsWith("/healthz/") ? url.pathname.slice("/healthz/".length) : undefined;
  const check = checks.find((c) => c.name === name);
  if (!check) return { status: 404, body: "404 page not found\n" };
  const reason = check.check();
  return reason === undefined
    ? { status: 200, body: "ok" }
    : { status: 500, body: `internal server error: ${reason}\n` };
}

function answerAll(url: URL, checks: readonly HealthCheck[]): { status: number; body: string } {
  const excluded = new Set(url.searchParams.getAll("exclude"));
  let list = "";
  let failed = false;
  for (const check of checks) {
    if (excluded.delete(check.name)) {
      list += `[+]${check.name} excluded: ok\n`;
    } else if (check.check() === undefined) {
      list += `[+]${check.name} ok\n`;
    } else {
      failed = true;
      list += `[-]${check.name} failed: reason withheld\n`;
    }
  }
  if (excluded.size > 0) {
    const names = [...excluded].map((name) => JSON.stringify(name)).join(", ");
    list += `warn: some health checks cannot be excluded: no matches for ${names}\n`;
  }
  if (failed) return { status: 500, body: `${list}healthz check failed\n` };
  return { status: 200, body: url.searchParams.has("verbose") ? `${list}healthz check passed\n` : "ok" };
}

/** Serves the healthz port until the signal aborts; a port that cannot be had is tried again every 5 s. */
export async function serveHealthz(options: {
  address: string;
  port: number;
  checks: readonly HealthCheck[];
  clock: Clock;
  log: Logger;
  signal: AbortSignal;
  /** Connections that may be idle at once, as of the other ports. */
  idleLimit?: number;
  /** Told of the port that was bound. */
  onListening?: (port: number) => void;
}): Promise<void> {
  const { checks, log, signal, onListening, ...rest } = options;
  const { address, port, clock } = rest;
  while (!signal.aborted) {
    try {
      await using listener = await listen({ ...rest, log, dispatcher: healthzAnswers(checks, log) });
      onListening?.(listener.port);
      await whenAborted(signal);
      return;
    } catch (thrown) {
      log.error("the healthz server cannot listen; trying again in 5 s", { address, port, error: messageOf(thrown) });
    }
    await clock.sleep(5000, signal);
  }
}

/** Answers the requests of the healthz port, which knows nothing else. */
function healthzAnswers(checks: readonly HealthCheck[], log: Logger): Answering {
  return {
    async dispatch(exchange) {
      const { request, response } = exchange;
      try {
        const method = request.method ?? "GET";
        const target = parseTarget(request.url ?? "");
        const { status, body } = target
          ? answerHealthz({ method, url: `http://kubelet${target.raw}?${target.query}` }, checks)
          : { status: 400, body: "400 Bad Request\n" };
        send({ response, method }, status, body, text);
        await exchange.done();
      } catch (thrown) {
        log.error("a request to the healthz port failed", { error: messageOf(thrown) });
        exchange.cut();
      }
    },
    settled: () => Promise.resolve(),
  };
}
