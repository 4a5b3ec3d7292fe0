import { isUnimplemented, type ResourcesInit, RuntimeError, type RuntimeService } from "../../cri/api.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import { podContainers, podRef } from "../../mod/kube/pod.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { containerResources, type ResourcePolicy, sandboxResources } from "../../mod/pod/config/linux_resources.ts";
import {
  type GroupState,
  loweredLimits,
  lowersPodLimit,
  memoryObstacle,
  resizeSteps,
} from "../../mod/pod/resize/group_plan.ts";
import {
  type ContainerUpdate,
  effectiveResources,
  type ResizeAction,
  type ResizedResource,
  stepFigures,
  withFigures,
} from "../../mod/pod/resize/needs.ts";
import { type PodCgroupLimits, podOverhead } from "../../mod/pod/resources.ts";
import type { ActuatedResources } from "../allocation/types.ts";
import type { PodGroupLimits } from "../cgroups/types.ts";

export interface ResizerOptions {
  runtime: Pick<RuntimeService, "updateContainerResources" | "updatePodSandboxResources">;
  groups: PodGroupLimits;
  actuated: ActuatedResources;
  policy: ResourcePolicy;
  clock: Clock;
  log: Logger;
  /** Told how long a resize took, milliseconds, and whether it was carried out. */
  onDone?: (done: { readonly success: boolean; readonly ms: number }) => void;
}

const reason = "Resize";

/** Gives a pod that runs the resources that it was given, in place (features.md section 13). */
export class Resizer {
  readonly #o: ResizerOptions;

  constructor(options: ResizerOptions) {
    this.#o = options;
  }

  /**
   * Carries a resize out, as far as it comes: what was done is recorded, and the next try goes on from there.
   * @param sandboxId the pod's; undefined while it has none
   * @returns why it could not be carried out, or undefined
   */
  async apply(pod: BoundPod, action: ResizeAction, sandboxId: string | undefined, signal: AbortSignal): Promise<
    string | undefined
  > {
    const { clock, actuated, onDone } = this.#o;
    const began = clock.now();
    let success = false;
    try {
      // What was given must not be forgotten by an agent that comes after this one once it is carried out.
      await actuated.allocationKept();
      const problem = await this.#carryOut(pod, action, sandboxId, signal);
      success = problem === undefined;
      return problem;
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      return messageOf(thrown);
    } finally {
      onDone?.({ success, ms: clock.now() - began });
    }
  }

  async #carryOut(
    pod: BoundPod,
    action: ResizeAction,
    sandboxId: string | undefined,
    signal: AbortSignal,
  ): Promise<string | undefined> {
    const { groups } = this.#o;
    const wanted = groups.wantedLimits(pod);
    const now = await groups.readLimits(pod);
    const obstacle = await this.#obstacle(pod, action, now, wanted);
    if (obstacle !== undefined) return obstacle;
    let reached = now;
    for (const step of resizeSteps(action, now, wanted)) {
      signal.throwIfAborted();
      if (step.do === "containers") {
        for (const update of action[step.resource]) await this.#update(pod, update, step.resource, signal);
        continue;
      }
      const limits = limitsOf(step, wanted);
      await this.#limit(pod, sandboxId, { from: reached, limits }, signal);
      reached = { ...reached, ...limits };
    }
    if (action.podLevel && pod.spec.resources) await this.#o.actuated.setPod(pod, pod.spec.resources);
    return undefined;
  }

  async #obstacle(
    pod: BoundPod,
    action: ResizeAction,
    now: GroupState,
    wanted: PodCgroupLimits,
  ): Promise<string | undefined> {
    const lowered = loweredLimits(action);
    if (lowered.size === 0 && !lowersPodLimit(now, wanted)) return undefined;
    const { groups } = this.#o;
    const { uid } = pod.metadata;
    const containers = new Map<string, bigint | undefined>();
    for (const { id, name } of action.memory) {
      if (lowered.has(name)) containers.set(name, await groups.memoryInUse(uid, id));
    }
    return memoryObstacle(action, now, wanted, { pod: await groups.memoryInUse(uid), containers });
  }

  async #update(pod: BoundPod, update: ContainerUpdate, resource: ResizedResource, signal: AbortSignal): Promise<void> {
    const { runtime, actuated, policy } = this.#o;
    const spec = podContainers(pod).find((c) => c.spec.name === update.name)?.spec;
    if (!spec) return;
    // The other resource stays as it is, until its turn: memory comes first.
    const figures = resource === "memory" ? stepFigures(update, "memory") : update.to;
    const resources = withFigures(effectiveResources(spec, pod, actuated.gates), figures);
    const message = `container ${update.name} gets other ${resource === "cpu" ? "CPU" : "memory"} resources`;
    await runtime.updateContainerResources(
      update.id,
      containerResources({ pod, container: { ...spec, resources }, policy }),
      { because: { pod: podRef(pod), container: update.name, reason, message }, signal },
    );
    await actuated.setContainer(pod, update.name, resources);
  }

  /** The runtime hears of it first and may refuse; when the group cannot be set it is told to take it back. */
  async #limit(
    pod: BoundPod,
    sandboxId: string | undefined,
    { from, limits }: { from: GroupState; limits: Partial<PodCgroupLimits> },
    signal: AbortSignal,
  ): Promise<void> {
    if (sandboxId !== undefined) await this.#tellRuntime(pod, sandboxId, { ...from, ...limits }, signal);
    try {
      await this.#o.groups.setLimits(pod, limits);
    } catch (thrown) {
      if (sandboxId !== undefined && !signal.aborted) {
        try {
          await this.#tellRuntime(pod, sandboxId, from, signal);
        } catch (again) {
          this.#o.log.warn("the runtime does not take back the resources of a sandbox", { error: messageOf(again) });
        }
      }
      throw thrown;
    }
  }

  async #tellRuntime(pod: BoundPod, id: string, state: GroupState, signal: AbortSignal): Promise<void> {
    const { runtime, policy } = this.#o;
    const { overhead } = sandboxResources({ pod, policy });
    const because = { pod: podRef(pod), reason, message: "the pod gets other resources" };
    try {
      await runtime.updatePodSandboxResources({ id, overhead, resources: withoutOverhead(pod, state) }, {
        because,
        signal,
      });
    } catch (thrown) {
      // Runtimes that have no use for it, or say so in words only, are no obstacle.
      const unknown = thrown instanceof RuntimeError && thrown.details.includes("not implemented");
      if (!isUnimplemented(thrown) && !unknown) throw thrown;
    }
  }
}

function limitsOf(
  step: { readonly do: "shares" } | { readonly do: "limit"; readonly resource: ResizedResource },
  wanted: PodCgroupLimits,
): Partial<PodCgroupLimits> {
  if (step.do === "shares") return { cpuShares: wanted.cpuShares };
  const { memoryLimit, cpuQuota, cpuPeriod } = wanted;
  if (step.resource === "memory") return memoryLimit === undefined ? {} : { memoryLimit };
  return { ...(cpuQuota === undefined ? {} : { cpuQuota }), ...(cpuPeriod === undefined ? {} : { cpuPeriod }) };
}

/** The sandbox's resources: those of the pod's group less what the runtime's overhead takes of it. */
function withoutOverhead(pod: BoundPod, state: GroupState): ResourcesInit {
  const overhead = podOverhead(pod) ?? {};
  const cpu = overhead.cpu ?? 0n;
  const { memoryLimit, cpuQuota, cpuPeriod, cpuShares } = state;
  const quota = BigInt(cpuQuota);
  return {
    cpuShares: BigInt(cpuShares) - cpu * 1024n / 1000n,
    cpuQuota: quota > 0n ? quota - cpu * BigInt(cpuPeriod) / 1000n : quota,
    cpuPeriod: BigInt(cpuPeriod),
    ...(memoryLimit === undefined ? {} : { memoryLimitInBytes: memoryLimit - (overhead.memory ?? 0n) }),
  };
}
