import type { Snapshot, SnapshotContainer } from "../../cri/fake/snapshot.ts";
import type { BoundPod, Container, PodStatus } from "../../mod/kube/types.ts";
import { short } from "./trace.ts";
import { linkDir, planOfContainer, podLogsDir, rootDir, type World } from "./world.ts";

/** What the agent says of its pods. */
export type Told = readonly { readonly pod: BoundPod; readonly status: PodStatus | undefined }[];

/** What is not yet as it must be once nothing happens any more, in words; empty when all is. */
export interface Unsettled {
  readonly problems: string[];
  /** UIDs of pods that go on changing by their own nature: they crash again and again, or cannot start. */
  readonly restless: Set<string>;
}

/** Slack of restarts beyond their back-off: relist, retry after errors, the time that an instance runs. */
const slackMs = 45_000;

/** Compares what there is with what the manifests want. */
export function unsettled(world: World, told: Told, options: {
  maxBackOffMs: number;
  /** UIDs whose end may be that of an earlier definition. */
  redefined: ReadonlySet<string>;
}): Unsettled {
  const snapshot = world.runtime.snapshot();
  const wanted = world.wanted();
  const problems: string[] = [];
  const restless = new Set<string>();
  const statuses = new Map(told.map(({ pod, status }) => [pod.metadata.uid, status]));
  for (const [uid, pod] of wanted) {
    const status = statuses.get(uid);
    const name = `${pod.metadata.name} ${short(uid)}`;
    if (!statuses.has(uid)) problems.push(`${name}: the agent does not have it`);
    else if (!status) problems.push(`${name}: has no status`);
    else if (rejected(status)) {
      if (ofPod(snapshot, uid).length > 0) problems.push(`${name}: was rejected but has containers`);
    } else {
      if (terminal(status) && options.redefined.has(uid)) continue;
      const found = podState(world, pod, status, snapshot, {
        maxBackOffMs: options.maxBackOffMs,
        redefined: options.redefined.has(uid),
      });
      if (found.restless) restless.add(uid);
      // Garbage collection takes all that the runtime has of an evicted pod.
      if (status.reason === "Evicted" && ofPod(snapshot, uid).length > 0) {
        problems.push(`${name}: was evicted and still has containers`);
      }
      problems.push(...found.problems.map((p) => `${name}: ${p}`));
    }
  }
  for (const uid of statuses.keys()) if (!wanted.has(uid)) problems.push(`${short(uid)}: the agent still has it`);
  const alive = new Set<string>();
  const stopped = new Set<string>();
  for (const [uid] of wanted) {
    const status = statuses.get(uid);
    if (!status || rejected(status)) continue;
    alive.add(uid);
    if (terminal(status)) stopped.add(uid);
  }
  problems.push(...leftovers(world, snapshot, alive, stopped));
  return { problems, restless };
}

export function terminal(status: PodStatus): boolean {
  return status.phase === "Succeeded" || status.phase === "Failed";
}

function rejected(status: PodStatus): boolean {
  return status.phase === "Failed" && (status.message ?? "").startsWith("Pod was rejected");
}

/** True for a pod that came while the node ran short of something. */
export function turnedAway(status: PodStatus): boolean {
  return rejected(status) && status.reason === "Evicted";
}

function ofPod(snapshot: Snapshot, uid: string): SnapshotContainer[] {
  return snapshot.containers.filter((c) => c.uid === uid).sort((a, b) =>
    b.attempt - a.attempt || b.createdAt - a.createdAt
  );
}

function podState(
  world: World,
  pod: BoundPod,
  status: PodStatus,
  snapshot: Snapshot,
  { maxBackOffMs, redefined }: { maxBackOffMs: number; redefined: boolean },
): { problems: string[]; restless: boolean } {
  const uid = pod.metadata.uid;
  const { spec } = pod;
  const containers = ofPod(snapshot, uid);
  const newest = (name: string) => containers.find((c) => c.name === name);
  const boxes = snapshot.sandboxes.filter((s) => s.uid === uid && s.ready);
  if (terminal(status)) {
    const problems: string[] = [];
    if (boxes.length > 0) problems.push(`is ${status.phase} but has a sandbox that is ready`);
    if (containers.some((c) => c.state === "running")) problems.push(`is ${status.phase} but runs`);
    const forced = spec.activeDeadlineSeconds !== undefined ||
      status.reason === "Preempting" || status.reason === "Evicted";
    if (spec.restartPolicy === "Always" && !forced) {
      problems.push(`is ${status.phase} although it restarts always`);
    }
    if (status.phase === "Succeeded" && spec.containers.some((c) => (newest(c.name)?.exitCode ?? 0) !== 0)) {
      problems.push("is Succeeded but a container has failed");
    }
    return { problems, restless: false };
  }
  const problems: string[] = [];
  if (spec.activeDeadlineSeconds !== undefined) problems.push("its deadline has not ended it yet");
  if (boxes.length !== 1) problems.push(`has ${boxes.length} sandboxes that are ready`);
  let restless = false;
  const judge = (container: Container, again: boolean): "runs" | "loops" | "ended" | "blocked" => {
    const instance = newest(container.name);
    const plan = planOfContainer(pod, container.name);
    const broken = plan?.acts.some((a) => a.startError !== undefined) ?? false;
    if (broken || container.image === "registry.sim/none:1") {
      restless = true;
      return "blocked";
    }
    if (instance?.state === "running") {
      const act = plan?.acts[Math.min(instance.attempt, plan.acts.length - 1)];
      if (act?.ms !== undefined) restless = true;
      return "runs";
    }
    if (instance?.state === "exited" && !again) return "ended";
    if (instance?.state === "exited") {
      restless = true;
      const since = world.sinceExit(instance);
      if (since > maxBackOffMs + slackMs) problems.push(`${container.name} ended ${since / 1000} s ago, not restarted`);
      return "loops";
    }
    problems.push(`${container.name} is ${instance?.state ?? "not there"}`);
    return "blocked";
  };
  for (const init of spec.initContainers ?? []) {
    if (init.restartPolicy === "Always") {
      // What cannot be started holds up all that comes after it.
      if (judge(init, true) === "blocked") return { problems, restless: true };
      continue;
    }
    // What an earlier sandbox has seen done counts for nothing in the one that is there now.
    const here = (name: string) => containers.find((c) => c.name === name && c.sandboxId === boxes[0]?.id);
    const done = here(init.name);
    // What was a sidecar in an earlier definition runs on, and all that comes after it waits (section 13).
    if (redefined && done?.state === "running") return { problems, restless: true };
    const later = spec.containers.some((c) => here(c.name));
    if (done?.state === "exited" && done.exitCode === 0 || later) continue;
    judge(init, true);
    return { problems, restless: true };
  }
  const verdicts = spec.containers.map((container) => {
    const exited = newest(container.name);
    const again = spec.restartPolicy === "Always" || (spec.restartPolicy === "OnFailure" && exited?.exitCode !== 0);
    return judge(container, again);
  });
  if (verdicts.every((v) => v === "ended")) problems.push("everything has ended, but it is not terminal");
  if (!restless) problems.push(...statusProblems(pod, status, newest, redefined));
  return { problems, restless };
}

/** What the status says of a pod at rest must be what there is. */
function statusProblems(
  pod: BoundPod,
  status: PodStatus,
  newest: (name: string) => SnapshotContainer | undefined,
  redefined: boolean,
): string[] {
  const problems: string[] = [];
  // What was a sidecar in an earlier definition runs on as an init container that is never done (section 13).
  const pending = redefined &&
    (pod.spec.initContainers ?? []).some(({ name, restartPolicy }) =>
      restartPolicy !== "Always" && newest(name)?.state === "running"
    );
  const phase = pending ? "Pending" : "Running";
  if (status.phase !== phase) problems.push(`runs, but its phase is ${status.phase}`);
  for (const { name } of pod.spec.containers) {
    const truth = newest(name);
    const told = status.containerStatuses?.find((s) => s.name === name);
    if (truth?.state === "running" && (!told?.state?.running || !told.ready)) {
      problems.push(`${name} runs, its status says ${JSON.stringify(told?.state)}, ready ${told?.ready}`);
    }
    if (truth && !told?.containerID?.endsWith(truth.id)) problems.push(`${name}: status of another instance`);
    if (truth && told && told.restartCount !== truth.attempt) {
      problems.push(`${name}: restartCount ${told.restartCount}, attempt ${truth.attempt}`);
    }
  }
  const ready = status.conditions?.find((c) => c.type === "Ready")?.status === "True";
  if (!ready && pod.spec.containers.every(({ name }) => newest(name)?.state === "running")) {
    problems.push("everything runs and every probe succeeds, but it is not Ready");
  }
  return problems;
}

/** Invariant 3: nothing is left of a pod that is not wanted; one that has ended holds no volume and no group. */
function leftovers(
  world: World,
  snapshot: Snapshot,
  alive: ReadonlySet<string>,
  stopped: ReadonlySet<string>,
): string[] {
  const { host } = world;
  const problems: string[] = [];
  for (const s of snapshot.sandboxes) {
    if (!alive.has(s.uid)) problems.push(`left: sandbox of ${s.podName} ${short(s.uid)}`);
  }
  for (const c of snapshot.containers) {
    if (!alive.has(c.uid)) problems.push(`left: container ${c.podName}/${c.name} of ${short(c.uid)}`);
  }
  for (const name of host.names(`${rootDir}/pods`)) {
    if (!alive.has(name)) problems.push(`left: directory of ${short(name)}`);
  }
  for (const name of host.names(podLogsDir)) {
    if (!alive.has(name.slice(name.lastIndexOf("_") + 1))) problems.push(`left: logs ${name}`);
  }
  for (const path of host.tree(linkDir)) {
    const target = path.split(" -> ")[1] ?? "";
    const dir = target.slice(podLogsDir.length + 1).split("/")[0] ?? "";
    if (!alive.has(dir.slice(dir.lastIndexOf("_") + 1))) problems.push(`left: link ${path}`);
    else if (!host.exists(target)) problems.push(`left: link to nothing ${path}`);
  }
  for (const target of host.mountTargets(rootDir)) {
    const uid = target.slice(`${rootDir}/pods/`.length).split("/")[0] ?? "";
    if (!alive.has(uid)) problems.push(`left: mount ${target}`);
    else if (stopped.has(uid)) problems.push(`left: mount ${target} of a pod that has ended`);
  }
  for (const path of host.tree(host.cgroupRoot)) {
    const uid = /\/pod([^/]+)\/$/.exec(path)?.[1];
    if (uid === undefined) continue;
    if (!alive.has(uid)) problems.push(`left: control group ${path}`);
    else if (stopped.has(uid)) problems.push(`left: control group ${path} of a pod that has ended`);
  }
  return problems;
}
