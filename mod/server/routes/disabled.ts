import { httpError } from "../respond.ts";
import type { Handler, RouteGroup } from "../types.ts";

/** Answers 405 with a text. */
export function disabled(text: string): Handler {
  return (context) => httpError(context, 405, text);
}

/** What stands where debugging endpoints are off: on the read-only port, or by enableDebuggingHandlers (http.md 3). */
export const disabledGroup: RouteGroup = {
  name: "disabled",
  access: "A",
  buckets: ["run", "exec", "attach", "portForward", "containerLogs", "runningpods", "pprof", "logs"],
  routes: ["run", "exec", "attach", "portForward", "containerLogs", "runningpods", "debug/pprof", "logs"].map(
    (path) => ({ methods: "*", path: `/${path}/`, handler: disabled("Debug endpoints are disabled.") }),
  ),
};
