import { fromBinary, toBinary } from "@bufbuild/protobuf";
import {
  type ContainerAllocateResponse,
  ContainerAllocateResponseSchema,
} from "../../mod/kube/gen/plugins/device_plugin_pb.ts";
import { type CheckpointEntry, fromBase64, toBase64 } from "./checkpoint.ts";
import type { Device, ResourceDevices } from "./types.ts";

/** What one container has of one resource. */
export interface Assignment {
  readonly devices: readonly Pick<Device, "id" | "nodes">[];
  /** What the plugin answered when it was asked to give them. */
  readonly answer: ContainerAllocateResponse;
}

/** Which container has which devices. */
export class Assignments {
  /** By pod UID, container and resource. */
  readonly #pods = new Map<string, Map<string, Map<string, Assignment>>>();

  set(podUid: string, container: string, resource: string, assignment: Assignment): void {
    const containers = this.#pods.get(podUid) ?? new Map<string, Map<string, Assignment>>();
    const resources = containers.get(container) ?? new Map<string, Assignment>();
    this.#pods.set(podUid, containers.set(container, resources.set(resource, assignment)));
  }

  /** A container's, by resource; empty when it has none. */
  of(podUid: string, container: string): ReadonlyMap<string, Assignment> {
    return this.#pods.get(podUid)?.get(container) ?? new Map();
  }

  /** Ids of a container's devices of a resource; undefined when it was given none. */
  ids(podUid: string, container: string, resource: string): string[] | undefined {
    return this.#pods.get(podUid)?.get(container)?.get(resource)?.devices.map(({ id }) => id);
  }

  listOf(podUid: string, container: string): ResourceDevices[] {
    return [...this.of(podUid, container)].map(([resource, { devices }]) => ({ resource, devices }));
  }

  /** Ids of all devices of each resource that some container has. */
  inUse(): Map<string, Set<string>> {
    const used = new Map<string, Set<string>>();
    for (const [, , resource, { devices }] of this.#all()) {
      const ids = used.get(resource) ?? new Set<string>();
      for (const { id } of devices) ids.add(id);
      used.set(resource, ids);
    }
    return used;
  }

  /** UIDs of the pods that have one of these devices. */
  podsWith(resource: string, ids: ReadonlySet<string>): Set<string> {
    const pods = new Set<string>();
    for (const [uid, , of, { devices }] of this.#all()) {
      if (of === resource && devices.some(({ id }) => ids.has(id))) pods.add(uid);
    }
    return pods;
  }

  /** Drops all pods but these; true when one was dropped. */
  keep(uids: ReadonlySet<string>): boolean {
    let dropped = false;
    for (const uid of this.#pods.keys()) if (!uids.has(uid)) dropped = this.#pods.delete(uid) || dropped;
    return dropped;
  }

  toEntries(): CheckpointEntry[] {
    return [...this.#all()].map(([PodUID, ContainerName, ResourceName, { devices, answer }]) => ({
      PodUID,
      ContainerName,
      ResourceName,
      DeviceIDs: byNode(devices),
      AllocResp: toBase64(toBinary(ContainerAllocateResponseSchema, answer)),
    }));
  }

  /** Takes an entry of the file over. Throws when its answer can't be read. */
  add({ PodUID, ContainerName, ResourceName, DeviceIDs, AllocResp }: CheckpointEntry): void {
    const nodes = new Map<string, number[]>();
    for (const [node, ids] of Object.entries(DeviceIDs ?? {})) {
      for (const id of ids ?? []) {
        const own = nodes.get(id) ?? [];
        if (Number(node) >= 0) own.push(Number(node));
        nodes.set(id, own);
      }
    }
    const answer = fromBinary(ContainerAllocateResponseSchema, fromBase64(AllocResp ?? ""));
    this.set(PodUID, ContainerName, ResourceName, {
      devices: [...nodes].map(([id, own]) => ({ id, nodes: own })),
      answer,
    });
  }

  *#all(): Generator<[pod: string, container: string, resource: string, assignment: Assignment]> {
    for (const [uid, containers] of this.#pods) {
      for (const [container, resources] of containers) {
        for (const [resource, assignment] of resources) yield [uid, container, resource, assignment];
      }
    }
  }
}

const noNode = -1;

function byNode(devices: Assignment["devices"]): Record<string, string[]> {
  const nodes: Record<string, string[]> = {};
  for (const { id, nodes: own } of devices) {
    for (const node of own.length > 0 ? own : [noNode]) (nodes[node] ??= []).push(id);
  }
  return nodes;
}
