import { create } from "@bufbuild/protobuf";
import type {
  CallOptions,
  MutatingOptions,
  ResourcesInit,
  RuntimeService,
  SandboxConfigInit,
  SandboxFilterInit,
} from "../api.ts";
import * as pb from "../gen/runtime_pb.ts";
import { type Core, failed, notFound, unimplemented } from "./core.ts";
import {
  keepSandboxConfig,
  matchesSandbox,
  onHostNetwork,
  sandboxItem,
  sandboxName,
  type SandboxRecord,
  sandboxStatus,
} from "./state.ts";

const event = pb.ContainerEventType;

type Calls = Pick<
  RuntimeService,
  | "runPodSandbox"
  | "stopPodSandbox"
  | "removePodSandbox"
  | "podSandboxStatus"
  | "listPodSandboxes"
  | "updatePodSandboxResources"
>;

/** The calls about sandboxes. */
export class SandboxCalls implements Calls {
  constructor(private readonly core: Core) {}

  runPodSandbox(config: SandboxConfigInit, handler: string, options: MutatingOptions): Promise<string> {
    const { core } = this;
    const call = "RunPodSandbox";
    const kept = keepSandboxConfig(config);
    const { metadata } = kept;
    return core.call(call, metadata?.name, options, () => {
      if (!metadata) throw failed(call, "sandbox config must include metadata");
      const name = sandboxName(metadata);
      const id = core.reserve(call, "sandbox", name, metadata.name);
      const problem = this.#problem(id, kept, handler);
      if (problem !== undefined) {
        core.release(name);
        throw failed(call, problem, metadata.name);
      }
      core.sandboxes.set(id, {
        id,
        name,
        config: kept,
        handler,
        createdAt: core.stamp(),
        ready: true,
        ip: onHostNetwork(kept) ? "" : core.nextIp(),
      });
      core.emit(id, id, event.CONTAINER_CREATED_EVENT);
      core.emit(id, id, event.CONTAINER_STARTED_EVENT);
      return id;
    }, core.timeoutMs);
  }

  /** What keeps a sandbox from being made. */
  #problem(id: string, config: pb.PodSandboxConfig, handler: string): string | undefined {
    const { flavour, handlers } = this.core;
    if (!handlers.includes(handler)) {
      const what = flavour === "2" ? `unable to get OCI runtime for sandbox "${id}"` : "failed to get sandbox runtime";
      return `${what}: no runtime for "${handler}" is configured`;
    }
    // On the node's network the sandbox has the node's host name, and runc refuses another.
    if (onHostNetwork(config) && config.hostname !== "") {
      return "failed to create containerd task: failed to create shim task: OCI runtime create failed: " +
        "runc create failed: unable to set hostname without a private UTS namespace";
    }
    return undefined;
  }

  stopPodSandbox(id: string, options: MutatingOptions): Promise<void> {
    const call = "StopPodSandbox";
    return this.core.call(call, id, options, async (gone) => {
      const record = this.core.findSandbox(call, id);
      if (record) await this.#stop(record, gone);
      else if (this.core.flavour === "1.6") {
        throw notFound(call, `an error occurred when try to find sandbox "${id}": not found`, id);
      }
    });
  }

  removePodSandbox(id: string, options: MutatingOptions): Promise<void> {
    const { core } = this;
    const call = "RemovePodSandbox";
    return core.call(call, id, options, async (gone) => {
      const record = core.findSandbox(call, id);
      if (!record) return;
      await this.#stop(record, gone);
      for (const container of core.of(record.id)) core.drop(container);
      core.emit(record.id, record.id, event.CONTAINER_DELETED_EVENT);
      core.sandboxes.delete(record.id);
      core.release(record.name);
    });
  }

  async #stop(record: SandboxRecord, gone: AbortSignal): Promise<void> {
    for (const container of this.core.of(record.id)) await this.core.lives.stop(container, 0, gone);
    this.core.endSandbox(record);
    record.ip = "";
  }

  podSandboxStatus(id: string, options?: CallOptions): Promise<pb.PodSandboxStatusResponse> {
    const call = "PodSandboxStatus";
    return this.core.call(call, id, options, () => {
      const record = this.core.findSandbox(call, id);
      if (!record) throw notFound(call, "an error occurred when try to find sandbox: not found", id);
      return create(pb.PodSandboxStatusResponseSchema, { status: sandboxStatus(record) });
    });
  }

  listPodSandboxes(filter?: SandboxFilterInit, options?: CallOptions): Promise<pb.PodSandbox[]> {
    return this.core.call("ListPodSandbox", undefined, options, () => {
      const items: pb.PodSandbox[] = [];
      for (const record of this.core.sandboxes.values()) {
        if (matchesSandbox(record, filter)) items.push(sandboxItem(record));
      }
      return this.core.unordered(items);
    });
  }

  updatePodSandboxResources(
    request: { id: string; overhead: ResourcesInit; resources: ResourcesInit },
    options: MutatingOptions,
  ): Promise<void> {
    const { core } = this;
    const call = "UpdatePodSandboxResources";
    return core.call(call, request.id, options, () => {
      if (core.flavour === "1.6") throw unimplemented(call);
      if (!core.findSandbox(call, request.id)) throw notFound(call, "failed to find sandbox: not found", request.id);
    });
  }
}
