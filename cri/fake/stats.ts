import { create } from "@bufbuild/protobuf";
import { type CallOptions, grpcCode, RuntimeError, type RuntimeService } from "../api.ts";
import * as pb from "../gen/runtime_pb.ts";
import { type Core, failed, notFound } from "./core.ts";
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

/** Statistics of a sandbox: its containers', and theirs added up; those that do not run are without figures. */
export function sandboxStats(
  record: SandboxRecord,
  containers: readonly ContainerRecord[],
  nowMs: number,
): pb.PodSandboxStats {
  const timestamp = BigInt(Math.floor(nowMs)) * 1_000_000n;
  const { config } = record;
  const stats = containers.map((c) => containerStats(c, nowMs));
  const running = stats.filter((c) => c.memory !== undefined).length;
  return create(pb.PodSandboxStatsSchema, {
    attributes: {
      id: record.id,
      labels: config.labels,
      annotations: config.annotations,
      ...(config.metadata ? { metadata: config.metadata } : {}),
    },
    linux: {
      containers: stats,
      process: { timestamp, processCount: { value: BigInt(running + 1) } },
      memory: { timestamp, workingSetBytes: { value: BigInt(running * 8 + 1) << 20n } },
    },
  });
}

type Calls = Pick<RuntimeService, "podSandboxStats" | "listPodSandboxStats" | "containerStats" | "listContainerStats">;

/** The calls about statistics. */
export class StatsCalls implements Calls {
  constructor(private readonly core: Core) {}

  podSandboxStats(id: string, options?: CallOptions): Promise<pb.PodSandboxStats | undefined> {
    const { core } = this;
    const call = "PodSandboxStats";
    return core.call(call, id, options, () => {
      const record = core.findSandbox(call, id);
      if (!record) throw notFound(call, `an error occurred when trying to find sandbox ${id}: not found`, id);
      if (!record.ready) throw this.#notReady(call, `failed to decode pod sandbox metrics ${record.id}`, record);
      return sandboxStats(record, core.of(record.id), core.clock.now());
    });
  }

  /** 2 says Unavailable of a sandbox that has been stopped: it is the sandbox that is meant, not the runtime. */
  #notReady(call: string, words: string, { id }: SandboxRecord): RuntimeError {
    const details = `${words}: failed to get pod sandbox stats since sandbox container "${id}" is not in ready state`;
    return this.core.flavour === "1.6"
      ? failed(call, details, id)
      : new RuntimeError(call, grpcCode.Unavailable, `${details}: unavailable`, { target: id });
  }

  /** In 1.6 one stopped sandbox fails the whole list; 2 leaves it out. */
  listPodSandboxStats(options?: CallOptions): Promise<pb.PodSandboxStats[]> {
    const { core } = this;
    const call = "ListPodSandboxStats";
    return core.call(call, undefined, options, () => {
      const stats: pb.PodSandboxStats[] = [];
      for (const record of core.sandboxes.values()) {
        if (record.ready) stats.push(sandboxStats(record, core.of(record.id), core.clock.now()));
        else if (core.flavour === "1.6") {
          throw this.#notReady(call, `failed to decode sandbox container metrics for sandbox "${record.id}"`, record);
        }
      }
      return stats;
    });
  }

  containerStats(id: string, options?: CallOptions): Promise<pb.ContainerStats | undefined> {
    const { core } = this;
    const call = "ContainerStats";
    return core.call(call, id, options, () => {
      const record = core.container(call, id, "failed to find container: not found");
      if (stateOf(record) !== pb.ContainerState.CONTAINER_RUNNING) {
        throw failed(call, "unexpected metrics response: []", id);
      }
      return containerStats(record, core.clock.now());
    });
  }

  /** Containers that do not run are listed too, without CPU and memory. */
  listContainerStats(options?: CallOptions): Promise<pb.ContainerStats[]> {
    const { core } = this;
    return core.call(
      "ListContainerStats",
      undefined,
      options,
      () => [...core.containers.values()].map((record) => containerStats(record, core.clock.now())),
    );
  }
}
