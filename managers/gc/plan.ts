import type { ObservedPod } from "../../mod/pod/observed.ts";

/** Limits of dead containers; the kubelet's flags of the same meaning. */
export interface GcPolicy {
  /** Milliseconds since its creation before a dead container may go (minimum-container-ttl-duration). */
  readonly minAgeMs: number;
  /** Dead instances kept for each container of a pod; negative means no limit (maximum-dead-containers-per-container). */
  readonly maxPerContainer: number;
  /** Dead containers kept on the node; negative means no limit (maximum-dead-containers). */
  readonly maxContainers: number;
}

/** Defaults of the flags (runtime-contract.md section 21). */
export const defaultGcPolicy: GcPolicy = { minAgeMs: 0, maxPerContainer: 1, maxContainers: -1 };

/** A pod's container or sandbox as the runtime lists it. Times are milliseconds since the epoch. */
export interface GcContainer {
  readonly id: string;
  readonly name: string;
  readonly podUid: string;
  readonly sandboxId: string;
  readonly createdAt: number;
  /** The CRI attempt, which tells two apart that were created in one millisecond. */
  readonly attempt?: number;
  readonly state: "created" | "running" | "exited" | "unknown";
}

export interface GcSandbox {
  readonly id: string;
  readonly podUid: string;
  readonly createdAt: number;
  readonly attempt?: number;
  readonly ready: boolean;
}

/** One thing to remove and why, in words that the journal keeps. */
export interface Removal<T> {
  readonly item: T;
  readonly reason: "PodGone" | "DeadContainerLimit" | "DeadContainersOnNode" | "OldSandbox";
  readonly message: string;
}

export interface GcPlan {
  /** In the order to remove them: oldest first. */
  readonly containers: readonly Removal<GcContainer>[];
  /** Sandboxes that are without containers once those are gone. */
  readonly sandboxes: readonly Removal<GcSandbox>[];
}

export interface GcInput {
  readonly containers: readonly GcContainer[];
  readonly sandboxes: readonly GcSandbox[];
  /** True for a pod that was evicted, or deleted and has ended, or that nobody knows: all of it may go. */
  readonly mayGo: (podUid: string) => boolean;
  /** False while a source of pods has not been heard yet: then no pod counts as gone. */
  readonly sourcesReady: boolean;
  readonly policy: GcPolicy;
  /** Wall time, milliseconds. */
  readonly now: number;
}

/** Newest first by age, of the same age the one with the higher attempt, then the one listed first. */
const youngestFirst = (a: Aged, b: Aged) => b.createdAt - a.createdAt || (b.attempt ?? 0) - (a.attempt ?? 0);
/** Newest first among those of one name, by attempt: the wall clock may have been set back between two of them. */
const newestFirst = (a: Aged, b: Aged) => (b.attempt ?? 0) - (a.attempt ?? 0) || b.createdAt - a.createdAt;
type Aged = { readonly createdAt: number; readonly attempt?: number };
const gone = "its pod is gone or was evicted";

function groups<T>(items: readonly T[], keyOf: (item: T) => string): Map<string, T[]> {
  const map = new Map<string, T[]>();
  for (const item of items) {
    const key = keyOf(item);
    const list = map.get(key);
    if (list) list.push(item);
    else map.set(key, [item]);
  }
  return map;
}

/**
 * Decides what the runtime may forget (runtime-contract.md section 21). Of containers that do not run: all of a pod
 * that is gone; else, beyond so many for each container and so many on the node, the oldest. Of sandboxes that are not
 * ready and hold no container: all but the newest of a pod that is there.
 */
export function planContainerGC(input: GcInput): GcPlan {
  const podGone = (uid: string) => input.sourcesReady && input.mayGo(uid);
  const containers = planContainers(input, podGone);
  const removed = new Set(containers.map((r) => r.item.id));
  const holding = new Set(input.containers.filter((c) => !removed.has(c.id)).map((c) => c.sandboxId));
  return { containers, sandboxes: planSandboxes(input, podGone, holding) };
}

function planContainers(input: GcInput, podGone: (uid: string) => boolean): Removal<GcContainer>[] {
  const { policy, now } = input;
  const removals: Removal<GcContainer>[] = [];
  const kept: GcContainer[][] = [];
  for (const instances of groups(input.containers, (c) => `${c.podUid}/${c.name}`).values()) {
    instances.sort(newestFirst);
    const [newest] = instances;
    if (!newest) continue;
    const isGone = podGone(newest.podUid);
    const dead = instances.filter((c) =>
      c.state !== "running" && isOldEnough(now - c.createdAt, policy.minAgeMs) &&
      // The newest may have been created this moment and be about to start.
      !(c === newest && c.state === "created" && !isGone)
    );
    if (isGone) removals.push(...dead.map((item) => ({ item, reason: "PodGone" as const, message: gone })));
    else kept.push(trim(dead, policy.maxPerContainer, removals, "DeadContainerLimit"));
  }
  limitOnNode(kept.filter((unit) => unit.length > 0), policy.maxContainers, removals);
  return removals.sort((a, b) => a.item.createdAt - b.item.createdAt);
}

/** Of what was made after now, by a clock that was set back since, nobody knows the age; it is not kept until then. */
function isOldEnough(ageMs: number, minAgeMs: number): boolean {
  return ageMs < 0 || ageMs >= minAgeMs;
}

/** Keeps the `most` newest (all, when negative), notes the others as removals and returns what is kept. */
function trim(
  dead: GcContainer[],
  most: number,
  removals: Removal<GcContainer>[],
  reason: "DeadContainerLimit" | "DeadContainersOnNode",
): GcContainer[] {
  if (most < 0 || dead.length <= most) return dead;
  const where = reason === "DeadContainerLimit" ? `instances of container ${dead[0]?.name}` : "containers on the node";
  const message = `only the ${most} newest dead ${where} are kept`;
  removals.push(...dead.slice(most).map((item) => ({ item, reason, message })));
  return dead.slice(0, most);
}

/** The node's limit is shared out evenly first, at least one a container; then the oldest go. */
function limitOnNode(units: GcContainer[][], most: number, removals: Removal<GcContainer>[]): void {
  const count = () => units.reduce((sum, unit) => sum + unit.length, 0);
  if (most < 0 || count() <= most) return;
  const share = Math.max(1, Math.floor(most / units.length));
  units = units.map((unit) => trim(unit, share, removals, "DeadContainersOnNode"));
  if (count() > most) trim(units.flat().sort(youngestFirst), most, removals, "DeadContainersOnNode");
}

function planSandboxes(
  input: GcInput,
  podGone: (uid: string) => boolean,
  holding: ReadonlySet<string>,
): Removal<GcSandbox>[] {
  const removals: Removal<GcSandbox>[] = [];
  for (const [podUid, sandboxes] of groups(input.sandboxes, (s) => s.podUid)) {
    sandboxes.sort(newestFirst);
    const isGone = podGone(podUid);
    for (const item of isGone ? sandboxes : sandboxes.slice(1)) {
      if (item.ready || holding.has(item.id)) continue;
      removals.push(
        isGone
          ? { item, reason: "PodGone", message: gone }
          : { item, reason: "OldSandbox", message: "the pod has a newer sandbox, and this one is stopped and empty" },
      );
    }
  }
  return removals.sort((a, b) => a.item.createdAt - b.item.createdAt);
}

/**
 * Dead containers of a pod beyond `keep` for each name, to be removed at once when one has died (section 21). With
 * `containerId` only those of the same name; with `all` (a pod that was evicted, or deleted and has ended) every dead
 * one. Newest are kept.
 */
export function extraDeadContainers(
  observed: ObservedPod,
  options: { keep: number; containerId?: string; all?: boolean },
): { id: string; name: string }[] {
  const only = options.all || options.containerId === undefined
    ? undefined
    : observed.containers.find((c) => c.id === options.containerId)?.name;
  if (!options.all && options.containerId !== undefined && only === undefined) return [];
  const extra: { id: string; name: string }[] = [];
  const exited = observed.containers.filter((c) => c.state === "exited" && (only === undefined || c.name === only));
  for (const instances of groups(exited, (c) => c.name).values()) {
    instances.sort((a, b) => b.restartCount - a.restartCount || b.createdAt - a.createdAt);
    for (const { id, name } of instances.slice(options.all ? 0 : Math.max(0, options.keep))) extra.push({ id, name });
  }
  return extra;
}
