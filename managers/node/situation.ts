import type { ImageService, RuntimeService } from "../../cri/api.ts";
import type { RuntimeFeatures, RuntimeHandler } from "../../cri/gen/runtime_pb.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { ContainerImage, NodeAddress, NodeRuntimeHandler } from "../../mod/kube/types.ts";
import { statusImages } from "./images.ts";
import type { AddressResult } from "./status_addresses.ts";
import {
  type DeviceResources,
  type NodeSituation,
  type NodeUrgency,
  type PressureType,
  pressureTypes,
} from "./types.ts";

/** How long a list of images, and the runtime's version, are used, in milliseconds (section 11: 30 s for images). */
const freshMs = 30_000;

export interface NodeWatcherOptions {
  readonly runtime: Pick<RuntimeService, "version">;
  readonly images: Pick<ImageService, "listImages">;
  /** As container ids begin, such as `containerd`. */
  readonly runtimeName: string;
  /** nodeStatusMaxImages. */
  readonly maxImages: number;
  /** What keeps the node from being ready, in order. */
  readonly troubles: () => readonly string[];
  readonly pressure: () => readonly string[];
  readonly handlers: () => readonly RuntimeHandler[];
  readonly features: () => RuntimeFeatures | undefined;
  readonly addresses: (signal: AbortSignal) => Promise<AddressResult>;
  readonly volumesInUse?: () => readonly string[] | undefined;
  readonly devices?: () => DeviceResources | undefined;
  readonly clock: Clock;
  readonly log: Logger;
}

/** Finds out what is true of the node now; what cannot be found out is left open, and told once. */
export class NodeWatcher {
  readonly #o: NodeWatcherOptions;
  readonly #complaints = new Map<string, string>();
  #readAt: number | undefined;
  #images: readonly ContainerImage[] | undefined;
  #version: string | undefined;

  constructor(options: NodeWatcherOptions) {
    this.#o = options;
  }

  /** What is cheap to find out, and reported at once. */
  urgency(): NodeUrgency {
    const held = new Set(this.#o.pressure());
    return {
      troubles: this.#o.troubles(),
      pressure: new Set<PressureType>(pressureTypes.filter((type) => held.has(type))),
    };
  }

  /** Everything. Rejects only when aborted. */
  async situation(signal: AbortSignal): Promise<NodeSituation> {
    const { handlers, features, volumesInUse } = this.#o;
    const [addresses] = await Promise.all([this.#addresses(signal), this.#askRuntime(signal)]);
    return {
      ...this.urgency(),
      handlers: nodeHandlers(handlers()),
      supplementalGroupsPolicy: features()?.supplementalGroupsPolicy,
      runtimeVersion: this.#version,
      images: this.#images,
      addresses,
      volumesInUse: volumesInUse?.(),
      ...(this.#o.devices ? { devices: this.#o.devices() } : {}),
    };
  }

  async #addresses(signal: AbortSignal): Promise<readonly NodeAddress[] | undefined> {
    const found = await this.#try("the node's addresses cannot be found out", signal, () => this.#o.addresses(signal));
    if (!found) return undefined;
    if ("addresses" in found) return found.addresses;
    this.#complain("the node has no address", found.error);
    return undefined;
  }

  async #askRuntime(signal: AbortSignal): Promise<void> {
    const { clock, runtime, images, runtimeName, maxImages } = this.#o;
    const now = clock.now();
    if (this.#readAt !== undefined && Math.abs(now - this.#readAt) < freshMs) return;
    const [list, version] = await Promise.all([
      this.#try("images cannot be listed for the node's status", signal, () => images.listImages({ signal })),
      this.#try("the runtime does not tell its version", signal, () => runtime.version({ signal })),
    ]);
    if (list) this.#images = statusImages(list, maxImages);
    if (version) this.#version = `${runtimeName}://${plainVersion(version.runtimeVersion)}`;
    // Of a runtime that failed more is known as soon as it answers.
    if (list && version) this.#readAt = now;
  }

  async #try<T>(what: string, signal: AbortSignal, run: () => Promise<T>): Promise<T | undefined> {
    try {
      const result = await run();
      this.#complaints.delete(what);
      return result;
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      this.#complain(what, messageOf(thrown));
      return undefined;
    }
  }

  #complain(what: string, error: string): void {
    if (this.#complaints.get(what) !== error) this.#o.log.warn(what, { error });
    this.#complaints.set(what, error);
  }
}

/**
 * A runtime's version as the node's status has it: a semantic version as it is, of another one the numbers it begins
 * with, without a leading `v`; `Unknown` of what begins otherwise.
 */
export function plainVersion(text: string): string {
  const semantic = /^v?((?:0|[1-9]\d*)(?:\.(?:0|[1-9]\d*)){2}(?:-[\w.-]+)?(?:\+[\w.-]+)?)$/.exec(text.trim())?.[1];
  return semantic ?? /^v?(\d+(?:\.\d+)+)/.exec(text.trim())?.[1] ?? "Unknown";
}

/** The runtime's handlers as the node's status has them, by name. */
export function nodeHandlers(handlers: readonly RuntimeHandler[]): NodeRuntimeHandler[] {
  return [...handlers].sort((a, b) => a.name < b.name ? -1 : a.name > b.name ? 1 : 0).map(({ name, features }) => ({
    name,
    features: {
      recursiveReadOnlyMounts: features?.recursiveReadOnlyMounts ?? false,
      userNamespaces: features?.userNamespaces ?? false,
    },
  }));
}
