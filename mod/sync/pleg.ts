import { isNotFound, type RuntimeService } from "../../cri/api.ts";
import { type Container, type ContainerStatus, type PodSandbox, PodSandboxState } from "../../cri/gen/runtime_pb.ts";
import { isUnimplemented } from "../../cri/api.ts";
import type { Clock } from "../base/clock.ts";
import { isAborted, messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import type { ObservedContainer, ObservedPod, ObservedSandbox } from "../pod/observed.ts";
import {
  containerState,
  label,
  newestFirst,
  observeContainer,
  observeListedSandbox,
  observeSandbox,
  ownerOf,
} from "./observe.ts";

/** Something about a pod's sandboxes or containers is not as it was. */
export interface PlegEvent {
  readonly uid: string;
  /** Undefined once the runtime knows nothing of the pod any more. */
  readonly observed: ObservedPod | undefined;
  /** True when a container of the pod went from running to not running. */
  readonly died: boolean;
}

/** When a look at the runtime began: the time for readers, the number to tell which of two pictures is newer. */
interface Began {
  readonly at: number;
  readonly seq: number;
}

interface Listed {
  owner: { uid: string; name: string; namespace: string };
  sandboxes: PodSandbox[];
  containers: Container[];
}

/** Told of looks at the runtime, for the metrics. */
export interface PlegMeter {
  /** A relist that the runtime answered, with the time at which it began. */
  relist(beganAt: number): void;
  /** A look at one pod. */
  relistOfOne(seconds: number): void;
  /** A stream of the runtime's events has begun to tell, or broke. */
  eventStream(broke: boolean): void;
  /** An event has come, so many seconds after it happened. */
  runtimeEvent(seconds: number): void;
}

export interface PlegOptions {
  runtime: Pick<
    RuntimeService,
    "listPodSandboxes" | "listContainers" | "podSandboxStatus" | "containerStatus" | "containerEvents"
  >;
  clock: Clock;
  log: Logger;
  /** Joins an exited container's own message with its termination message (runtime-contract.md section 3). */
  terminationMessage: (podUid: string, status: ContainerStatus) => Promise<string>;
  onEvent: (event: PlegEvent) => void;
  /** Told when the runtime answers again after it did not, and when it stops answering. */
  onRuntime?: (up: boolean, error?: string) => void;
  meter?: PlegMeter | undefined;
  /** Milliseconds between relists (runtime-contract.md section 11: 1 s). */
  periodMs?: number;
}

/**
 * The pod life-cycle event generator. A relist each second finds what changed; the runtime's own events, where it has
 * them, only hasten the re-read of one pod. Holds the newest picture of each pod; pictures are replaced whole.
 */
export class Pleg {
  readonly #options: PlegOptions;
  readonly #pods = new Map<string, ObservedPod>();
  /** Set while the runtime fails, so that its return is told once. */
  #down: boolean | undefined;
  #lastRelist = 0;
  /** The looks by which the pictures were taken, by UID; a pod that is gone keeps its last for one relist. */
  readonly #taken = new Map<string, number>();
  #seq = 0;
  /** Pods that are listed, but of which there has never been a picture. */
  readonly #unread = new Map<string, ObservedPod>();
  /** Pods whose picture is being completed by a relist. */
  readonly #reading = new Set<string>();
  /** Pods whose running containers have changed without a change of state, with the look after which that was so. */
  readonly #anew = new Map<string, number>();

  constructor(options: PlegOptions) {
    this.#options = options;
  }

  /** When the last complete relist began, milliseconds since the epoch; 0 before the first. */
  get lastRelist(): number {
    return this.#lastRelist;
  }

  /** The newest picture of a pod. */
  get(uid: string): ObservedPod | undefined {
    return this.#pods.get(uid);
  }

  /** Every pod that the runtime knows of; one whose state could never be read is there by its names alone. */
  *all(): Iterable<ObservedPod> {
    yield* this.#pods.values();
    yield* this.#unread.values();
  }

  /** Relists each period until the signal aborts; failures are told through onRuntime and do not end it. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, periodMs = 1000 } = this.#options;
    while (!signal.aborted) {
      await this.relist(signal);
      await clock.sleep(periodMs, signal);
    }
  }

  /** Follows the runtime's events until the signal aborts; ends at once on a runtime that has none. */
  async follow(signal: AbortSignal): Promise<void> {
    const { runtime, clock, log, meter } = this.#options;
    while (!signal.aborted) {
      let open = false;
      try {
        for await (const event of runtime.containerEvents({ signal })) {
          if (!open) meter?.eventStream(false);
          open = true;
          meter?.runtimeEvent(Math.max(0, clock.now() - Number(event.createdAt) / 1e6) / 1000);
          const uid = event.podSandboxStatus?.metadata?.uid ?? "";
          if (uid !== "") await this.refresh(uid, signal);
        }
      } catch (thrown) {
        if (isAborted(thrown) && signal.aborted) return;
        meter?.eventStream(true);
        if (isUnimplemented(thrown)) {
          log.detail(2, "the runtime has no container events; relisting alone finds changes");
          return;
        }
        log.detail(2, "the stream of container events ended", { error: messageOf(thrown) });
      }
      await clock.sleep(5000, signal);
    }
  }

  /**
   * One relist; false when the runtime did not answer. Rejects only when aborted.
   * @param complete wait until the pictures of all changed pods are there, as the start of the agent needs it; false,
   * too, when one of them could not be taken
   */
  async relist(signal: AbortSignal, complete = false): Promise<boolean> {
    const { runtime } = this.#options;
    const began = this.#begin();
    let pods: Map<string, Listed>;
    try {
      const [sandboxes, containers] = await Promise.all([
        runtime.listPodSandboxes(undefined, { signal }),
        runtime.listContainers(undefined, { signal }),
      ]);
      pods = group(sandboxes, containers);
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      this.#tell(false, messageOf(thrown));
      return false;
    }
    for (const uid of this.#unread.keys()) if (!pods.has(uid)) this.#unread.delete(uid);
    const reads: Promise<boolean>[] = [];
    for (const uid of new Set([...pods.keys(), ...this.#pods.keys()])) {
      // A picture taken by a look that began after this relist is newer than the list.
      if ((this.#taken.get(uid) ?? 0) > began.seq) continue;
      const known = this.#pods.get(uid);
      if (known && !changed(known, pods.get(uid))) continue;
      if (!this.#reading.has(uid)) reads.push(this.#read(uid, pods.get(uid), began, signal));
    }
    this.#lastRelist = began.at;
    this.#options.meter?.relist(began.at);
    for (const [uid, seq] of this.#taken) if (!this.#pods.has(uid) && seq < began.seq) this.#taken.delete(uid);
    this.#tell(true);
    return !complete || (await Promise.all(reads)).every((taken) => taken);
  }

  /**
   * Completes one pod of a relist by itself: a status call that hangs holds up no other pod, nor the next relist.
   * False when the runtime did not tell.
   */
  async #read(uid: string, listed: Listed | undefined, began: Began, signal: AbortSignal): Promise<boolean> {
    this.#reading.add(uid);
    try {
      await this.#take(uid, listed, began, signal);
      return true;
    } catch (thrown) {
      if (listed && !this.#pods.has(uid)) {
        this.#unread.set(uid, { ...listed.owner, sandboxes: [], containers: [], readAt: began.at });
      }
      // The next relist sees the same difference and tries again.
      if (!signal.aborted) {
        this.#options.log.warn("a pod's state could not be read from the runtime; trying again", {
          podUid: uid,
          error: messageOf(thrown),
        });
      }
      return false;
    } finally {
      this.#reading.delete(uid);
    }
  }

  /**
   * Reads one pod anew and returns its picture. Rejects with the runtime's error.
   * A caller that has just changed the pod sees at least its own changes.
   */
  async refresh(uid: string, signal?: AbortSignal): Promise<ObservedPod | undefined> {
    const { runtime, clock, meter } = this.#options;
    const began = this.#begin();
    const labelSelector = { [label.podUid]: uid };
    const options = signal ? { signal } : {};
    try {
      const [sandboxes, containers] = await Promise.all([
        runtime.listPodSandboxes({ labelSelector }, options),
        runtime.listContainers({ labelSelector }, options),
      ]);
      return await this.#take(uid, group(sandboxes, containers).get(uid), began, signal);
    } finally {
      meter?.relistOfOne(Math.max(0, clock.now() - began.at) / 1000);
    }
  }

  /** What the runtime tells of the pod's running containers has changed: the next look at the pod asks for it again. */
  readAnew(uid: string): void {
    this.#anew.set(uid, this.#seq);
  }

  #begin(): Began {
    return { at: this.#options.clock.now(), seq: ++this.#seq };
  }

  #tell(up: boolean, error?: string): void {
    if (this.#down === !up) return;
    this.#down = !up;
    this.#options.onRuntime?.(up, error);
  }

  /** Completes a listed pod with the statuses that may have changed, and makes it the pod's picture. */
  async #take(
    uid: string,
    listed: Listed | undefined,
    began: Began,
    signal?: AbortSignal,
  ): Promise<ObservedPod | undefined> {
    const before = this.#pods.get(uid);
    const anew = began.seq > (this.#anew.get(uid) ?? Infinity);
    let observed: ObservedPod | undefined;
    if (listed) {
      const [sandboxes, containers] = await Promise.all([
        Promise.all(listed.sandboxes.map((s) => this.#sandbox(s, before, signal))),
        Promise.all(listed.containers.map((c) => this.#container(uid, c, { before, anew }, signal))),
      ]);
      observed = {
        ...listed.owner,
        sandboxes: sandboxes.filter((s) => s !== undefined).sort(newestFirst),
        containers: containers.filter((c) => c !== undefined).sort(newestFirst),
        readAt: began.at,
      };
    }
    // While the statuses were read, somebody else may have taken a newer picture.
    if ((this.#taken.get(uid) ?? 0) > began.seq) return this.#pods.get(uid);
    this.#taken.set(uid, began.seq);
    this.#unread.delete(uid);
    if (began.seq > (this.#anew.get(uid) ?? Infinity)) this.#anew.delete(uid);
    const last = this.#pods.get(uid);
    if (observed) this.#pods.set(uid, observed);
    else this.#pods.delete(uid);
    if (last === undefined && observed === undefined) return undefined;
    if (!observed || !last || !same(last, observed)) {
      this.#options.onEvent({ uid, observed, died: diedBetween(last, observed) });
    }
    return observed;
  }

  async #sandbox(
    listed: PodSandbox,
    before: ObservedPod | undefined,
    signal?: AbortSignal,
  ): Promise<ObservedSandbox | undefined> {
    const ready = listed.state === PodSandboxState.SANDBOX_READY;
    const known = before?.sandboxes.find((s) => s.id === listed.id);
    // A sandbox's address is given before it becomes ready and does not change while it is.
    if (known && known.ready === ready && (known.hostNetwork || known.ips.length > 0 || !ready)) return known;
    try {
      const { status } = await this.#options.runtime.podSandboxStatus(listed.id, signal ? { signal } : {});
      return status ? observeSandbox(status) : observeListedSandbox(listed);
    } catch (thrown) {
      if (isNotFound(thrown)) return undefined;
      throw thrown;
    }
  }

  async #container(
    uid: string,
    listed: Container,
    { before, anew }: { before: ObservedPod | undefined; anew: boolean },
    signal?: AbortSignal,
  ): Promise<ObservedContainer | undefined> {
    const state = containerState(listed.state);
    const known = before?.containers.find((c) => c.id === listed.id);
    const asBefore = known?.state === state && state !== "unknown";
    if (asBefore && !(anew && state === "running")) return known;
    try {
      const { status } = await this.#options.runtime.containerStatus(listed.id, signal ? { signal } : {});
      if (!status) return undefined;
      const message = containerState(status.state) === "exited"
        ? await this.#options.terminationMessage(uid, status)
        : status.message;
      const observed = observeContainer(status, listed.podSandboxId, message);
      // The same picture says that nothing has changed, and wakes nobody.
      const same = asBefore && observed.state === state &&
        JSON.stringify(known.resources) === JSON.stringify(observed.resources);
      return same ? known : observed;
    } catch (thrown) {
      if (isNotFound(thrown)) return undefined;
      throw thrown;
    }
  }
}

function group(sandboxes: PodSandbox[], containers: Container[]): Map<string, Listed> {
  const pods = new Map<string, Listed>();
  const of = (listed: { labels: Record<string, string> }): Listed | undefined => {
    const owner = ownerOf(listed);
    if (!owner) return undefined;
    let pod = pods.get(owner.uid);
    if (!pod) pods.set(owner.uid, pod = { owner, sandboxes: [], containers: [] });
    return pod;
  };
  for (const sandbox of sandboxes) of(sandbox)?.sandboxes.push(sandbox);
  for (const container of containers) of(container)?.containers.push(container);
  return pods;
}

/** True when a list shows a pod otherwise than its picture. */
function changed(known: ObservedPod, listed: Listed | undefined): boolean {
  if (!listed) return true;
  if (known.sandboxes.length !== listed.sandboxes.length || known.containers.length !== listed.containers.length) {
    return true;
  }
  for (const s of listed.sandboxes) {
    const before = known.sandboxes.find((k) => k.id === s.id);
    if (!before || before.ready !== (s.state === PodSandboxState.SANDBOX_READY)) return true;
  }
  for (const c of listed.containers) {
    const before = known.containers.find((k) => k.id === c.id);
    if (!before || before.state !== containerState(c.state)) return true;
  }
  return false;
}

function same(a: ObservedPod, b: ObservedPod): boolean {
  return a.sandboxes.length === b.sandboxes.length && a.containers.length === b.containers.length &&
    a.sandboxes.every((s, i) => s === b.sandboxes[i]) && a.containers.every((c, i) => c === b.containers[i]);
}

function diedBetween(before: ObservedPod | undefined, after: ObservedPod | undefined): boolean {
  return before?.containers.some((b) =>
    b.state === "running" && after?.containers.find((a) => a.id === b.id)?.state !== "running"
  ) ?? false;
}
