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

function troubleOf(status: PodStatus | undefined): { reason: string; message: string } | undefined {
  const all = [...status?.initContainerStatuses ?? [], ...status?.containerStatuses ?? []];
  return all.map(containerReason).find((r) => r !== undefined);
}

/** How a pod stands, in a word: its phase, or why it is not well. */
export function statusWord(status: PodStatus | undefined): string {
  const phase = status?.reason ?? status?.phase ?? "Pending";
  return phase === "Running" || phase === "Pending" || phase === "Failed" ? troubleOf(status)?.reason ?? phase : phase;
}

/** Waiting reasons that no further waiting mends without somebody's help. */
const hopeless = new Set([
  "CrashLoopBackOff",
  "ImagePullBackOff",
  "ErrImageNeverPull",
  "InvalidImageName",
  "CreateContainerConfigError",
]);

/** How long a pod that may end by itself must run to count as one that goes on, in milliseconds. */
const lastingMs = 10_000;

/**
 * Judges a pod of run-once mode: well when it is ready (one that may end by itself: and has run for a while) or has succeeded, or when its annotation expects the crash loop
 * or failure it is in; not well when it failed or waits for something that will not come.
 */
export function judge(pod: BoundPod, status: PodStatus | undefined, now: number): PodVerdict {
  const { name, namespace, annotations } = pod.metadata;
  const all = [...status?.initContainerStatuses ?? [], ...status?.containerStatuses ?? []];
  const sidecars = new Set(
    (pod.spec.initContainers ?? []).filter((c) => c.restartPolicy === "Always").map((c) => c.name),
  );
  const counted = [
    ...status?.initContainerStatuses?.filter((c) => sidecars.has(c.name)) ?? [],
    ...status?.containerStatuses ?? [],
  ];
  const troubled = troubleOf(status);
  const base = {
    name: `${namespace}/${name}`,
    ready: `${counted.filter((c) => c.ready).length}/${pod.spec.containers.length + sidecars.size}`,
    status: statusWord(status),
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
  if (status?.phase === "Succeeded") return say(true);
  // A pod that may end by itself is given a moment to do so: ready now says little about how it ends.
  const started = Math.max(0, ...counted.map((c) => Date.parse(c.state?.running?.startedAt ?? "") || 0));
  const lasting = (pod.spec.restartPolicy ?? "Always") === "Always" || now - started >= lastingMs;
  if (ready) return say(lasting ? true : undefined);
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
