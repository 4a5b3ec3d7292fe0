import type { StatsSource } from "../../../managers/stats/collector.ts";
import type { Detail } from "../../../managers/stats/types.ts";
import { messageOf } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { TextProvider } from "../routes/text.ts";
import { cadvisorPage, type MachineFacts } from "./cadvisor.ts";
import type { statsPaths } from "./paths.ts";
import { resourcePage } from "./resource.ts";
import { summaryOf } from "./summary.ts";

/** The pages that are made of statistics, by path. */
export type StatsPages = Readonly<Record<typeof statsPaths[number], TextProvider>>;

/** Pages over the node's statistics, by path. */
export function statsPages(options: {
  stats: StatsSource;
  /** Asked once for each page that needs them. */
  machine: () => Promise<MachineFacts>;
  log: Logger;
}): StatsPages {
  const { stats, machine, log } = options;
  const collect = async (detail: Detail) => {
    try {
      return await stats.collect(detail);
    } catch (thrown) {
      log.error("statistics could not be collected", { error: messageOf(thrown) });
      return undefined;
    }
  };
  return {
    "/stats/summary": async ({ query }) => {
      // Only this very value counts (metrics.md section 9).
      const small = query.get("only_cpu_and_memory") === "true";
      const snapshot = await stats.collect("summary");
      return { body: `${JSON.stringify(summaryOf(snapshot, small), undefined, 1)}\n`, contentType: "application/json" };
    },
    "/metrics/resource": async () => resourcePage(await collect("resource")),
    "/metrics/cadvisor": async () => cadvisorPage(await collect("cadvisor"), await machine()),
  };
}
