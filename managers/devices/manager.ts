import { KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Clock } from "../../mod/base/clock.ts";
import type { GrpcConnect } from "../../mod/base/grpc_client.ts";
import type { Host } from "../../mod/base/host.ts";
import { isMissing } from "../../mod/base/host_error.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Scope } from "../../mod/base/scope.ts";
import { podFullName } from "../../mod/kube/pod.ts";
import { compareQuantities, parseQuantity, quantityOf, tryParseQuantity, valueBig } from "../../mod/kube/quantity.ts";
import type { BoundPod, Container, ResourceStatus } from "../../mod/kube/types.ts";
import type { PluginOptions } from "../../mod/pod/config/container.ts";
import type { DeviceResources } from "../node/types.ts";
import { Assignments } from "./assignments.ts";
import { checkpointName, decodeCheckpoint, encodeCheckpoint } from "./checkpoint.ts";
import { chooseDevices, reusableBy } from "./choose.ts";
import { Inventory } from "./inventory.ts";
import { joinOptions } from "./options.ts";
import { Plugin } from "./plugin.ts";
import type { DevicePods, Devices, ResourceDevices } from "./types.ts";

export interface DeviceManagerOptions {
  readonly host: Pick<Host, "readText" | "write">;
  /** `<root>/device-plugins`. */
  readonly dir: string;
  readonly connect: GrpcConnect;
  readonly clock: Clock;
  readonly log: Logger;
  /** Owns the connections to plugins. */
  readonly scope: Scope;
  /** Whether statuses of pods show the health of their devices (gate ResourceHealthStatus). */
  readonly showHealth: boolean;
  /** Told, in milliseconds, of each Allocate, also of one that failed. */
  readonly onAllocated?: ((resource: string, ms: number) => void) | undefined;
}

/** Gives pods the devices of device plugins (features.md G1 to G6). */
export class DeviceManager implements Devices {
  readonly #o: DeviceManagerOptions;
  readonly #inventory: Inventory;
  readonly #assigned = new Assignments();
  /** Devices that are being given: by resource, how many times each. */
  readonly #held = new Map<string, Map<string, number>>();
  readonly #path: string;
  #pods: DevicePods = { active: () => new Set(), sourcesReady: false, changed: () => {} };

  constructor(options: DeviceManagerOptions) {
    this.#o = options;
    this.#inventory = new Inventory(options.clock);
    this.#path = `${options.dir}/${checkpointName}`;
  }

  serve(pods: DevicePods): void {
    this.#pods = pods;
  }

  /** Reads what an earlier life of the agent has given. A file that can't be used is logged and done without. */
  async load(): Promise<void> {
    const { host, log } = this.#o;
    try {
      const { PodDeviceEntries: entries, RegisteredDevices: registered } = decodeCheckpoint(
        await host.readText(this.#path),
      );
      for (const entry of entries ?? []) this.#assigned.add(entry);
      for (const resource of Object.keys(registered ?? {})) this.#inventory.restore(resource);
    } catch (thrown) {
      if (isMissing(thrown)) return;
      log.error("what pods have of devices is not known for sure: their checkpoint cannot be used", {
        path: this.#path,
        error: messageOf(thrown),
      });
    }
  }

  /** Meets a plugin and follows it in the scope. Rejects when it can't be reached or does not tell its options. */
  async connect(resource: string, path: string): Promise<void> {
    const { connect, clock, log, scope } = this.#o;
    const plugin = await Plugin.meet({ resource, path, connect, clock, log, signal: scope.signal });
    this.#inventory.connect(plugin)?.[Symbol.dispose]();
    log.info("a device plugin has come", { resource, socket: path });
    scope.spawn(`device plugin ${resource}`, async () => {
      await plugin.follow((list) => {
        const changed = this.#inventory.update(plugin, list);
        if (!changed) return;
        log.detail(2, "devices", { resource, count: list.length });
        if (this.#o.showHealth) {
          for (const uid of this.#assigned.podsWith(resource, changed)) this.#pods.changed(uid);
        }
        this.#save();
      });
      this.#lose(plugin);
    });
  }

  /** Ends with the plugin of a resource. */
  disconnect(resource: string): void {
    const plugin = this.#inventory.pluginOf(resource);
    if (plugin) this.#lose(plugin);
  }

  #lose(plugin: Plugin): void {
    plugin[Symbol.dispose]();
    this.#inventory.disconnect(plugin);
  }

  resources(): DeviceResources {
    return this.#inventory.resources(() => this.#save());
  }

  wantedBy(pod: BoundPod): boolean {
    return [...pod.spec.initContainers ?? [], ...pod.spec.containers]
      .some((container) => this.#wanted(container).length > 0);
  }

  /** The resources of plugins that a container asks for: a request equals its limit. */
  #wanted(container: Container): { resource: string; count: number }[] {
    return Object.entries(container.resources?.limits ?? {}).flatMap(([resource, text]) => {
      if (!resource.includes("/")) return [];
      if (!this.#inventory.get(resource) && !this.#assigned.inUse().has(resource)) return [];
      const quantity = tryParseQuantity(text);
      const count = quantity ? Number(valueBig(quantity)) : 0;
      return count > 0 ? [{ resource, count }] : [];
    });
  }

  async allocate(pod: BoundPod, signal: AbortSignal): Promise<void> {
    for (const container of [...pod.spec.initContainers ?? [], ...pod.spec.containers]) {
      await this.#give(pod, container, signal);
    }
  }

  async #give(pod: BoundPod, container: Container, signal: AbortSignal): Promise<void> {
    const wanted = this.#wanted(container);
    if (wanted.length === 0) return;
    this.release();
    for (const { resource, count } of wanted) {
      const held: string[] = [];
      try {
        const ids = await this.#choose({ pod, container, resource, count, signal, onHold: (id) => held.push(id) });
        if (ids.length > 0) await this.#allocate({ pod, container, resource, ids, signal });
      } finally {
        for (const id of held) this.#hold(resource, id, -1);
      }
    }
  }

  /** The ids to be given; none when the container has its devices. */
  #choose(
    { pod, container, resource, count, signal, onHold }: {
      pod: BoundPod;
      container: Container;
      resource: string;
      count: number;
      signal: AbortSignal;
      onHold: (id: string) => void;
    },
  ): Promise<string[]> {
    const uid = pod.metadata.uid;
    const before = this.#assigned.ids(uid, container.name, resource);
    const fail = (message: string) => Promise.reject(new KubeletError("BadPod", message));
    if (before && before.length !== count) {
      return fail(
        `pod "${uid}" container "${container.name}" changed request for resource "${resource}" from ${before.length} to ${count}`,
      );
    }
    const stock = this.#inventory.get(resource);
    if (!stock) return fail(`cannot allocate unregistered device ${resource}`);
    if (stock.healthy.size === 0) {
      return fail(`no healthy devices present; cannot allocate unhealthy devices ${resource}`);
    }
    if (before) {
      return before.every((id) => stock.healthy.has(id))
        ? Promise.resolve([])
        : fail(`previously allocated devices are no longer healthy; cannot allocate unhealthy devices ${resource}`);
    }
    const reusable = reusableBy(
      pod,
      container.name,
      (name) =>
        [...this.#assigned.of(uid, name)].map(([of, { devices }]) => [of, devices.map(({ id }) => id)] as const),
    ).get(resource);
    const plugin = stock.plugin?.options.getPreferredAllocationAvailable ? stock.plugin : undefined;
    return chooseDevices({
      resource,
      needed: count,
      reusable: [...reusable ?? []],
      available: () => this.#free(resource),
      prefer: plugin && ((available, mustInclude, size) => plugin.prefer(available, mustInclude, size, signal)),
      hold: (id) => {
        this.#hold(resource, id, 1);
        onHold(id);
      },
    });
  }

  #free(resource: string): string[] {
    const used = this.#assigned.inUse().get(resource), held = this.#held.get(resource);
    return [...this.#inventory.get(resource)?.healthy ?? []].filter((id) => !used?.has(id) && !held?.has(id));
  }

  #hold(resource: string, id: string, by: 1 | -1): void {
    const held = this.#held.get(resource) ?? new Map<string, number>();
    const times = (held.get(id) ?? 0) + by;
    if (times > 0) held.set(id, times);
    else held.delete(id);
    this.#held.set(resource, held);
  }

  async #allocate(
    { pod, container, resource, ids, signal }: {
      pod: BoundPod;
      container: Container;
      resource: string;
      ids: readonly string[];
      signal: AbortSignal;
    },
  ): Promise<void> {
    const { clock, log } = this.#o;
    const stock = this.#inventory.get(resource);
    if (!stock) throw new KubeletError("BadPod", `unknown Device Plugin ${resource}`);
    if (!stock.plugin) throw new KubeletError("BadPod", `endpoint of ${resource} has been stopped`);
    const began = clock.now();
    const answer = await stock.plugin.allocate(ids, signal).finally(() =>
      this.#o.onAllocated?.(resource, clock.now() - began)
    );
    const nodes = (id: string) => this.#inventory.get(resource)?.devices.get(id)?.nodes ?? stock.devices.get(id)?.nodes;
    this.#assigned.set(pod.metadata.uid, container.name, resource, {
      devices: ids.map((id) => ({ id, nodes: nodes(id) ?? [] })),
      answer,
    });
    log.info("devices given", { pod: podFullName(pod), container: container.name, resource, devices: ids });
    await this.#write();
  }

  withGiven(allocatable: Readonly<Record<string, string>>): Record<string, string> {
    const more = [...this.#assigned.inUse()].flatMap(([resource, ids]) => {
      const now = parseQuantity(allocatable[resource] ?? "0");
      return compareQuantities(now, quantityOf(ids.size)) < 0 ? [[resource, String(ids.size)]] : [];
    });
    return { ...allocatable, ...Object.fromEntries(more) };
  }

  async containerOptions(
    pod: BoundPod,
    container: Container,
    signal: AbortSignal,
  ): Promise<PluginOptions | undefined> {
    const uid = pod.metadata.uid;
    const wanted = this.#wanted(container);
    for (const { resource } of wanted) {
      if (this.#inventory.get(resource)) continue;
      throw new KubeletError("BadPod", `endpoint not found in cache for a registered resource: ${resource}`);
    }
    // A pod that came before its plugin's resource was known has not been given any yet.
    const missing = wanted.some(({ resource }) => this.#assigned.ids(uid, container.name, resource) === undefined);
    if (missing && this.#pods.active().has(uid)) await this.#give(pod, container, signal);
    for (const { resource } of wanted) {
      const ids = this.#assigned.ids(uid, container.name, resource);
      const stock = this.#inventory.get(resource);
      if (!ids || !stock?.options?.preStartRequired) continue;
      if (!stock.plugin) throw new KubeletError("BadPod", `endpoint of ${resource} has been stopped`);
      await stock.plugin.preStart(ids, signal);
    }
    const answers = [...this.#assigned.of(uid, container.name).values()].map(({ answer }) => answer);
    return answers.length === 0 ? undefined : joinOptions(answers, this.#o.log);
  }

  health(podUid: string, container: string): ResourceStatus[] {
    if (!this.#o.showHealth) return [];
    return this.#assigned.listOf(podUid, container).map(({ resource, devices }) => ({
      name: resource,
      resources: devices.map(({ id }) => ({
        resourceID: id,
        health: this.#inventory.health(resource, id) ? "Healthy" : "Unhealthy",
      })),
    }));
  }

  given(podUid: string, container: string): ResourceDevices[] {
    return this.#assigned.listOf(podUid, container);
  }

  allocatable(): ResourceDevices[] {
    return this.#inventory.allocatable();
  }

  release(): void {
    if (this.#pods.sourcesReady) this.#assigned.keep(this.#pods.active());
  }

  /** Writes the checkpoint soon; a failure is logged. */
  #save(): void {
    this.#o.scope.spawn("checkpoint of devices", async () => {
      try {
        await this.#write();
      } catch (thrown) {
        this.#o.log.error("the checkpoint of devices cannot be written", {
          path: this.#path,
          error: messageOf(thrown),
        });
      }
    });
  }

  #last: Promise<void> = Promise.resolve();

  /** One write at a time; what comes meanwhile is written once more after it. */
  #write(): Promise<void> {
    const write = () =>
      this.#o.host.write(
        this.#path,
        encodeCheckpoint({
          PodDeviceEntries: this.#assigned.toEntries(),
          RegisteredDevices: this.#inventory.registered(),
        }),
        { mode: 0o600, atomic: true },
      );
    return this.#last = this.#last.then(write, write);
  }
}
