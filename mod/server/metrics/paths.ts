/** Where the pages of statistics and metrics are. */
export const pagePaths = [
  "/stats/summary",
  "/metrics",
  "/metrics/resource",
  "/metrics/cadvisor",
  "/metrics/probes",
  "/metrics/slis",
] as const;
