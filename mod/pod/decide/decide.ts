import { podContainers } from "../../kube/pod.ts";
import type { BoundPod, Container } from "../../kube/types.ts";
import type { DecideInput, KillContainer, PodActions, Why } from "../actions.ts";
import { newest, type ObservedContainer, type ObservedPod } from "../observed.ts";
import { heldBack, type Wanted } from "./backoff.ts";
import { anyRegularMade, initVerdict } from "./init.ts";
import { resizeAction } from "../resize/needs.ts";
import { kill, resizeRestart } from "./kills.ts";
import { regularVerdict } from "./regular.ts";
import { restartAllSource, triggersRestartAll } from "./restart.ts";
import { type SandboxVerdict, sandboxVerdict } from "./sandbox.ts";

const nothing: PodActions = { kill: [], remove: [], start: [], held: [], finished: false };

/** True for an instance that runs or may run. */
export function isLive(container: ObservedContainer): boolean {
  return container.state === "running" || container.state === "unknown";
}

/** Ends the pod: kills and stops what is left, starts nothing. */
function end(observed: ObservedPod, why: Why): PodActions {
  const live = observed.containers.some(isLive);
  const left = live || observed.sandboxes.some((s) => s.ready);
  return { ...nothing, ...(left ? { killPod: why } : {}), finished: !live };
}

function isInit(pod: BoundPod, name: string): boolean {
  return pod.spec.initContainers?.some((c) => c.name === name) ?? false;
}

/** Init containers that ended, all but the newest of each name; they are of no use to the scan of the next decision. */
function oldInits(pod: BoundPod, observed: ObservedPod, killed: ReadonlySet<string>): PodActions["remove"] {
  const seen = new Set<string>();
  return observed.containers.filter((c) => {
    const ended = c.state === "exited" || (c.state === "unknown" && killed.has(c.id));
    if (!ended || !isInit(pod, c.name)) return false;
    return seen.size === seen.add(c.name).size;
  }).map(({ id, name }) => ({
    id,
    name,
    reason: "OldInitContainer",
    message: `init container ${name} ran again since`,
  }));
}

/**
 * Instances that were made and not started, for the agent ended between the two or the start was lost. They are
 * removed, never started late: what was built for them may be out of date, and a start under way must not bring up two.
 */
function neverStarted(pod: BoundPod, observed: ObservedPod): PodActions["remove"] {
  const names = new Set(podContainers(pod).map((c) => c.spec.name));
  return observed.containers.filter((c) => c.state === "created" && names.has(c.name)).map(({ id, name }) => ({
    id,
    name,
    reason: "NeverStarted",
    message: `container ${name} was created but not started`,
  }));
}

/** Older instances that still run beside a newer one of their name; only one of a name may. */
function duplicates(pod: BoundPod, observed: ObservedPod): KillContainer[] {
  const names = new Set(podContainers(pod).map((c) => c.spec.name));
  return observed.containers
    .filter((c) => isLive(c) && names.has(c.name) && newest(observed, c.name)?.id !== c.id)
    .map((c) => kill(c, "DuplicateInstance", `a newer instance of container ${c.name} exists`, false));
}

/** What a pod starts with when nothing of it is there: its first init container, or else its regular ones. */
function firstOnes(pod: BoundPod, why: Why, regular: readonly Container[] = pod.spec.containers): Wanted[] {
  const first = pod.spec.initContainers?.[0];
  if (first) return [{ container: { kind: "init", spec: first }, why }];
  return regular.map((spec) => ({ container: { kind: "regular", spec }, why }));
}

/** The regular containers that a new sandbox is for: all but those that run once and have succeeded. */
function stillToRun(pod: BoundPod, observed: ObservedPod): Container[] {
  return pod.spec.containers.filter((spec) => {
    const once = (spec.restartPolicy ?? pod.spec.restartPolicy) === "OnFailure";
    const latest = newest(observed, spec.name);
    return !(once && latest?.state === "exited" && latest.exitCode === 0);
  });
}

/** Makes the sandbox anew and the pod from the start, unless nothing is left for it to run (section 7). */
function renew(input: DecideInput, verdict: SandboxVerdict & { needed: true }): PodActions {
  const { pod, observed } = input;
  const { attempt, why, replaces } = verdict;
  if (pod.spec.restartPolicy === "Never" && attempt !== 0 && observed.containers.length > 0) {
    return end(observed, { reason: "NotRestarted", message: `${why.message}, and the pod's restart policy is Never` });
  }
  const regular = stillToRun(pod, observed);
  if (regular.length === 0 && anyRegularMade(pod, observed, ["created", "running", "exited"])) {
    return end(observed, { reason: "PodCompleted", message: "every container has succeeded" });
  }
  const killPod = observed.sandboxes.length > 0 || observed.containers.some(isLive) ? { killPod: why } : {};
  const inits = observed.containers.filter((c) => isInit(pod, c.name)).map(({ id, name }) => ({
    id,
    name,
    reason: "PodRestarts",
    message: `init container ${name} runs again in the new sandbox`,
  }));
  const remove = [...inits, ...neverStarted(pod, observed).filter((c) => !isInit(pod, c.name))];
  return {
    ...nothing,
    ...killPod,
    remove,
    createSandbox: { ...why, attempt, ...(replaces === undefined ? {} : { replaces }) },
    ...heldBack(
      input,
      firstOnes(pod, { reason: "NewSandbox", message: `started in a new sandbox: ${why.message}` }, regular),
    ),
  };
}

/** RestartAllContainers: everything out and in again, in the same sandbox (sections 8 and 9). */
function reset(input: DecideInput, sandbox: SandboxVerdict, source: Container): PodActions {
  const { pod, observed } = input;
  const of = (containers: readonly Container[], sources: boolean) =>
    containers.flatMap((spec) =>
      observed.containers
        .filter((c) => c.name === spec.name && triggersRestartAll(spec, c) === sources)
        .map((c) => ({ id: c.id, name: c.name, live: c.state !== "exited" }))
    );
  const inits = pod.spec.initContainers ?? [];
  const why = {
    reason: "RestartAllContainers",
    message: `container ${source.name} exited with a code whose rule restarts every container`,
  };
  return {
    ...nothing,
    ...(sandbox.needed
      ? {
        ...(observed.sandboxes.length > 0 ? { killPod: sandbox.why } : {}),
        createSandbox: {
          ...sandbox.why,
          attempt: sandbox.attempt,
          ...(sandbox.replaces === undefined ? {} : { replaces: sandbox.replaces }),
        },
      }
      : { sandboxId: sandbox.sandboxId }),
    resetContainers: {
      ...why,
      containers: [
        ...of(pod.spec.containers, false),
        ...of(inits, false),
        ...of(pod.spec.containers, true),
        ...of(inits, true),
      ],
    },
    // What was removed has no exit any more that a back-off could count from.
    start: firstOnes(pod, why).map(({ container }) => ({ kind: container.kind, name: container.spec.name, ...why })),
  };
}

function ephemeralWanted(pod: BoundPod, observed: ObservedPod): Wanted[] {
  return (pod.spec.ephemeralContainers ?? []).filter((c) => !newest(observed, c.name)).map((c) => ({
    container: { kind: "ephemeral", spec: c as Container },
    why: { reason: "FirstStart", message: `ephemeral container ${c.name} has not been started yet` },
  }));
}

/**
 * What to do for a pod, given its spec and what the runtime has of it (runtime-contract.md sections 4, 7 and 9). Does
 * nothing itself and keeps nothing, so the same input always gives the same answer. A pod that is being deleted gets
 * no new sandbox or container; the worker kills it by its own path.
 */
export function decide(input: DecideInput): PodActions {
  const { pod, observed } = input;
  if (pod.metadata.deletionTimestamp !== undefined) {
    return end(observed, { reason: "PodDeleted", message: "the pod is being deleted" });
  }
  const sandbox = sandboxVerdict(pod, observed);
  const source = restartAllSource(pod, observed);
  if (source) return reset(input, sandbox, source);
  if (sandbox.needed) return renew(input, sandbox);

  const init = initVerdict(input);
  if (init.failed) return end(observed, init.failed);
  const ephemeral = ephemeralWanted(pod, observed);
  const regular = init.initialised ? regularVerdict(input) : undefined;
  if (regular && !regular.keeps && regular.wanted.length === 0) {
    const message = "no container runs, and by the restart policy none is started again";
    return end(observed, { reason: "PodCompleted", message });
  }
  const kills = [...duplicates(pod, observed), ...init.kill, ...regular?.kill ?? []];
  const wanted = [...ephemeral, ...init.wanted, ...regular?.wanted ?? []];
  const resize = input.resize && resizeAction(pod, observed, input.resize, {
    leaving: new Set(kills.map((k) => k.id)),
    restarts: kills.some((k) => k.reason === resizeRestart),
  });
  return {
    ...nothing,
    kill: kills,
    ...(resize ? { resize } : {}),
    remove: [...oldInits(pod, observed, new Set(kills.map((k) => k.id))), ...neverStarted(pod, observed)],
    sandboxId: sandbox.sandboxId,
    ...heldBack(input, wanted),
  };
}
