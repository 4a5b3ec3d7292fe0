import type { StatsSource } from "../../../managers/stats/collector.ts";
import type { Detail } from "../../../managers/stats/types.ts";
import type { Clock } from "../../base/clock.ts";
import { messageOf } from "../../base/errors.ts";
import type { Logger } from "../../base/log.ts";
import type { TextProvider } from "../routes/text.ts";
import { cadvisorPage, type MachineFacts } from "./cadvisor.ts";
import { KeptPages } from "./kept_pages.ts";
import { kubeletPage, type KubeletPageOptions, probesPage, slisPage } from "./kubelet_page.ts";
import type { pagePaths } from "./paths.ts";
import { resourcePage } from "./resource.ts";
import { writeUsed } from "./used_page.ts";
import { summaryOf } from "./summary.ts";

/** The pages of statistics and metrics, by path. */
export type NodePages = Readonly<Record<typeof pagePaths[number], TextProvider>>;

/** What volumes and logs take is measured each minute: a collection of this age tells it as well; milliseconds. */
const usedMs = 15_000;

/** The pages, over the node's statistics and what the agent counts of itself. */
export function nodePages(options: {
  stats: StatsSource;
  /** Asked once for each page that needs them. */
  machine: () => Promise<MachineFacts>;
  own: KubeletPageOptions;
  clock: Clock;
  log: Logger;
}): NodePages {
  const { stats, machine, own, log } = options;
  const kept = new KeptPages(options.clock);
  const collect = async (detail: Detail, youngerMs?: number) => {
    try {
      return await stats.collect(detail, youngerMs);
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
      const body = await kept.get(
        small ? "small summary" : "summary",
        snapshot,
        () => `${JSON.stringify(summaryOf(snapshot, small), undefined, 1)}\n`,
      );
      return { body, contentType: "application/json" };
    },
    "/metrics": () => kubeletPage({ ...own, used: async (page) => writeUsed(page, await collect("summary", usedMs)) }),
    "/metrics/probes": () => probesPage(own),
    "/metrics/slis": ({ method }) => {
      if (method !== "DELETE") return slisPage(own);
      own.metrics.healthChecks.removeIf(() => true);
      return { body: "metrics reset\n", contentType: "text/plain; charset=utf-8" };
    },
    "/metrics/resource": async () => {
      const snapshot = await collect("resource");
      return await kept.get("resource", snapshot, () => resourcePage(snapshot));
    },
    "/metrics/cadvisor": async () => {
      const snapshot = await collect("cadvisor");
      return await kept.get("cadvisor", snapshot, async () => cadvisorPage(snapshot, await machine()));
    },
  };
}
