import type { JournalRecord } from "../../../base/journal.ts";
import type { Container, ContainerStatus, PodStatus } from "../../../kube/types.ts";
import { ending, leaving, podEndOf } from "./ending.ts";
import { objectRemedy } from "./objects.ts";
import { resizes } from "./resizes.ts";
import { explainRuntimeError } from "./runtime_errors.ts";
import { explainContainer } from "./container.ts";
import type { ExplainedPod, Finding } from "./types.ts";
import { ago, line, since, timeOf, took } from "./words.ts";

/** Records that the history shows; earlier ones are counted. */
const shownRecords = 20;

/**
 * Explains a pod in words: how it is, why (cause first, then the remedy), and what was done to it, in causal order with
 * times relative to now. Pure. @param status undefined when there is none @param now milliseconds since the epoch
 */
export function explainPod(
  pod: ExplainedPod,
  status: PodStatus | undefined,
  records: readonly JournalRecord[],
  now: number,
): string {
  const own = records.filter((r) => r.pod?.uid === pod.metadata.uid).sort((a, b) => a.at - b.at || a.seq - b.seq);
  const found = findings(pod, status, own, now).sort((a, b) => a.rank - b.rank);
  const { namespace, name, uid } = pod.metadata;
  const parts = [`Pod ${namespace}/${name} (uid ${uid}): ${headline(status, own)}`];
  parts.push(
    found.map(({ cause, remedy }) =>
      [`Why: ${capital(cause)}`, ...(remedy === "" ? [] : [`Remedy: ${remedy}`])].join("\n")
    )
      .join("\n\n"),
  );
  parts.push(history(own, now));
  return parts.join("\n\n");
}

function capital(text: string): string {
  return text.slice(0, 1).toUpperCase() + text.slice(1) + (/[.\u2026?!]$/.test(text) ? "" : ".");
}

function headline(status: PodStatus | undefined, records: readonly JournalRecord[]): string {
  if (!status) return records.some((r) => r.action === "Reject") ? "rejected" : "no status";
  const all = [...status.initContainerStatuses ?? [], ...status.containerStatuses ?? []];
  const ready = all.filter((c) => c.ready).length;
  const waiting = all.map((c) => c.state?.waiting?.reason).find((r) => r && !usualWaiting.has(r));
  const word = status.reason ?? waiting ?? status.phase ?? "Pending";
  return status.phase === "Running" || waiting ? `${word}, ${ready} of ${all.length} containers ready` : word;
}

const usualWaiting = new Set(["PodInitializing", "ContainerCreating"]);

function findings(
  pod: ExplainedPod,
  status: PodStatus | undefined,
  records: readonly JournalRecord[],
  now: number,
): Finding[] {
  const rejected = records.findLast((r) => r.action === "Reject");
  const none = !status?.containerStatuses?.some((c) =>
    c.state?.running || c.state?.terminated || c.lastState?.terminated
  );
  if (status?.phase === "Failed" && (status.reason ?? "") !== "") return [failed(pod, status, rejected, now)];
  if (rejected && none && (!status || status.phase === "Failed")) {
    return [rejection(rejected.reason, rejected.message, rejected.at, now)];
  }
  if (!status) return [unknown(records, now)];
  const found = [
    ...containers(pod, status, records, now),
    ...leaving(pod, status, records, now),
    ...resizes(status, now),
  ];
  if (none && !found.some((f) => f.rank === 0)) found.push(...starting(pod, status, records, now));
  if (found.length > 0) return found;
  return [fine(status, now)];
}

function containers(
  pod: ExplainedPod,
  status: PodStatus,
  records: readonly JournalRecord[],
  now: number,
): Finding[] {
  const each = (kind: "container" | "init container", list: readonly ContainerStatus[], specs: readonly Container[]) =>
    list.flatMap((one) =>
      explainContainer({ pod, kind, status: one, spec: specs.find((s) => s.name === one.name), records, now }) ?? []
    );
  return [
    ...each("init container", status.initContainerStatuses ?? [], pod.spec?.initContainers ?? []),
    ...each("container", status.containerStatuses ?? [], pod.spec?.containers ?? []),
  ];
}

/** What to do about a pod that this node does not take. */
function rejectionRemedy(reason: string): string {
  if (reason === "OutOfpods") {
    return "Raise maxPods (or podsPerCore) in the configuration, or run fewer pods on this node.";
  }
  if (reason.startsWith("OutOf")) {
    return "Lower resources.requests of the pod, free some by ending other pods, or lower kubeReserved and systemReserved.";
  }
  switch (reason) {
    case "Evicted":
      return "Free what the node runs short of (its condition names it), then write the manifest again: a rejected pod is " +
        "not asked about twice.";
    case "NodeAffinity":
      return "Correct nodeSelector or nodeAffinity of the pod, or give the node the label (--node-labels).";
    case "SysctlForbidden":
      return "Allow the sysctl with allowedUnsafeSysctls in the configuration, or take it out of the pod.";
    case "AppArmor":
      return "Load the AppArmor profile on the node, or take it out of the pod; the kernel must have AppArmor on.";
    case "PodOSNotSupported":
      return "Set spec.os.name to linux, or leave it out.";
    case "NodeName":
      return "The pod names another node: correct spec.nodeName.";
    default:
      return "Correct what the message names, then write the manifest again: a rejected pod is not asked about twice.";
  }
}

/** Names of the resources that a failed preemption was short of, out of its message. */
function shortOf(message: string): string[] {
  return [...message.matchAll(/\(res: ([\w./-]{1,80}),/g)].flatMap(([, name]) => name ?? []);
}

function rejection(reason: string, message: string, at: number | undefined, now: number): Finding {
  const short = reason === "UnexpectedAdmissionError" ? shortOf(message) : [];
  if (short.length > 0) {
    // What a critical pod, as every static one is, is told in place of OutOf….
    return {
      cause: `this node did not take the pod${at === undefined ? "" : ` (${ago(at, now)})`}: it requests more ${
        short.join(" and ")
      } than is free, and ending less important pods would not free enough. In the agent's words: ${reason}: ${
        line(message)
      }`,
      remedy: rejectionRemedy(`OutOf${short[0]}`),
      rank: 0,
    };
  }
  return {
    cause: `this node did not take the pod${at === undefined ? "" : ` (${ago(at, now)})`}: ${reason}: ${line(message)}`,
    remedy: rejectionRemedy(reason),
    rank: 0,
  };
}

const turnedAway = "Pod was rejected: ";

function evicted(message: string, rejected: JournalRecord | undefined, now: number): Finding {
  if (message.startsWith(turnedAway)) return rejection("Evicted", message.slice(turnedAway.length), rejected?.at, now);
  if (!message.startsWith("The node was low on resource")) {
    return {
      cause: `the pod kept more on the node's disk than it may, so the agent ended it: ${line(message)}`,
      remedy: "Make the pod keep less there, or raise the limit that the message names; then write the manifest again.",
      rank: 0,
    };
  }
  return {
    cause: `the agent ended the pod to save the node: ${line(message)}`,
    remedy: "Free what the node ran short of; give the pod requests that cover what it takes, so that others go first.",
    rank: 0,
  };
}

function failed(pod: ExplainedPod, status: PodStatus, rejected: JournalRecord | undefined, now: number): Finding {
  const reason = status.reason ?? "";
  const message = status.message ?? "";
  switch (reason) {
    case "DeadlineExceeded":
      return {
        cause: `the pod ran longer than its activeDeadlineSeconds${
          pod.spec?.activeDeadlineSeconds === undefined ? "" : ` (${pod.spec.activeDeadlineSeconds})`
        }, so the agent ended it`,
        remedy: "Raise activeDeadlineSeconds, or make the work shorter.",
        rank: 0,
      };
    case "Evicted":
      return evicted(message, rejected, now);
    case "Preempting":
      return {
        cause: `the agent ended the pod to make room for a critical one: ${line(message)}`,
        remedy: "Free resources on the node, or give this pod a higher priority.",
        rank: 0,
      };
  }
  if (rejected?.reason === reason || !status.containerStatuses?.some((c) => c.lastState?.terminated || c.containerID)) {
    return rejection(reason, message, rejected?.at, now);
  }
  return { cause: `the pod has failed: ${reason}: ${line(message)}`, remedy: "", rank: 0 };
}

/** The agent has no status: the pod is gone, or it never came. */
function unknown(records: readonly JournalRecord[], now: number): Finding {
  const last = records.at(-1);
  if (!last) {
    return {
      cause: "nothing is known of this pod",
      remedy: "Check its name (kubelet ps), and that its manifest lies in staticPodPath.",
      rank: 0,
    };
  }
  const end = ending(records);
  return end ? { cause: `the pod is gone (${ago(end.at, now)}): ${podEndOf(end)}`, remedy: "", rank: 0 } : {
    cause: `the pod's state is not known; what was done to it last: ${line(last.message)} (${ago(last.at, now)})`,
    remedy: "",
    rank: 0,
  };
}

/** The volumes whose last set-up failed; undefined when there are none. */
function failedMounts(records: readonly JournalRecord[], waits: string): Finding | undefined {
  const last = new Map<string, JournalRecord>();
  for (const record of records) if (record.action === "MountVolume") last.set(record.target ?? "", record);
  const failed = [...last].filter(([, { error }]) => error !== undefined);
  if (failed.length === 0) return undefined;
  const each = failed.map(([volume, { error }]) => `${volume}: ${line(error ?? "", 300)}`);
  return {
    cause: `the pod waits${waits} for ${failed.length === 1 ? "a volume that" : "volumes that"} cannot be set up: ${
      each.join("; ")
    }`,
    remedy: objectRemedy(failed.map(([, { error }]) => error).join("; ")) ??
      "Correct what the message names, in the manifest or on the node; the agent tries again by itself.",
    rank: 0,
  };
}

/** No container was ever there: the sandbox, its network or the volumes hold the pod up. */
function starting(
  pod: ExplainedPod,
  status: PodStatus,
  records: readonly JournalRecord[],
  now: number,
): Finding[] {
  const waits = since(timeOf(status.startTime), now);
  const sandbox = records.findLast((r) => r.action === "RunPodSandbox");
  if (sandbox?.error !== undefined) {
    const network = /network|cni/i.test(sandbox.error);
    return [{
      cause: `the pod waits${waits}, as the runtime cannot make its sandbox${network ? " and network" : ""}: ${
        line(sandbox.error)
      }`,
      remedy: network
        ? "Put the node's network in order: a CNI configuration in /etc/cni/net.d and its plugins in /opt/cni/bin; kubelet check"
        : explainRuntimeError(sandbox.error)?.remedy ??
          "Look at the runtime: kubelet check; its log. The agent tries again by itself.",
      rank: 0,
    }];
  }
  if (sandbox) {
    const last = records.at(-1);
    return [{
      cause: `the pod is starting${waits}: its sandbox is there${
        last && last !== sandbox ? `; last step: ${last.action}` : ", its images and containers come next"
      }`,
      remedy: "",
      rank: 0,
    }];
  }
  const mount = failedMounts(records, waits);
  if (mount) return [mount];
  const volumes = (pod.spec?.volumes ?? []).map((v) => v.name);
  return [{
    cause: `the pod is waiting${waits} for its start: nothing has been asked of the runtime yet${
      volumes.length > 0 ? `; its volumes (${volumes.join(", ")}) or the node's network may not be ready` : ""
    }`,
    remedy:
      "When it goes on: kubelet check tells whether runtime and network are ready; events FailedMount in the agent's log tell of volumes.",
    rank: 0,
  }];
}

function fine(status: PodStatus, now: number): Finding {
  if (status.phase === "Succeeded") {
    return { cause: "every container has ended with success; the pod is done", remedy: "", rank: 2 };
  }
  const ready = status.conditions?.find((c) => c.type === "Ready");
  const long = since(timeOf(ready?.lastTransitionTime), now);
  if (ready?.status === "True") {
    const text = long === "" ? "" : ` (ready${long})`;
    return { cause: `nothing is wrong: every container runs and is ready${text}`, remedy: "", rank: 2 };
  }
  const blocking = status.conditions?.find((c) => c.type === "ContainersReady" && c.status === "True");
  if (blocking) {
    return {
      cause: `every container is ready, but the pod is not: ${
        line(ready?.message ?? ready?.reason ?? "a readiness gate is not true")
      }`,
      remedy: "Whoever the pod's readinessGates wait for must set their conditions.",
      rank: 0,
    };
  }
  return { cause: `the pod is ${(status.phase ?? "pending").toLowerCase()} and not ready yet`, remedy: "", rank: 2 };
}

function history(records: readonly JournalRecord[], now: number): string {
  if (records.length === 0) return "What the agent did: nothing that is recorded.";
  const shown = records.slice(-shownRecords);
  const left = records.length - shown.length;
  const width = Math.max(...shown.map((r) => ago(r.at, now).length));
  const lines = shown.map((r) => {
    const what = r.container === undefined ? r.action : `${r.action} ${r.container}`;
    const time = r.tookMs === undefined ? "" : ` (${took(r.tookMs)})`;
    const error = r.error === undefined ? "" : ` FAILED: ${line(r.error, 200)}`;
    return `  ${ago(r.at, now).padStart(width)}  ${what}${time}: ${line(r.message, 200)}${error}`;
  });
  const head = left === 0 ? "What the agent did:" : `What the agent did (${left} earlier records left out):`;
  return [head, ...lines].join("\n");
}
