import * as pb from "../gen/runtime_pb.ts";
import { type ContainerRecord, type SandboxRecord, stateOf } from "./state.ts";

/** A sandbox of a snapshot; times in milliseconds. */
export interface SnapshotSandbox {
  readonly id: string;
  readonly namespace: string;
  readonly podName: string;
  readonly uid: string;
  readonly attempt: number;
  readonly ready: boolean;
  readonly ip: string;
  readonly createdAt: number;
}

/** A container of a snapshot; times in milliseconds, 0 when not yet. */
export interface SnapshotContainer {
  readonly id: string;
  readonly sandboxId: string;
  readonly namespace: string;
  readonly podName: string;
  readonly uid: string;
  readonly name: string;
  readonly attempt: number;
  /** As the pod's spec has it. */
  readonly image: string;
  readonly state: "created" | "running" | "exited";
  readonly createdAt: number;
  readonly startedAt: number;
  readonly finishedAt: number;
  readonly exitCode: number;
  readonly reason: string;
}

/** All that the runtime holds, oldest first. */
export interface Snapshot {
  readonly sandboxes: readonly SnapshotSandbox[];
  readonly containers: readonly SnapshotContainer[];
}

const words = new Map<pb.ContainerState, SnapshotContainer["state"]>([
  [pb.ContainerState.CONTAINER_CREATED, "created"],
  [pb.ContainerState.CONTAINER_RUNNING, "running"],
  [pb.ContainerState.CONTAINER_EXITED, "exited"],
]);

const toMs = (ns: bigint) => Number(ns / 1_000_000n);

export function snapshotOf(
  sandboxes: Iterable<SandboxRecord>,
  containers: Iterable<ContainerRecord>,
): Snapshot {
  const pods = new Map<string, SnapshotSandbox>();
  for (const record of sandboxes) {
    const { metadata } = record.config;
    pods.set(record.id, {
      id: record.id,
      namespace: metadata?.namespace ?? "",
      podName: metadata?.name ?? "",
      uid: metadata?.uid ?? "",
      attempt: metadata?.attempt ?? 0,
      ready: record.ready,
      ip: record.ip,
      createdAt: toMs(record.createdAt),
    });
  }
  const list: SnapshotContainer[] = [];
  for (const record of containers) {
    const pod = pods.get(record.sandboxId);
    list.push({
      id: record.id,
      sandboxId: record.sandboxId,
      namespace: pod?.namespace ?? "",
      podName: pod?.podName ?? "",
      uid: pod?.uid ?? "",
      name: record.config.metadata?.name ?? "",
      attempt: record.config.metadata?.attempt ?? 0,
      image: record.config.image?.userSpecifiedImage || (record.config.image?.image ?? ""),
      state: words.get(stateOf(record)) ?? "exited",
      createdAt: toMs(record.createdAt),
      startedAt: toMs(record.startedAt),
      finishedAt: toMs(record.finishedAt),
      exitCode: record.exitCode,
      reason: record.reason,
    });
  }
  return { sandboxes: [...pods.values()], containers: list };
}
