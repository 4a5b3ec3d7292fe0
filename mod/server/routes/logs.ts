import type { ServerConfig } from "../config.ts";
import { httpError } from "../respond.ts";
import type { RequestContext, RouteGroup } from "../types.ts";
import { disabled } from "./disabled.ts";
import { serveFile } from "./log_files.ts";
import { checkLogQuery, joined, parseLogQuery } from "./log_query.ts";
import { answerServices } from "./log_query_answer.ts";

/** /logs/ (http.md section 3, row 18, and section 6). */
export function logsGroup({ config, root }: {
  config: Pick<ServerConfig, "enableSystemLogHandler" | "enableSystemLogQuery" | "podLogsDir">;
  /** What is served. */
  root: string;
}): RouteGroup {
  const roots = [root, config.podLogsDir];
  const handler = async (context: RequestContext) => {
    const path = context.path.slice("/logs/".length);
    if (!config.enableSystemLogQuery) return await serveFile(context, roots, path);
    const { errors, query } = parseLogQuery(context.query);
    if (errors) return httpError(context, 400, joined(errors));
    if (!query) return await serveFile(context, roots, path);
    if (path !== "") return httpError(context, 406, "path not allowed in query mode");
    const [name] = query.files;
    const faults = checkLogQuery(query);
    if (faults.length > 0) return httpError(context, 406, joined(faults));
    if (name === undefined) return await answerServices(context, query, roots);
    await serveFile(context, roots, name.replaceAll("\\", "/"));
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
