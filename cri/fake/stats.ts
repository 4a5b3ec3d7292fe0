import { create } from "@bufbuild/protobuf";
import * as pb from "../gen/runtime_pb.ts";
import { type ContainerRecord, type SandboxRecord, stateOf } from "./state.ts";

/** Statistics of a container: a hundredth of a core since it started, 8 MiB of memory. */
export function containerStats(record: ContainerRecord, nowMs: number): pb.ContainerStats {
  const timestamp = BigInt(Math.floor(nowMs)) * 1_000_000n;
  const running = stateOf(record) === pb.ContainerState.CONTAINER_RUNNING;
  const { config } = record;
  return create(pb.ContainerStatsSchema, {
    attributes: {
      id: record.id,
      labels: config.labels,
      annotations: config.annotations,
      ...(config.metadata ? { metadata: config.metadata } : {}),
    },
    writableLayer: {
      timestamp,
      fsId: { mountpoint: "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs" },
      usedBytes: { value: 32_768n },
      inodesUsed: { value: 8n },
    },
    ...(running
      ? {
        cpu: { timestamp, usageCoreNanoSeconds: { value: (timestamp - record.startedAt) / 100n } },
        memory: { timestamp, workingSetBytes: { value: 8n << 20n }, usageBytes: { value: 9n << 20n } },
      }
      : {}),
  });
}

/** Statistics of a sandbox: its running containers', added up. */
export function sandboxStats(
  record: SandboxRecord,
  containers: readonly ContainerRecord[],
  nowMs: number,
): pb.PodSandboxStats {
  const timestamp = BigInt(Math.floor(nowMs)) * 1_000_000n;
  const { config } = record;
  const stats = containers.filter((c) => stateOf(c) === pb.ContainerState.CONTAINER_RUNNING)
    .map((c) => containerStats(c, nowMs));
  return create(pb.PodSandboxStatsSchema, {
    attributes: {
      id: record.id,
      labels: config.labels,
      annotations: config.annotations,
      ...(config.metadata ? { metadata: config.metadata } : {}),
    },
    linux: {
      containers: stats,
      process: { timestamp, processCount: { value: BigInt(stats.length + 1) } },
      memory: { timestamp, workingSetBytes: { value: BigInt(stats.length * 8 + 1) << 20n } },
    },
  });
}
