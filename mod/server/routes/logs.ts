import type { ServerConfig } from "../config.ts";
import { httpError } from "../respond.ts";
import type { RequestContext, RouteGroup } from "../types.ts";
import { disabled } from "./disabled.ts";
import { serveFile } from "./log_files.ts";

/** Query parameters that make a request a node log query. */
const queryOptions = ["query", "sinceTime", "untilTime", "tailLines", "pattern", "boot"];

/** /logs/ (http.md section 3, row 18, and section 6). */
export function logsGroup({ config, root }: {
  config: Pick<ServerConfig, "enableSystemLogHandler" | "enableSystemLogQuery" | "podLogsDir">;
  /** What is served. */
  root: string;
}): RouteGroup {
  const handler = async (context: RequestContext) => {
    if (config.enableSystemLogQuery && queryOptions.some((name) => context.query.has(name))) {
      return httpError(context, 501, "node log query is not available yet; read a file below /logs/");
    }
    await serveFile(context, [root, config.podLogsDir], context.path.slice("/logs/".length));
  };
  const common = { name: "logs", access: "B", buckets: ["logs"] } as const;
  if (!config.enableSystemLogHandler) {
    return { ...common, routes: [{ methods: "*", path: "/logs/", handler: disabled("logs endpoint is disabled.") }] };
  }
  return {
    ...common,
    root: "/logs/",
    routes: [
      { methods: ["GET"], path: "/logs/", handler },
      { methods: ["GET"], path: "/logs/{logpath:*}", handler },
    ],
  };
}
