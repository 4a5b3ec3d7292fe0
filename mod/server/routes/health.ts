import { answerHealthz, type HealthCheck } from "../healthz.ts";
import { send } from "../respond.ts";
import type { RequestContext, RouteGroup } from "../types.ts";

/** /healthz and its parts (http.md section 3, rows 1 and 2). */
export function healthGroup(checks: () => readonly HealthCheck[]): RouteGroup {
  const handler = (context: RequestContext) => {
    // These handlers do not look at the method.
    const { status, body } = answerHealthz({ method: "GET", url: context.url.href }, checks());
    send(context, status, body, {
      "content-type": "text/plain; charset=utf-8",
      "x-content-type-options": "nosniff",
    });
  };
  const paths = ["/healthz", ...checks().map(({ name }) => `/healthz/${name}`)];
  return {
    name: "healthz",
    access: "A",
    buckets: ["healthz"],
    routes: paths.map((path) => ({ methods: "*", path, handler })),
  };
}
