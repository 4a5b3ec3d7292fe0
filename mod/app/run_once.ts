import type { BoundPod, ContainerStatus, PodStatus } from "../kube/types.ts";
import { expectAnnotation } from "./expectation.ts";

/** How one pod of a run-once stands. */
export interface PodVerdict {
  readonly name: string;
  readonly ready: string;
  readonly status: string;
  readonly restarts: number;
  readonly ip: string;
  /** Undefined while the outcome is open. */
  readonly ok: boolean | undefined;
  /** Why the pod is not well, for people. */
  readonly reason: string;
}

function containerReason(status: ContainerStatus): { reason: string; message: string } | undefined {
  const { waiting, terminated } = status.state ?? {};
  if (waiting) return { reason: waiting.reason ?? "Waiting", message: waiting.message ?? "" };
  if (terminated && terminated.exitCode !== 0) {
    return { reason: terminated.reason ?? "Error", message: terminated.message ?? `exit code ${terminated.exitCode}` };
  }
  return undefined;
}

/** Waiting reasons that no further waiting mends without somebody's help. */
const hopeless = new Set([
  "CrashLoopBackOff",
  "ImagePullBackOff",
  "ErrImageNeverPull",
  "InvalidImageName",
  "CreateContainerConfigError",
]);

/**
 * Judges a pod of run-once mode: well when it is ready or has succeeded, or when its annotation expects the crash loop
 * or failure it is in; not well when it failed or waits for something that will not come.
 */
export function judge(pod: BoundPod, status: PodStatus | undefined): PodVerdict {
  const { name, namespace, annotations } = pod.metadata;
  const all = [...status?.initContainerStatuses ?? [], ...status?.containerStatuses ?? []];
  const regular = status?.containerStatuses ?? [];
  const troubled = all.map(containerReason).find((r) => r !== undefined);
  const phase = status?.reason ?? status?.phase ?? "Pending";
  const base = {
    name: `${namespace}/${name}`,
    ready: `${regular.filter((c) => c.ready).length}/${pod.spec.containers.length}`,
    status: phase === "Running" || phase === "Pending" || phase === "Failed" ? troubled?.reason ?? phase : phase,
    restarts: all.reduce((sum, c) => sum + c.restartCount, 0),
    ip: status?.podIP ?? "",
  };
  const ready = status?.conditions?.some((c) => c.type === "Ready" && c.status === "True") ?? false;
  const expected = annotations?.[expectAnnotation];
  const inCrashLoop = all.some((c) => c.state?.waiting?.reason === "CrashLoopBackOff");
  const say = (ok: boolean | undefined): PodVerdict => ({
    ...base,
    ok,
    reason: ok === true
      ? ""
      : status?.message || troubled?.message || (base.status === "Running" ? "not ready" : base.status),
  });
  if (expected === "crashloop") return say(inCrashLoop ? true : status?.phase === "Succeeded" ? false : undefined);
  if (expected === "failed") {
    return say(status?.phase === "Failed" ? true : status?.phase === "Succeeded" ? false : undefined);
  }
  if (status?.phase === "Succeeded" || ready) return say(true);
  if (status?.phase === "Failed") return say(false);
  if (all.some((c) => hopeless.has(c.state?.waiting?.reason ?? ""))) return say(false);
  return say(undefined);
}

/** A table of the pods, for people. */
export function table(rows: readonly PodVerdict[]): string {
  const cells = [
    ["NAME", "READY", "STATUS", "RESTARTS", "IP", ""],
    ...rows.map((r) => [r.name, r.ready, r.status, String(r.restarts), r.ip || "-", r.ok === false ? r.reason : ""]),
  ];
  const widths = cells[0]!.map((_, i) => Math.max(...cells.map((row) => row[i]!.length)));
  return cells.map((row) => row.map((cell, i) => cell.padEnd(widths[i]!)).join("   ").trimEnd()).join("\n") + "\n";
}
