import type { Clock } from "../base/clock.ts";
import { configMirror, configSeen, configSource, podFullName } from "../kube/pod.ts";
import type { BoundPod } from "../kube/types.ts";
import { sameValue } from "./equal.ts";
import type { PodChange, SourceName, SourceSnapshot } from "./types.ts";

/** A pod that was left out because another one stands in its place. */
export interface Duplicate {
  readonly source: SourceName;
  readonly pod: BoundPod;
  /** What both have: the full name within a source, or the UID. */
  readonly same: "name" | "uid";
  /** The one that stays. */
  readonly kept: BoundPod;
}

/** What a Merger needs. */
export interface MergerOptions {
  /** Gives the time that a pod was first seen. */
  readonly clock: Pick<Clock, "now">;
  /** Told once of each duplicate, until it is gone. */
  readonly onDuplicate?: (duplicate: Duplicate) => void;
}

/** When two sources want the same UID, the first of these wins, whatever came first: a restart must not change it. */
const precedence: readonly SourceName[] = ["file", "http", "api"];

/** Annotations that the agent writes; they are no reason for an update (pkg/kubelet/config/config.go). */
const local: ReadonlySet<string> = new Set([configSource, configMirror, configSeen]);

/** The order of operations within a batch: what goes makes room for what comes. */
const opOrder = ["remove", "add", "update", "delete", "reconcile"] as const;

/**
 * Turns full states of the sources into changes (features.md B4). A pod is known by its UID. A UID that a source no longer
 * has is removed; a new one is added; a change of spec, labels, annotations or deletion is an update, or a delete once
 * a deletion time is set; a change of status alone is a reconcile. A change of name or source under one UID is a remove
 * and an add.
 */
export class Merger {
  readonly #options: MergerOptions;
  readonly #snapshots = new Map<SourceName, readonly BoundPod[]>();
  #known = new Map<string, BoundPod>();
  #reported = new Set<string>();
  #duplicates: readonly Duplicate[] = [];

  constructor(options: MergerOptions) {
    this.#options = options;
  }

  /** The pods wanted now, as last given out. */
  get pods(): readonly BoundPod[] {
    return [...this.#known.values()];
  }

  /** The pods that are left out now. */
  get duplicates(): readonly Duplicate[] {
    return this.#duplicates;
  }

  /** Takes the new state of a source and gives the changes in the order in which they are to be carried out. */
  apply(snapshot: SourceSnapshot): PodChange[] {
    this.#snapshots.set(snapshot.source, snapshot.pods);
    const wanted = this.#wanted();
    const changes: PodChange[] = [];
    const next = new Map<string, BoundPod>();
    for (const [uid, before] of this.#known) {
      const now = wanted.get(uid);
      if (!now || whose(now) !== whose(before)) changes.push({ op: "remove", pod: before });
    }
    for (const [uid, pod] of wanted) {
      const before = this.#known.get(uid);
      if (!before || whose(pod) !== whose(before)) {
        const added = withSeen(pod, new Date(this.#options.clock.now()).toISOString());
        next.set(uid, added);
        changes.push({ op: "add", pod: added });
        continue;
      }
      const changed = withSeen(pod, before.metadata.annotations?.[configSeen]);
      if (differ(before, changed)) {
        next.set(uid, changed);
        changes.push({ op: changed.metadata.deletionTimestamp === undefined ? "update" : "delete", pod: changed });
      } else if (!sameValue(before.status, changed.status)) {
        const reconciled = withStatusOf(before, changed);
        next.set(uid, reconciled);
        changes.push({ op: "reconcile", pod: reconciled });
      } else next.set(uid, before);
    }
    this.#known = next;
    const rank = (change: PodChange) => opOrder.indexOf(change.op);
    return changes.sort((a, b) => rank(a) - rank(b));
  }

  /** The pods of all sources without duplicates, in the order of the sources and of their snapshots. */
  #wanted(): Map<string, BoundPod> {
    const wanted = new Map<string, BoundPod>();
    const reported = new Set<string>();
    const duplicates: Duplicate[] = [];
    for (const source of precedence) {
      const names = new Map<string, BoundPod>();
      for (const pod of this.#snapshots.get(source) ?? []) {
        const name = podFullName(pod);
        const sameName = names.get(name);
        const kept = sameName ?? wanted.get(pod.metadata.uid);
        if (kept) {
          const duplicate: Duplicate = { source, pod, same: sameName ? "name" : "uid", kept };
          duplicates.push(duplicate);
          const key = JSON.stringify([source, name, pod.metadata.uid, podFullName(kept), kept.metadata.uid]);
          if (!this.#reported.has(key) && !reported.has(key)) {
            this.#options.onDuplicate?.(duplicate);
          }
          reported.add(key);
          continue;
        }
        const annotations = { ...pod.metadata.annotations, [configSource]: source };
        const bound = { ...pod, metadata: { ...pod.metadata, annotations } };
        names.set(name, bound);
        wanted.set(pod.metadata.uid, bound);
      }
    }
    this.#reported = reported;
    this.#duplicates = duplicates;
    return wanted;
  }
}

/** What must not change under one UID. */
function whose(pod: BoundPod): string {
  return `${pod.metadata.annotations?.[configSource]} ${podFullName(pod)}`;
}

function withSeen(pod: BoundPod, seen: string | undefined): BoundPod {
  const annotations = { ...pod.metadata.annotations };
  if (seen === undefined) delete annotations[configSeen];
  else annotations[configSeen] = seen;
  return { ...pod, metadata: { ...pod.metadata, annotations } };
}

/** The pod with a newer status; its definition stays the very same object, which says that nothing of it changed. */
function withStatusOf(before: BoundPod, now: BoundPod): BoundPod {
  const { resourceVersion } = now.metadata;
  return {
    ...now,
    metadata: { ...before.metadata, ...(resourceVersion === undefined ? {} : { resourceVersion }) },
    spec: before.spec,
  };
}

function differ(before: BoundPod, now: BoundPod): boolean {
  const facts = ({ spec, metadata }: BoundPod) => [
    spec,
    metadata.labels ?? {},
    metadata.deletionTimestamp,
    metadata.deletionGracePeriodSeconds,
    Object.fromEntries(Object.entries(metadata.annotations ?? {}).filter(([key]) => !local.has(key))),
  ];
  return !sameValue(facts(before), facts(now));
}
