import { create } from "@bufbuild/protobuf";
import type {
  CallOptions,
  ContainerConfigInit,
  ContainerFilterInit,
  MutatingOptions,
  ResourcesInit,
  RuntimeService,
  SandboxConfigInit,
} from "../api.ts";
import * as pb from "../gen/runtime_pb.ts";
import { type Core, failed, notFound, unimplemented } from "./core.ts";
import {
  containerItem,
  containerName,
  keepContainerConfig,
  keepSandboxConfig,
  matchesContainer,
  stateOf,
} from "./state.ts";

const { CONTAINER_CREATED, CONTAINER_RUNNING } = pb.ContainerState;
const event = pb.ContainerEventType;

type Calls = Pick<
  RuntimeService,
  | "createContainer"
  | "startContainer"
  | "stopContainer"
  | "removeContainer"
  | "listContainers"
  | "containerStatus"
  | "updateContainerResources"
  | "reopenContainerLog"
  | "checkpointContainer"
>;

/** The calls about containers. */
export class ContainerCalls implements Calls {
  constructor(private readonly core: Core) {}

  createContainer(
    request: { sandboxId: string; config: ContainerConfigInit; sandboxConfig: SandboxConfigInit },
    options: MutatingOptions,
  ): Promise<string> {
    const { core } = this;
    const call = "CreateContainer";
    const config = keepContainerConfig(request.config);
    const pod = keepSandboxConfig(request.sandboxConfig);
    const target = config.metadata?.name;
    return core.call(call, target, options, () => {
      const sandbox = core.findSandbox(call, request.sandboxId);
      if (!sandbox) throw notFound(call, `failed to find sandbox id "${request.sandboxId}": not found`, target);
      if (!sandbox.ready) throw this.#sandboxDown(call, sandbox.id, target);
      if (!config.metadata) throw failed(call, "container config must include metadata");
      if (!pod.metadata) throw failed(call, "pod sandbox config must include metadata", target);
      const name = containerName(config.metadata, pod.metadata);
      const id = core.reserve(call, "container", name, target);
      const imageName = config.image?.image ?? "";
      const image = core.images.find(imageName);
      if (!image) {
        core.release(name);
        throw notFound(call, `failed to resolve image "${imageName}": not found`, target);
      }
      core.containers.set(id, {
        id,
        name,
        sandboxId: sandbox.id,
        config,
        logPath: config.logPath === "" ? "" : `${pod.logDirectory}/${config.logPath}`.replace(/\/+/g, "/"),
        imageId: image.id,
        program: core.programs(config, sandbox.config),
        createdAt: core.stamp(),
        ended: Promise.withResolvers<void>(),
        startedAt: 0n,
        finishedAt: 0n,
        exitCode: 0,
        reason: "",
        message: "",
        signalled: false,
        resources: config.linux?.resources,
        timers: [],
      });
      core.emit(id, sandbox.id, event.CONTAINER_CREATED_EVENT);
      return id;
    });
  }

  /** 1.6 says NotFound of a sandbox that is there but does not run, for its task is what it looks for. */
  #sandboxDown(call: string, id: string, target: string | undefined): Error {
    return this.core.flavour === "1.6"
      ? notFound(call, `failed to get sandbox container task: no running task found: task ${id} not found: not found`)
      : failed(call, `sandbox container "${id}" is not running`, target);
  }

  startContainer(id: string, options: MutatingOptions): Promise<void> {
    const { core } = this;
    const call = "StartContainer";
    return core.call(call, id, options, () => {
      const record = core.container(call, id);
      const state = stateOf(record);
      if (state !== CONTAINER_CREATED) {
        const words = `failed to set starting state for container "${record.id}": container is in `;
        throw failed(call, `${words}${pb.ContainerState[state]} state`, id);
      }
      const problem = core.sandboxes.get(record.sandboxId)?.ready
        ? record.program.startError
        : `sandbox container "${record.sandboxId}" is not running`;
      if (problem !== undefined) {
        core.lives.failStart(record, problem);
        throw failed(call, problem, id);
      }
      core.lives.start(record);
      core.emit(record.id, record.sandboxId, event.CONTAINER_STARTED_EVENT);
    });
  }

  stopContainer(id: string, graceSeconds: number, options: MutatingOptions): Promise<void> {
    const { core } = this;
    const call = "StopContainer";
    const graceMs = Math.max(graceSeconds, 0) * 1_000;
    return core.call(call, id, options, async (gone) => {
      // 1.6 knows no stop of a container that is not there; 2 takes it as done.
      const record = core.flavour === "1.6" ? core.container(call, id) : core.findContainer(call, id);
      if (record) await core.lives.stop(record, graceMs, gone);
    }, graceMs);
  }

  removeContainer(id: string, options: MutatingOptions): Promise<void> {
    const { core } = this;
    const call = "RemoveContainer";
    return core.call(call, id, options, async (gone) => {
      const record = core.findContainer(call, id);
      if (!record) return;
      await core.lives.stop(record, 0, gone);
      core.drop(record);
    });
  }

  listContainers(filter?: ContainerFilterInit, options?: CallOptions): Promise<pb.Container[]> {
    const { core } = this;
    return core.call("ListContainers", undefined, options, () => {
      const items: pb.Container[] = [];
      for (const record of core.containers.values()) {
        if (matchesContainer(record, filter)) items.push(containerItem(record, core.flavour));
      }
      return core.unordered(items);
    });
  }

  containerStatus(id: string, options?: CallOptions & { verbose?: boolean }): Promise<pb.ContainerStatusResponse> {
    const { core } = this;
    const call = "ContainerStatus";
    return core.call(call, id, options, () => {
      const record = core.container(call, id);
      return create(pb.ContainerStatusResponseSchema, {
        status: core.statusOf(record),
        info: options?.verbose
          ? { info: JSON.stringify({ sandboxID: record.sandboxId, config: { envs: envsOf(record.config) } }) }
          : {},
      });
    });
  }

  updateContainerResources(id: string, resources: ResourcesInit, options: MutatingOptions): Promise<void> {
    const { core } = this;
    const call = "UpdateContainerResources";
    return core.call(call, id, options, () => {
      const record = core.container(call, id, "failed to find container: not found");
      const { $typeName: _, ...before } = record.resources ?? create(pb.LinuxContainerResourcesSchema);
      record.resources = create(pb.LinuxContainerResourcesSchema, { ...before, ...given(resources) });
    });
  }

  reopenContainerLog(id: string, options: MutatingOptions): Promise<void> {
    const call = "ReopenContainerLog";
    return this.core.call(call, id, options, () => {
      const record = this.core.container(call, id);
      if (stateOf(record) !== CONTAINER_RUNNING) throw failed(call, "container is not running", id);
    });
  }

  checkpointContainer(id: string, _location: string, _timeout: number, options: MutatingOptions): Promise<void> {
    const { core } = this;
    const call = "CheckpointContainer";
    return core.call(call, id, options, () => {
      if (core.flavour === "1.6") throw unimplemented(call);
      const record = core.container(call, id);
      const words = `failed to checkpoint container "${record.id}"`;
      throw failed(call, `${words}: criu binary not found in shim path or system PATH`, id);
    });
  }
}

/** The fields that an update sets: zero and empty ones leave the old value. */
function given(resources: ResourcesInit): ResourcesInit {
  return Object.fromEntries(
    Object.entries(resources).filter(([key, value]) =>
      key !== "$typeName" && value !== undefined && value !== 0n && value !== "" &&
      !(Array.isArray(value) && value.length === 0)
    ),
  );
}

/** A container's variables, as containerd tells them. */
function envsOf(config: pb.ContainerConfig): { key: string; value: string }[] {
  return config.envs.map(({ key, value }) => ({ key, value: new TextDecoder().decode(value) }));
}
