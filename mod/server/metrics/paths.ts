/** Where the pages that are made of statistics are. */
export const statsPaths = ["/stats/summary", "/metrics/resource", "/metrics/cadvisor"] as const;
