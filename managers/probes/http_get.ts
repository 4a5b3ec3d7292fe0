import type { Clock } from "../../mod/base/clock.ts";
import { isAborted, KubeletError, messageOf } from "../../mod/base/errors.ts";
import { closed, dial, isPlainText, withDeadline } from "./dial.ts";
import { ReplyParser, type WireReply } from "./http_reply.ts";
import { buildRequest, headOf, hostPort, urlOf, type WireRequest } from "./request.ts";
import type { HttpGet, HttpGetOutcome } from "./types.ts";

/** Redirects followed at most (runtime-contract.md section 18). */
const redirectLimit = 10;
const redirects = new Set([301, 302, 303, 307, 308]);

/** One request and its reply on a connection of its own. Sets `progress.headers` once a head has come. */
async function exchange(
  request: WireRequest,
  options: { signal: AbortSignal; headersOnly: boolean; progress: { headers: boolean } },
): Promise<WireReply> {
  const { signal, progress } = options;
  progress.headers = false;
  const socket = await dial({ host: request.host, port: request.port, secure: request.scheme === "https", signal });
  try {
    const parser = new ReplyParser();
    socket.write(headOf(request));
    for await (const chunk of socket as AsyncIterable<Uint8Array>) {
      const done = parser.push(chunk);
      progress.headers = parser.headersDone;
      if (done || (options.headersOnly && parser.headersDone)) return parser.reply();
    }
    if (signal.aborted) throw signal.reason;
    parser.end();
    return parser.reply();
  } catch (thrown) {
    // The abort closes the socket under the reader, which then only sees a closed stream.
    throw signal.aborted ? signal.reason : thrown;
  } finally {
    await closed(socket);
  }
}

/** Where a redirect leads: the next request, "stay" when it is not to be followed, or an error for a bad location. */
function redirected(first: WireRequest, now: WireRequest, reply: WireReply): WireRequest | "stay" {
  const location = reply.headers.get("location");
  if (!redirects.has(reply.status) || !location) return "stay";
  const base = urlOf(now);
  if (!URL.canParse(location, base)) {
    throw new KubeletError("Probe", `failed to parse Location header ${JSON.stringify(location.slice(0, 100))}`);
  }
  const next = new URL(location, base);
  if (next.hostname !== new URL(urlOf(first)).hostname) return "stay";
  const scheme = next.protocol.slice(0, -1);
  if (scheme !== "http" && scheme !== "https") {
    throw new KubeletError("Probe", `unsupported protocol scheme ${JSON.stringify(scheme)}`);
  }
  return {
    scheme,
    host: first.host,
    port: Number(next.port) || (scheme === "https" ? 443 : 80),
    target: `${next.pathname}${next.search}`,
    // A name given by the manifest stays only as long as the server does not name one itself.
    hostHeader: /^(?:[a-z][a-z0-9+.-]*:)?\/\//i.test(location) ? undefined : now.hostHeader,
    headers: now.headers,
  };
}

/**
 * Makes the HTTP GET of probes and hooks (runtime-contract.md sections 8 and 18): no keep-alive, no proxy, TLS not
 * verified, redirects followed on the same host only, the whole call within its limit, every answer bounded.
 */
export function createHttpGet(options: { clock: Clock }): HttpGet {
  return async (call): Promise<HttpGetOutcome> => {
    let request: WireRequest;
    try {
      request = buildRequest(call);
    } catch (thrown) {
      return { ok: false, stage: "build", plainHttp: false, message: messageOf(thrown), hostPort: "" };
    }
    const first = request;
    const address = hostPort(first.host, first.port);
    const progress = { headers: false };
    try {
      return await withDeadline({ clock: options.clock, ms: call.timeoutMs, signal: call.signal }, async (signal) => {
        for (let hops = 0;; hops++) {
          const reply = await exchange(request, { signal, progress, headersOnly: call.headersOnly ?? false });
          progress.headers = false;
          const next = redirected(first, request, reply);
          if (next === "stay") {
            const body = new TextDecoder().decode(reply.body);
            return { ok: true, status: reply.status, body, hostPort: address };
          }
          if (hops + 1 >= redirectLimit) throw new KubeletError("Probe", `stopped after ${redirectLimit} redirects`);
          request = next;
        }
      });
    } catch (thrown) {
      if (isAborted(thrown)) throw thrown;
      const timedOut = thrown instanceof KubeletError && thrown.code === "Timeout";
      const plainHttp = request.scheme === "https" && isPlainText(thrown);
      const stage = progress.headers ? "body" : "request";
      const why = timedOut
        ? `context deadline exceeded (Client.Timeout exceeded while ${
          stage === "body" ? "reading body" : "awaiting headers"
        })`
        : plainHttp
        ? "http: server gave HTTP response to HTTPS client"
        : messageOf(thrown);
      const message = stage === "body" ? why : `Get "${urlOf(request)}": ${why}`;
      return { ok: false, stage, plainHttp, message, hostPort: address };
    }
  };
}
