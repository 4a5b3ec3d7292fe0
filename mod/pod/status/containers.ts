import { isSidecar, type PodContainer } from "../../kube/pod.ts";
import type { Container, ContainerState, ContainerStateTerminated, ContainerStatus } from "../../kube/types.ts";
import { anyRegularMade } from "../decide/init.ts";
import { shouldStart } from "../decide/restart.ts";
import { newest, type ObservedContainer } from "../observed.ts";
import { containerResources } from "./container_resources.ts";
import type { StatusInput } from "./input.ts";
import { stamp } from "./time.ts";

/** Reason of a container that was seen running and is gone, and its exit code (runtime-contract.md section 15). */
const lostReason = "ContainerStatusUnknown";
const lostCode = 137;
/** Text for such a container once its pod is ended. */
export const lostText = "The container could not be located when the pod was terminated";
/** The double space is the reference's. */
const lostBeforeText = "The container could not be located when the pod was deleted.  The container used to be Running";
const resetReason = "RestartingAllContainers";
const resetText = "The container is removed because RestartAllContainers in place";
const initLostText = "Unable to get init container status from container runtime and pod has been initialized, " +
  "treat it as exited normally";

/** What is the same for every container of one status. */
export interface ContainersContext {
  readonly input: StatusInput;
  /** True while RestartAllContainers takes place. */
  readonly resetting: boolean;
}

/** A container that was running when last seen and is nowhere now. */
export function lost(message: string, reason: string = lostReason): ContainerStateTerminated {
  return { exitCode: lostCode, reason, message };
}

function stateOf(
  { input, resetting }: ContainersContext,
  instance: ObservedContainer,
  old: ContainerStatus | undefined,
): ContainerState {
  const containerID = `${input.runtimeName}://${instance.id}`;
  switch (instance.state) {
    case "running":
      return { running: { startedAt: stamp(instance.startedAt) } };
    case "created":
      return { waiting: {} };
    case "exited":
      return {
        terminated: {
          exitCode: instance.exitCode,
          ...(instance.reason ? { reason: instance.reason } : {}),
          ...(instance.message ? { message: instance.message } : {}),
          startedAt: stamp(instance.startedAt),
          finishedAt: stamp(instance.finishedAt),
          containerID,
        },
      };
    case "unknown":
      if (old?.state?.running) return { terminated: lost(lostText, resetting ? resetReason : lostReason) };
      // What was said of this very instance stays said.
      if (old?.containerID === containerID && old.state?.terminated) return { terminated: old.state.terminated };
      return { waiting: {} };
  }
}

/** The status of a container that the runtime has, from its newest two instances. */
function present(
  context: ContainersContext,
  container: PodContainer,
  instances: readonly [ObservedContainer, ...ObservedContainer[]],
  old: ContainerStatus | undefined,
): ContainerStatus {
  const { input } = context;
  const [instance, before] = instances;
  const containerID = `${input.runtimeName}://${instance.id}`;
  const state = stateOf(context, instance, old);
  const anew = old?.containerID !== containerID;
  // What was made and never started counts when it starts, for another may yet stand in for it under its number.
  const started = instance.state === "created" && before ? before : instance;
  let restartCount = Math.max(started.restartCount, old?.restartCount ?? 0);
  const risen = old !== undefined &&
    (instance.state === "running"
      ? anew && old.state?.terminated !== undefined && old.restartCount >= instance.restartCount
      : instance.state === "unknown" && old.state?.running !== undefined);
  if (risen) restartCount = old.restartCount + 1;
  const ended = before && stateOf(context, before, undefined).terminated;
  // While it waited, its own end was shown as its last one.
  const reported = old?.lastState?.terminated?.containerID === containerID ? undefined : old?.lastState?.terminated;
  // A reset removes what it kills, so that its end can't be asked for.
  const reset = context.resetting && anew && old?.state?.running ? lost(resetText, resetReason) : undefined;
  const last = ended ?? (anew ? old?.state?.terminated : undefined) ?? reset ?? reported;
  return {
    name: container.spec.name,
    state,
    lastState: last ? { terminated: last } : {},
    ready: false,
    restartCount,
    image: instance.image,
    imageID: instance.imageRef,
    containerID,
    ...containerResources(container.spec, instance, input.resize?.actuated?.containers.get(container.spec.name)),
    ...volumeMounts(input, container.spec),
    ...(input.stopSignals && instance.stopSignal ? { stopSignal: instance.stopSignal } : {}),
    ...(instance.user
      ? {
        user: {
          linux: {
            uid: instance.user.uid,
            gid: instance.user.gid,
            ...(instance.user.supplementalGroups.length > 0
              ? { supplementalGroups: [...instance.user.supplementalGroups] }
              : {}),
          },
        },
      }
      : {}),
  };
}

/** The status of a container of which the runtime has no instance. */
function absent(
  context: ContainersContext,
  container: PodContainer,
  old: ContainerStatus | undefined,
): ContainerStatus {
  const { pod } = context.input;
  const waiting = { reason: (pod.spec.initContainers?.length ?? 0) > 0 ? "PodInitializing" : "ContainerCreating" };
  const status: ContainerStatus = {
    name: container.spec.name,
    state: { waiting },
    lastState: old?.lastState ?? {},
    ready: false,
    restartCount: old?.restartCount ?? 0,
    image: container.spec.image ?? "",
    imageID: "",
    ...volumeMounts(context.input, container.spec),
  };
  if (!old) return status;
  if (context.resetting && !old.state?.waiting) {
    return {
      ...status,
      state: { waiting: { reason: resetReason, message: resetText } },
      lastState: { terminated: lost(resetText, resetReason) },
      restartCount: old.restartCount + 1,
    };
  }
  if (old.state?.terminated) return { ...old, ready: false };
  if (!old.state?.running || old.lastState?.terminated) return status;
  const restarts = pod.metadata.deletionTimestamp === undefined ? 1 : 0;
  return {
    ...status,
    lastState: { terminated: lost(lostBeforeText) },
    restartCount: old.restartCount + restarts,
  };
}

/** Shows a container that is to start but can't as Waiting, with the cause (section 15). */
function waitingOf(context: ContainersContext, container: PodContainer, status: ContainerStatus): ContainerStatus {
  const { pod, observed, held, startErrors } = context.input;
  const { kind, spec } = container;
  const latest = newest(observed, spec.name);
  if (kind === "init") {
    if (latest?.state === "exited" && latest.exitCode === 0) return status;
    const ranBefore = !latest && !isSidecar(container) && status.state?.waiting !== undefined &&
      anyRegularMade(pod, observed, ["created", "running", "exited"]);
    if (ranBefore) {
      return { ...status, state: { terminated: { exitCode: 0, reason: "Completed", message: initLostText } } };
    }
  }
  if (!shouldStart(pod, spec, latest)) return status;
  const cause = held?.find((h) => h.name === spec.name) ?? startErrors(spec.name);
  if (!cause) return status;
  return {
    ...status,
    lastState: status.state?.terminated ? { terminated: status.state.terminated } : status.lastState ?? {},
    state: { waiting: { reason: cause.reason, ...(cause.message ? { message: cause.message } : {}) } },
  };
}

/**
 * `started` and `ready` by the probes (section 15). A probe that has no result yet leaves what was reported of the same
 * instance before, so that a restart of the agent flips no pod's readiness.
 */
function probed(
  { input }: ContainersContext,
  container: PodContainer,
  status: ContainerStatus,
  old: ContainerStatus | undefined,
): ContainerStatus {
  const { kind, spec } = container;
  if (kind === "ephemeral") return status;
  const instance = newest(input.observed, spec.name);
  const running = status.state?.running !== undefined && instance !== undefined;
  const view = running ? input.probes(instance.id) : {};
  const same = old?.containerID !== undefined && old.containerID === status.containerID;
  const started = running && (view.startup ?? ((same && old.started === true) || spec.startupProbe === undefined));
  if (kind === "init" && !isSidecar(container)) {
    return { ...status, started, ready: status.state?.terminated?.exitCode === 0 };
  }
  const ready = started &&
    (spec.readinessProbe === undefined || (view.readiness ?? (same && old.ready)));
  return { ...status, started, ready };
}

function volumeMounts(input: StatusInput, container: Container): Pick<ContainerStatus, "volumeMounts"> {
  const mounts = container.volumeMounts ?? [];
  if (mounts.length === 0) return {};
  const mode = (asked: string | undefined) =>
    input.recursiveReadOnly === true && (asked === "Enabled" || asked === "IfPossible") ? "Enabled" : "Disabled";
  return {
    volumeMounts: mounts.map(({ name, mountPath, readOnly, recursiveReadOnly }) => ({
      name,
      mountPath,
      ...(readOnly ? { readOnly, recursiveReadOnly: mode(recursiveReadOnly) } : {}),
    })),
  };
}

/** The fields in the order in which the API writes them. */
function inOrder(status: ContainerStatus): ContainerStatus {
  const { name, state, lastState, ready, restartCount, image, imageID, containerID, started, ...rest } = status;
  return {
    name,
    state: state ?? {},
    lastState: lastState ?? {},
    ready,
    restartCount,
    image,
    imageID,
    ...(containerID === undefined ? {} : { containerID }),
    ...(started === undefined ? {} : { started }),
    ...rest,
  };
}

/** The statuses of these containers, in spec order. Restart counts never go down. */
export function containerStatuses(
  context: ContainersContext,
  containers: readonly PodContainer[],
  previous: readonly ContainerStatus[] | undefined,
): ContainerStatus[] {
  const { observed } = context.input;
  return containers.map((container) => {
    const name = container.spec.name;
    const old = previous?.find((s) => s.name === name);
    const [first, ...more] = observed.containers.filter((c) => c.name === name);
    const status = first ? present(context, container, [first, ...more], old) : absent(context, container, old);
    return inOrder(probed(context, container, waitingOf(context, container, status), old));
  });
}
