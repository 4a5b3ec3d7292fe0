import type { LocalPod, LocalPods } from "../../server/local/types.ts";
import { judge } from "../run_once.ts";
import { span, timeOf } from "./explain/words.ts";

const columns = ["NAMESPACE", "NAME", "READY", "STATUS", "RESTARTS", "AGE", "IP", "UID"] as const;

function row({ pod, status, leaving }: LocalPod, now: number): string[] {
  const { namespace, name, uid, creationTimestamp } = pod.metadata;
  const { ready, status: word, restarts, ip } = judge(pod, status, now);
  const born = timeOf(status?.startTime) ?? timeOf(creationTimestamp);
  return [
    namespace,
    name,
    ready,
    leaving ? "Terminating" : word,
    String(restarts),
    born === undefined ? "-" : span(now - born),
    ip || "-",
    uid,
  ];
}

/** The table of `kubelet ps`, by namespace and name. @param now milliseconds since the epoch */
export function podTable({ pods, left }: LocalPods, now: number): string {
  if (pods.length === 0) return "No pods.\n";
  const rows = pods.map((pod) => row(pod, now)).sort((a, b) => `${a[0]}/${a[1]}` < `${b[0]}/${b[1]}` ? -1 : 1);
  const cells = [[...columns], ...rows];
  const widths = columns.map((_, at) => Math.max(...cells.map((line) => line[at]?.length ?? 0)));
  const lines = cells.map((line) => line.map((cell, at) => cell.padEnd(widths[at] ?? 0)).join("   ").trimEnd());
  return `${lines.join("\n")}\n${left > 0 ? `and ${left} pods more\n` : ""}`;
}

/** The same as a PodList. */
export function podList({ pods }: LocalPods): string {
  const items = pods.map(({ pod, status }) => ({
    apiVersion: "v1",
    kind: "Pod",
    ...pod,
    ...(status ? { status } : {}),
  }));
  return `${JSON.stringify({ apiVersion: "v1", kind: "PodList", metadata: {}, items }, null, 2)}\n`;
}
