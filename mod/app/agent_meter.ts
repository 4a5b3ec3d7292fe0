import type { CheckResult, RecordCounts } from "../../managers/images/credentials/pull_records.ts";
import type { CgroupManager } from "../../managers/cgroups/types.ts";
import type { EnsuredImage, PullMeter } from "../../managers/images/types.ts";
import type { HookMeter } from "../../managers/lifecycle/hooks.ts";
import type { ProbeSample } from "../../managers/probes/manager.ts";
import type { FoundVolumesMeter } from "../../managers/volumes/manager.ts";
import type { VolumeCounts, VolumeOperation } from "../../managers/volumes/types.ts";
import type { ContainerKind } from "../kube/types.ts";
import type { PlegMeter } from "../sync/pleg.ts";
import type { WorkersMeter } from "../sync/pod_workers.ts";
import type { PodSyncer } from "../sync/pod_worker.ts";

/** Told of what the agent does, for its metrics. */
export interface AgentMeter extends PlegMeter {
  probe(sample: ProbeSample): void;
  /** A container was tried to start. @param failed why it could not be, as its status has it */
  container(kind: ContainerKind, failed: string | undefined): void;
  evicted(signal: string): void;
  evictionStatsAge(signal: string, seconds: number): void;
  /** What a directory takes was measured. */
  measured(path: string, seconds: number): void;
  /** Gives a syncer that does the same, and is measured. */
  syncer(syncer: PodSyncer): PodSyncer;
  readonly starts: PullMeter;
  /** Credentials of images. */
  readonly security: {
    checkedImage(result: CheckResult): void;
    pullRecords(counts: RecordCounts): void;
    plugin(name: string, seconds: number, failed: boolean): void;
    pluginConfiguration(hash: string): void;
  };
  /** Resizes in place. */
  readonly resizes: {
    asked(resource: "cpu" | "memory", requirement: "requests" | "limits", operation: string): void;
    infeasible(detail: string): void;
    deferredAccepted(trigger: string): void;
    done(done: { readonly success: boolean; readonly ms: number }): void;
    /** Asked how many there are, when a page is made. */
    counts: (() => { readonly pending: ReadonlyMap<string, number>; readonly progress: number }) | undefined;
  };
  /** What the managers do. */
  readonly work: WorkersMeter & HookMeter & FoundVolumesMeter & {
    /** @param pods gone that have directories @param failed those of them whose directories cannot be removed */
    orphanVolumes(pods: number, failed: number): void;
    rejected(reason: string): void;
    imageRemoved(why: "age" | "space"): void;
    /** A pod makes room for a critical one. @param signal what was short */
    preempted(signal: string): void;
    ensuredImage(image: EnsuredImage): void;
    volume(done: VolumeOperation): void;
    /** Asked how many volumes there are, when a page is made. */
    volumes: VolumeCounts | undefined;
    /** How much memory groups above those of pods keep for them, bytes (gate MemoryQoS). */
    memoryKept(kept: { readonly min: bigint; readonly low: bigint }): void;
    /** Gives control groups that do the same, and are measured. */
    groups<T extends CgroupManager>(manager: T, now: () => number): T;
  };
}
