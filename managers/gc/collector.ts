import { isNotFound, type RuntimeService } from "../../cri/api.ts";
import { type Container, ContainerState, type ContainerStatus, PodSandboxState } from "../../cri/gen/runtime_pb.ts";
import { allOf } from "../../mod/base/all_of.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { abortedBy, asError, isAborted, messageOf } from "../../mod/base/errors.ts";
import type { Because } from "../../mod/base/journal.ts";
import { Lanes } from "../../mod/base/lanes.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { EventSink } from "../../mod/kube/events.ts";
import { runtimeLabels } from "../../mod/pod/config/labels.ts";
import type { ObservedPod } from "../../mod/pod/observed.ts";
import {
  defaultGcPolicy,
  extraDeadContainers,
  type GcContainer,
  type GcPolicy,
  type GcSandbox,
  planContainerGC,
} from "./plan.ts";

/** What the collector needs of the log files; managers/logs has it. */
export interface GcLogs {
  removeContainerLogs(status: ContainerStatus): Promise<void>;
  removeLogDirs(mayGo: (podUid: string) => boolean, signal: AbortSignal): Promise<void>;
  sweepLinks(signal: AbortSignal): Promise<void>;
}

/** What the collector asks about pods; the pod workers know. */
export interface GcPods {
  /** True once every source of pods has been heard. */
  sourcesReady(): boolean;
  /** True for a pod that was evicted, or deleted and has ended, or that nobody knows (sources being ready). */
  contentMayGo(podUid: string): boolean;
  /** True for a pod that has ended, whether or not it was deleted; asked only by `collect` with `unused`. */
  runtimeMayGo(podUid: string): boolean;
}

export interface ContainerGCOptions {
  readonly runtime: Pick<
    RuntimeService,
    | "listContainers"
    | "listPodSandboxes"
    | "containerStatus"
    | "stopContainer"
    | "removeContainer"
    | "stopPodSandbox"
    | "removePodSandbox"
  >;
  readonly logs: GcLogs;
  readonly pods: GcPods;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: EventSink;
  readonly policy?: GcPolicy;
}

export interface ContainerGC {
  /**
   * One collection: containers, sandboxes, log directories, dead links. What cannot be removed is logged and left for
   * the next one; rejects, after everything was tried, when the runtime could not list what it has, with the node event
   * ContainerGCFailed. With `unused` also all that is left of pods that have ended (disk pressure).
   */
  collect(signal: AbortSignal, options?: { unused?: boolean }): Promise<void>;
  /** Removes a pod's dead containers beyond the policy's limit; of one name, or with `all` every one. Never rejects, except with Aborted. */
  trim(observed: ObservedPod, options: { containerId?: string; all?: boolean; signal: AbortSignal }): Promise<void>;
  /** Removes a container and, unless they are to be kept, its logs first. A container that is gone is no error. */
  removeContainer(
    id: string,
    options: { because: Because; keepLogs?: boolean; signal?: AbortSignal },
  ): Promise<void>;
}

/** How many pods' removals are under way at once, and how long one counts, milliseconds: one that hangs holds up no other. */
const lanes = 4;
const leaseMs = 10_000;
/** Seconds that a container in an unknown state gets to stop before it is removed. */
const unknownGrace = 2;

const states: Record<ContainerState, GcContainer["state"]> = {
  [ContainerState.CONTAINER_CREATED]: "created",
  [ContainerState.CONTAINER_RUNNING]: "running",
  [ContainerState.CONTAINER_EXITED]: "exited",
  [ContainerState.CONTAINER_UNKNOWN]: "unknown",
};

type Labelled = { readonly labels: Record<string, string> };

/** What the agent did not make (it has no pod UID) is not the agent's to remove. */
const uidOf = (item: Labelled) => item.labels[runtimeLabels.podUid] ?? "";

function because(item: Labelled, why: { reason: string; message: string }): Because {
  const container = item.labels[runtimeLabels.containerName];
  return {
    pod: {
      namespace: item.labels[runtimeLabels.podNamespace] ?? "",
      name: item.labels[runtimeLabels.podName] ?? "",
      uid: uidOf(item),
    },
    ...(container ? { container } : {}),
    ...why,
  };
}

function gcContainer(container: Container): GcContainer {
  return {
    id: container.id,
    name: container.labels[runtimeLabels.containerName] ?? container.metadata?.name ?? "",
    podUid: uidOf(container),
    sandboxId: container.podSandboxId,
    createdAt: Number(container.createdAt / 1_000_000n),
    attempt: container.metadata?.attempt ?? 0,
    // A state that is not known yet is not taken for a dead one.
    state: states[container.state] ?? "running",
  };
}

/** Waits for the end of somebody else's work, which tells its failure itself. Rejects with Aborted. */
async function ended(work: Promise<void>, signal: AbortSignal | undefined): Promise<void> {
  const { promise, resolve } = Promise.withResolvers<void>();
  const done = () => resolve();
  signal?.addEventListener("abort", done, { once: true });
  work.then(done, done);
  if (!signal?.aborted) await promise;
  signal?.removeEventListener("abort", done);
  if (signal?.aborted) throw abortedBy(signal);
}

/** Collects what the runtime and the log directories need no longer (runtime-contract.md section 21). */
export function createContainerGC(options: ContainerGCOptions): ContainerGC {
  const { runtime, logs, pods, clock, log, events, policy = defaultGcPolicy } = options;

  /** Removals under way, by the container's id. */
  const removing = new Map<string, Promise<void>>();

  /** One after the other for each container: the runtime refuses a removal while another one of it is under way. */
  async function removeContainer(id: string, how: Parameters<ContainerGC["removeContainer"]>[1]): Promise<void> {
    for (let other; (other = removing.get(id)) !== undefined;) await ended(other, how.signal);
    const own = removeNow(id, how);
    removing.set(id, own);
    try {
      await own;
    } finally {
      removing.delete(id);
    }
  }

  async function removeNow(
    id: string,
    { because, keepLogs, signal }: Parameters<ContainerGC["removeContainer"]>[1],
  ): Promise<void> {
    const call = signal ? { signal } : {};
    try {
      if (!keepLogs) {
        const { status } = await runtime.containerStatus(id, call);
        if (status) await logs.removeContainerLogs(status);
      }
      await runtime.removeContainer(id, { because, ...call });
    } catch (thrown) {
      if (!isNotFound(thrown)) throw thrown;
    }
  }

  /** Runs one removal; a failure is logged and told by `false`. */
  async function attempt(what: string, id: string, signal: AbortSignal, work: () => Promise<void>): Promise<boolean> {
    try {
      await work();
      return true;
    } catch (thrown) {
      if (isAborted(thrown) || signal.aborted) throw thrown;
      log.warn(`${what} cannot be removed yet`, { id, error: messageOf(thrown) });
      return false;
    }
  }

  async function collectRuntime(signal: AbortSignal, mayGo: (uid: string) => boolean): Promise<void> {
    const [containers, sandboxes] = await Promise.all([
      runtime.listContainers(undefined, { signal }),
      runtime.listPodSandboxes(undefined, { signal }),
    ]);
    const ours = new Map(containers.filter((c) => uidOf(c) !== "").map((c) => [c.id, c]));
    const boxes = new Map(sandboxes.filter((s) => uidOf(s) !== "").map((s) => [s.id, s]));
    const plan = planContainerGC({
      containers: containers.map(gcContainer).map((c) => ours.has(c.id) ? c : { ...c, state: "running" }),
      sandboxes: [...boxes.values()].map((s): GcSandbox => ({
        id: s.id,
        podUid: uidOf(s),
        attempt: s.metadata?.attempt ?? 0,
        createdAt: Number(s.createdAt / 1_000_000n),
        ready: s.state === PodSandboxState.SANDBOX_READY,
      })),
      mayGo,
      sourcesReady: pods.sourcesReady(),
      policy,
      now: clock.now(),
    });
    /** Sandboxes in which a container could not be removed; they are not empty. */
    const held = new Set<string>();
    /** By pod: what is done for it, one after another. */
    const steps = new Map<string, (() => Promise<void>)[]>();
    const after = (uid: string, step: () => Promise<void>) => steps.set(uid, [...steps.get(uid) ?? [], step]);
    for (const { item, reason, message } of plan.containers) {
      const listed = ours.get(item.id);
      if (!listed) continue;
      const why = because(listed, { reason, message });
      after(item.podUid, async () => {
        const done = await attempt("Container", item.id, signal, async () => {
          if (item.state === "unknown") {
            const stop = {
              ...why,
              reason: "UnknownState",
              message: "its state is unknown; stopped before it is removed",
            };
            await runtime.stopContainer(item.id, unknownGrace, { because: stop, signal });
          }
          await removeContainer(item.id, { because: why, signal });
        });
        if (!done) held.add(item.sandboxId);
      });
    }
    for (const { item, reason, message } of plan.sandboxes) {
      const listed = boxes.get(item.id);
      if (!listed) continue;
      const why = because(listed, { reason, message });
      after(item.podUid, async () => {
        if (held.has(item.id)) return;
        await attempt("Sandbox", item.id, signal, async () => {
          try {
            await runtime.stopPodSandbox(item.id, { because: why, signal });
            await runtime.removePodSandbox(item.id, { because: why, signal });
          } catch (thrown) {
            if (!isNotFound(thrown)) throw thrown;
          }
        });
      });
    }
    const running = new Lanes({ clock, lanes, leaseMs });
    await allOf([...steps.values()].map((ofPod) =>
      running.use(async () => {
        for (const step of ofPod) await step();
      }, signal)
    ));
  }

  return {
    removeContainer,

    async collect(signal, { unused = false } = {}) {
      const mayGo = (uid: string) => pods.contentMayGo(uid) || (unused && pods.runtimeMayGo(uid));
      let failed: Error | undefined;
      try {
        await collectRuntime(signal, mayGo);
      } catch (thrown) {
        if (isAborted(thrown) || signal.aborted) throw thrown;
        failed = asError(thrown);
      }
      if (pods.sourcesReady()) await logs.removeLogDirs((uid) => pods.contentMayGo(uid), signal);
      await logs.sweepLinks(signal);
      if (!failed) return;
      events.node({ type: "Warning", reason: "ContainerGCFailed", message: failed.message });
      throw failed;
    },

    async trim(observed, { signal, containerId, all = false }) {
      const extra = extraDeadContainers(observed, {
        keep: policy.maxPerContainer < 0 ? Infinity : policy.maxPerContainer,
        all,
        ...(containerId === undefined ? {} : { containerId }),
      });
      const { namespace, name, uid } = observed;
      for (const container of extra) {
        const why: Because = {
          pod: { namespace, name, uid },
          container: container.name,
          reason: all ? "PodGone" : "DeadContainerLimit",
          message: all
            ? "its pod is gone or was evicted"
            : `only the ${policy.maxPerContainer} newest dead instances of container ${container.name} are kept`,
        };
        await attempt("Container", container.id, signal, () => removeContainer(container.id, { because: why, signal }));
      }
    },
  };
}
