import type { Clock } from "../../mod/base/clock.ts";
import { messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Scope } from "../../mod/base/scope.ts";
import type { EventSink } from "../../mod/kube/events.ts";
import { podFullName } from "../../mod/kube/pod.ts";
import type { BoundPod, PodCondition, ResourceRequirements } from "../../mod/kube/types.ts";
import { rootPaths } from "../../mod/pod/config/paths.ts";
import type { ObservedPod } from "../../mod/pod/observed.ts";
import {
  type PodResourceInfo,
  resizableContainers,
  type ResizeGates,
  resourcesOf,
  sameResources,
  withResources,
} from "../../mod/pod/resize/allocation.ts";
import { compareResizes, countedPod, infeasible, type ResizePolicy } from "../../mod/pod/resize/judge.ts";
import { type ResizeEvent, resizeMessage } from "../../mod/pod/resize/messages.ts";
import { resizeOperations } from "../../mod/pod/resize/operations.ts";
import { effectiveResources, resizeAsked, resizeInProgress, type ResizeView } from "../../mod/pod/resize/needs.ts";
import { podRequests } from "../../mod/pod/resources.ts";
import { ResizeConditions } from "./conditions.ts";
import { StateFile } from "./state_file.ts";
import type { ActuatedResources, PodAllocations, PodResizes, ResizeLook, ResizeTrigger } from "./types.ts";

export interface AllocationOptions {
  host: Pick<Host, "readText" | "stat" | "write">;
  rootDir: string;
  clock: Clock;
  log: Logger;
  events: EventSink;
  scope: Scope;
  policy: ResizePolicy;
  /** Told when a pod was given other resources, and when it has them. */
  onChange?: () => void;
  /** Told of what is counted. */
  meter?: {
    asked(resource: "cpu" | "memory", requirement: "requests" | "limits", operation: string): void;
    infeasible(detail: string): void;
    deferredAccepted(trigger: ResizeTrigger): void;
  } | undefined;
}

/**
 * What each pod was given of the node's CPU and memory, and what of that is carried out (features.md C42 to C44). A
 * resize is wanted, then given when the node has room, then carried out; each step is kept on disk, in files that an
 * agent before or after this one reads too.
 */
export class AllocationManager implements PodAllocations, PodResizes, ActuatedResources {
  readonly gates: ResizeGates;
  readonly #o: AllocationOptions;
  readonly #allocated: StateFile;
  readonly #actuated: StateFile;
  readonly #conditions: ResizeConditions;
  /** Pods whose resize waits. */
  #pending = new Set<string>();

  constructor(options: AllocationOptions) {
    this.#o = options;
    this.gates = options.policy.gates;
    const { host, log, scope, rootDir } = options;
    this.#allocated = new StateFile({ host, log, scope, path: rootPaths.allocatedPodsState(rootDir) });
    this.#actuated = new StateFile({ host, log, scope, path: rootPaths.actuatedPodsState(rootDir) });
    this.#conditions = new ResizeConditions(options.clock);
  }

  /** Takes back what was kept. @throws KubeletError BadConfig when a file cannot be used */
  async load(): Promise<void> {
    await Promise.all([this.#allocated.load(), this.#actuated.load()]);
  }

  allocated(pod: BoundPod): BoundPod {
    const given = this.#allocated.get(pod.metadata.uid);
    return given ? withResources(pod, given, this.gates) : pod;
  }

  counted(pod: BoundPod): BoundPod {
    return countedPod(this.allocated(pod), this.#actuated.get(pod.metadata.uid), this.gates);
  }

  admitted(allocated: BoundPod): void {
    const { uid } = allocated.metadata;
    const given = resourcesOf(allocated, this.gates);
    void this.#allocated.set(uid, given);
    // What runs already, of which nothing was recorded, is taken to have what it was given; what starts is recorded anew.
    const known = this.#actuated.get(uid);
    const missing = resizableContainers(allocated, this.gates).filter((c) => !known?.containers.has(c.name));
    if (missing.length === 0) return;
    const seeds = missing.map((c) => [c.name, effectiveResources(c, allocated, this.gates)] as const);
    void this.#actuated.set(uid, { ...given, ...known, containers: new Map([...known?.containers ?? [], ...seeds]) });
  }

  added(pod: BoundPod): void {
    const { uid } = pod.metadata;
    this.#conditions.adopt(uid, pod.status?.conditions ?? []);
    if (this.allocated(pod) !== pod) this.#pending.add(uid);
    else this.#conditions.clearPending(uid);
  }

  updated(before: BoundPod, pod: BoundPod): void {
    const { uid } = pod.metadata;
    if (!resizeAsked(before, pod)) return;
    this.#count(before, pod);
    if (this.allocated(pod) !== pod) this.#pending.add(uid);
    else {
      this.#pending.delete(uid);
      this.#conditions.clearPending(uid);
    }
  }

  #count(before: BoundPod, pod: BoundPod): void {
    try {
      for (const c of resizeOperations(before, pod)) this.#o.meter?.asked(c.resource, c.requirement, c.operation);
    } catch (thrown) {
      this.#o.log.error("a resize cannot be read", { pod: podFullName(pod), error: messageOf(thrown) });
    }
  }

  get waiting(): boolean {
    return this.#pending.size > 0;
  }

  retry(trigger: ResizeTrigger, look: ResizeLook): BoundPod[] {
    const changed: BoundPod[] = [];
    for (const pod of this.#inOrder(look)) {
      const { uid } = pod.metadata;
      const before = this.#conditions.of(uid);
      const waited = this.#conditions.pending(uid)?.reason === "Deferred";
      let given = false;
      try {
        given = this.#judge(pod, look);
      } catch (thrown) {
        this.#o.log.error("a resize cannot be judged", { pod: podFullName(pod), error: messageOf(thrown) });
        continue;
      }
      // What waits for room is looked at again; what can never be is not, until it is changed.
      if (this.#conditions.pending(uid)?.reason !== "Deferred") this.#pending.delete(uid);
      if (given && waited) this.#o.meter?.deferredAccepted(trigger);
      if (given || JSON.stringify(before) !== JSON.stringify(this.#conditions.of(uid))) changed.push(pod);
    }
    return changed;
  }

  #inOrder(look: ResizeLook): BoundPod[] {
    const pods: BoundPod[] = [];
    for (const uid of this.#pending) {
      const pod = look.get(uid);
      if (pod && isReadable(pod)) pods.push(pod);
      else this.#pending.delete(uid);
    }
    const entry = (pod: BoundPod) => {
      const since = this.#conditions.pending(pod.metadata.uid)?.lastTransitionTime;
      return { pod, allocated: this.allocated(pod), since: since === undefined ? undefined : Date.parse(since) };
    };
    return pods.map(entry).sort(compareResizes).map(({ pod }) => pod);
  }

  /** Gives the pod what it wants if that can be; true when it was given something. */
  #judge(pod: BoundPod, look: ResizeLook): boolean {
    const { uid, generation = 0 } = pod.metadata;
    const allocated = this.allocated(pod);
    if (allocated === pod) {
      this.#conditions.clearPending(uid);
      return false;
    }
    const never = infeasible(pod, allocated, this.#o.policy);
    if (never) this.#o.meter?.infeasible(never.detail);
    const answer = never ? { admit: false as const, reason: "Infeasible", message: never.message } : look.admit(pod);
    if (!answer.admit) {
      const reason = never ? "Infeasible" : "Deferred";
      if (this.#conditions.setPending(uid, { reason, message: answer.message, generation })) {
        this.#tell(`Resize${reason}`, pod, generation, answer.message);
      }
      return false;
    }
    this.admitted(pod);
    this.#conditions.clearPending(uid);
    // What went wrong with an earlier resize is over, and this one has a generation of its own.
    this.#conditions.clearProgress(uid);
    this.#conditions.setProgress(uid, { reason: "", message: "", generation });
    this.#tell("ResizeStarted", pod, generation);
    this.#o.onChange?.();
    return true;
  }

  #tell(reason: ResizeEvent, pod: BoundPod, generation: number, error = ""): void {
    const type = reason === "ResizeStarted" || reason === "ResizeCompleted" ? "Normal" : "Warning";
    this.#o.events.pod({ pod, type, reason, message: resizeMessage(reason, pod, generation, error) });
    this.#o.log.info("pod resize", { pod: podFullName(pod), podUid: pod.metadata.uid, reason, generation, error });
  }

  forget(uid: string): void {
    this.#pending.delete(uid);
    this.#conditions.forget(uid);
    this.#allocated.delete(uid);
    this.#actuated.delete(uid);
  }

  /** Forgets what was kept of pods that are not here any more. */
  forgetAllBut(known: (uid: string) => boolean): void {
    for (const uid of new Set([...this.#allocated.uids(), ...this.#actuated.uids()])) {
      if (!known(uid)) this.forget(uid);
    }
  }

  view(uid: string): ResizeView {
    return { gates: this.gates, actuated: this.#actuated.get(uid) };
  }

  conditions(uid: string): readonly PodCondition[] {
    return this.#conditions.of(uid);
  }

  counts(): ReturnType<ResizeConditions["counts"]> {
    return this.#conditions.counts();
  }

  observe(allocated: BoundPod, observed: ObservedPod): void {
    const { uid, generation = 0 } = allocated.metadata;
    // The pass that tells this may have begun before the pod was given what it has now.
    if (resizeInProgress(this.allocated(allocated), observed, this.view(uid))) {
      this.#conditions.setProgress(uid, { reason: "", message: "", generation });
      return;
    }
    const over = this.#conditions.clearProgress(uid);
    if (!over) return;
    this.#tell("ResizeCompleted", allocated, over.observedGeneration ?? generation);
    this.#o.onChange?.();
  }

  failed(allocated: BoundPod, message: string): void {
    const { uid, generation = 0 } = allocated.metadata;
    if (!this.#conditions.setProgress(uid, { reason: "Error", message, generation })) return;
    this.#tell("ResizeError", allocated, this.#conditions.progress(uid)?.observedGeneration ?? generation, message);
  }

  get(uid: string): PodResourceInfo | undefined {
    return this.#actuated.get(uid);
  }

  async setContainer(pod: BoundPod, name: string, resources: ResourceRequirements): Promise<void> {
    const { uid } = pod.metadata;
    const known = this.#actuated.get(uid);
    const before = known?.containers.get(name);
    if (before && sameResources(before, resources)) return await this.#actuated.kept();
    await this.#actuated.set(uid, { ...known, containers: new Map([...known?.containers ?? [], [name, resources]]) });
  }

  async setPod(pod: BoundPod, resources: ResourceRequirements): Promise<void> {
    const { uid } = pod.metadata;
    const known = this.#actuated.get(uid);
    if (known?.pod && sameResources(known.pod, resources)) return await this.#actuated.kept();
    await this.#actuated.set(uid, { containers: known?.containers ?? new Map(), pod: resources });
  }

  async allocationKept(): Promise<void> {
    await this.#allocated.kept();
  }
}

/** Whether the pod's requests can be read at all: one that cannot must not hold up the others. */
function isReadable(pod: BoundPod): boolean {
  try {
    podRequests(pod);
    return true;
  } catch {
    // It is told where it was read first, at its source.
    return false;
  }
}
