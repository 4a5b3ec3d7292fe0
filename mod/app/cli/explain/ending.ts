import type { JournalRecord } from "../../../base/journal.ts";
import type { PodStatus } from "../../../kube/types.ts";
import type { ExplainedPod, Finding } from "./types.ts";
import { ago, line, span, timeOf } from "./words.ts";

/** Reasons of stops that end the whole pod, and what they mean for its user. */
const podEnds: Readonly<Record<string, string>> = {
  SourceRemoved: "its manifest was removed",
  PodDeleted: "it was deleted",
  PodRemoved: "nobody wants it any more",
  Replaced: "its manifest was changed while no agent ran; a new pod takes its place",
  Orphaned: "the runtime had it, but no source wants it",
  PodGone: "the pod had gone",
};

/** How long after a pod's grace the runtime is given before something is said to be wrong, milliseconds. */
const patienceMs = 30_000;
const usualGraceSeconds = 30;

/** Whether a record's reason is the end of the whole pod. */
export function isPodEnd(reason: string): boolean {
  return Object.hasOwn(podEnds, reason);
}

/** What the end of a pod was for. */
export function podEndOf({ reason }: JournalRecord): string {
  return podEnds[reason] ?? reason;
}

/** The last record of the end of the whole pod. */
export function ending(records: readonly JournalRecord[]): JournalRecord | undefined {
  return records.findLast((r) => isPodEnd(r.reason));
}

/** That a pod is being ended, how far that is, and what holds it up. */
export function leaving(
  pod: ExplainedPod,
  status: PodStatus,
  records: readonly JournalRecord[],
  now: number,
): Finding[] {
  const end = ending(records);
  // What was started after that is another life of a pod with this UID.
  if (!end || records.some((r) => r.at > end.at && r.action === "StartContainer")) return asked(pod, status, now);
  const started = records.findLastIndex((r) => r.action === "StartContainer");
  const steps = records.slice(started + 1).filter((r) => r.reason === end.reason);
  const problem = end.error === undefined ? unconfirmed(steps) : `; the last step failed: ${line(end.error)}`;
  const since = ago(steps[0]?.at ?? end.at, now);
  return [{
    cause: `the pod is being ended since ${since}: ${podEndOf(end)}${forced(steps)}${problem}`,
    remedy: problem === ""
      ? ""
      : "The agent tries again by itself; when that goes on, look at the runtime: kubelet check",
    rank: 0,
  }];
}

/** The pod is to end, and no step of that is over yet: a stop is told of only when the runtime has answered it. */
function asked({ metadata, spec, leaving: unwanted }: ExplainedPod, status: PodStatus, now: number): Finding[] {
  const deleted = metadata.deletionTimestamp;
  if (!unwanted && deleted === undefined) return [];
  const grace = metadata.deletionGracePeriodSeconds ?? spec?.terminationGracePeriodSeconds ?? usualGraceSeconds;
  // The time of the deletion is that of the grace's end.
  const over = timeOf(deleted);
  const late = over !== undefined && now - over > patienceMs;
  const why = deleted === undefined ? "no source wants it any more" : "it was deleted";
  const all = [...status.initContainerStatuses ?? [], ...status.containerStatuses ?? []];
  if (!all.some(({ state }) => state?.running)) {
    return [{
      cause: `the pod is being ended: ${why}; none of its containers runs, and what is left of it is taken away`,
      remedy: "When that goes on: a volume that cannot be unmounted is told in the agent's log; kubelet check.",
      rank: 0,
    }];
  }
  return [{
    cause: `the pod is being ended: ${why}; its containers were asked to end and have ${grace} s for that${
      late ? `, which were over ${span(now - over)} ago, but the runtime has not answered yet` : ""
    }`,
    remedy: late
      ? "Look at the runtime: kubelet check; its log. The agent goes on to kill the processes itself."
      : "Wait for that, or find out what the program does on SIGTERM; preStop hooks count too.",
    rank: 0,
  }];
}

/** Names the containers that the runtime has not confirmed to have ended, though later steps went well. */
function unconfirmed(steps: readonly JournalRecord[]): string {
  const last = new Map<string, JournalRecord>();
  for (const step of steps) if (step.action === "StopContainer") last.set(step.container ?? "its containers", step);
  const open = [...last].filter(([, { error }]) => error !== undefined);
  if (open.length === 0) return "";
  return `; the runtime has not confirmed the end of ${
    open.map(([name, { error }]) => `${name} (${line(error ?? "", 200)})`).join(", ")
  }`;
}

/** What the agent had to do itself, as the runtime did not: names the containers whose processes it killed. */
function forced(steps: readonly JournalRecord[]): string {
  const killed = [...new Set(steps.filter((r) => r.action === "CgroupKill").map((r) => r.container ?? "its sandbox"))];
  if (killed.length === 0) return "";
  return `; the runtime did not end ${killed.join(", ")}, so the agent killed the processes through the control group`;
}
