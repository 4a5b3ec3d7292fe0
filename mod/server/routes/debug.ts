import { send, writeError } from "../respond.ts";
import type { RequestContext, RouteGroup, ServerBackend } from "../types.ts";
import { disabled } from "./disabled.ts";
import { readBody } from "./read_body.ts";

/** Profiles of the reference that only a Go program has. */
const goProfiles = ["allocs", "block", "goroutine", "heap", "mutex", "threadcreate", "profile", "symbol", "trace"];

/** /debug/pprof/ (http.md section 3, row 19): the command line; this agent is no Go program and has no Go profiles. */
export function pprofGroup(enabled: boolean, argv: () => readonly string[]): RouteGroup {
  const handler = (context: RequestContext) => {
    const name = context.params.subpath ?? "";
    const headers = { "content-type": "text/plain; charset=utf-8", "x-content-type-options": "nosniff" };
    if (name === "cmdline") return send(context, 200, argv().join("\0"), headers);
    if (name === "") {
      return send(
        context,
        200,
        "/debug/pprof/\n\ncmdline\n\nThe agent runs on Deno; it has no Go profiles.\n",
        headers,
      );
    }
    if (goProfiles.includes(name)) {
      return send(context, 501, `profile ${name} is not available: the agent runs on Deno, not on Go\n`, headers);
    }
    send(context, 404, "Unknown profile\n", headers);
  };
  return {
    name: "pprof",
    access: "B",
    buckets: ["debug"],
    ...(enabled ? { root: "/debug/pprof/" } : {}),
    routes: enabled
      ? [
        { methods: ["GET"], path: "/debug/pprof/", handler },
        { methods: ["GET"], path: "/debug/pprof/{subpath:*}", handler },
      ]
      : [{ methods: "*", path: "/debug/pprof/", handler: disabled("profiling endpoint is disabled.") }],
  };
}

const largestLevel = 2n ** 31n - 1n;

/** PUT /debug/flags/v (http.md section 3, row 20): the body is the new verbosity. */
export function debugFlagsGroup(enabled: boolean, backend: ServerBackend): RouteGroup {
  const plain = (context: RequestContext, status: number, text: string) =>
    send(context, status, `${text}\n`, { "content-type": "text/plain", "x-content-type-options": "nosniff" });
  const handler = async (context: RequestContext) => {
    if (context.method !== "PUT") return plain(context, 406, "unsupported http method");
    const body = await readBody(context, 1024);
    if (body === undefined) return writeError(context, 413, "the body is too long; it is one number");
    const text = new TextDecoder().decode(body);
    const level = /^[+-]?\d{1,20}$/.test(text) ? BigInt(text.replace(/^\+/, "")) : undefined;
    if (level === undefined || level > largestLevel || level < -largestLevel - 1n) {
      return plain(
        context,
        400,
        `failed set klog.logging.verbosity ${text}: ${JSON.stringify(text)} is no 32-bit integer`,
      );
    }
    backend.setVerbosity(Number(level));
    plain(context, 200, `successfully set klog.logging.verbosity to ${text}`);
  };
  return {
    name: "debug flags",
    access: "B",
    buckets: ["debug"],
    routes: [{
      methods: "*",
      path: "/debug/flags/v",
      handler: enabled ? handler : disabled("flags endpoint is disabled."),
    }],
  };
}
