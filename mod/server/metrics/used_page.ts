import type { StatsSnapshot } from "../../../managers/stats/types.ts";
import type { MetricsPage } from "./text.ts";

/** Figures of a claim's volume, with what they are. */
const figures = [
  ["available_bytes", "Bytes that are left on the volume", "available"],
  ["capacity_bytes", "Bytes that the volume has", "capacity"],
  ["used_bytes", "Bytes that are used on the volume", "used"],
  ["inodes", "Inodes that the volume has", "inodes"],
  ["inodes_free", "Inodes that are free on the volume", "inodesFree"],
  ["inodes_used", "Inodes that are used on the volume", "inodesUsed"],
] as const;

/** Puts in what volumes of claims and containers' logs take (metrics.md section 2). @param snapshot undefined when it failed */
export function writeUsed(page: MetricsPage, snapshot: StatsSnapshot | undefined): void {
  const logs = "kubelet_container_log_filesystem_used_bytes";
  page.family(logs, "gauge", "Bytes that the logs of the container take");
  for (const [name, help] of figures) page.family(`kubelet_volume_stats_${name}`, "gauge", help);
  const health = "kubelet_volume_stats_health_status_abnormal";
  page.family(health, "gauge", "1 when the volume is not healthy, else 0");
  const claims = new Set<string>();
  for (const { uid, name: pod, namespace, containers, volumes } of snapshot?.pods ?? []) {
    for (const { name: container, logs: taken } of containers) {
      page.sample(logs, { container, namespace, pod, uid }, taken?.used);
    }
    for (const { claim, abnormal, ...fs } of volumes ?? []) {
      // One series for a claim, however many pods share it.
      if (!claim || claims.has(`${claim.namespace}/${claim.name}`)) continue;
      claims.add(`${claim.namespace}/${claim.name}`);
      const labels = { namespace: claim.namespace, persistentvolumeclaim: claim.name };
      for (const [name, , key] of figures) page.sample(`kubelet_volume_stats_${name}`, labels, fs[key]);
      if (abnormal !== undefined) page.sample(health, labels, abnormal ? 1 : 0);
    }
  }
}
