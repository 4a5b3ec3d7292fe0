import type { Clock } from "../../mod/base/clock.ts";
import type { DeviceResources } from "../node/types.ts";
import type { Plugin } from "./plugin.ts";
import type { Device, ResourceDevices } from "./types.ts";

/** How long a resource outlives its plugin, milliseconds (features.md G2). */
const graceMs = 5 * 60_000;
const healthy = "Healthy";

interface Stock {
  devices: ReadonlyMap<string, Device>;
  /** Ids that can be given; none while the plugin is away. */
  healthy: Set<string>;
  /** How many there are, also those that can't be given. */
  count: number;
  /** Undefined while it is away. */
  plugin: Plugin | undefined;
  /** Of the plugin that was there last; undefined since the agent's start without one. */
  options: Plugin["options"] | undefined;
  /** When the plugin went; undefined while it is there. */
  stoppedAt: number | undefined;
}

/** What plugins have, by resource. */
export class Inventory {
  readonly #clock: Clock;
  readonly #stocks = new Map<string, Stock>();
  /** Plugins that have not told their devices yet are not counted. */
  readonly #met = new Map<string, Plugin>();
  readonly #removed = new Set<string>();

  constructor(clock: Clock) {
    this.#clock = clock;
  }

  /** A resource of an earlier life of the agent: nothing is there until its plugin comes again. */
  restore(resource: string): void {
    this.#stocks.set(resource, this.#empty(undefined));
  }

  /** A plugin has come; one of the same resource is replaced and given back. */
  connect(plugin: Plugin): Plugin | undefined {
    const before = this.#met.get(plugin.resource);
    this.#met.set(plugin.resource, plugin);
    const stock = this.#stocks.get(plugin.resource);
    if (stock) Object.assign(stock, { plugin, options: plugin.options, stoppedAt: undefined });
    return before;
  }

  /** Takes what a plugin tells. Returns the devices whose health is another now, or undefined when it isn't the resource's. */
  update(plugin: Plugin, list: readonly Device[]): Set<string> | undefined {
    const { resource, options } = plugin;
    if (this.#met.get(resource) !== plugin) return undefined;
    const before = this.#stocks.get(resource)?.devices;
    const changed = new Set(list.filter(({ id, health }) => before?.get(id)?.health !== health).map(({ id }) => id));
    this.#removed.delete(resource);
    this.#stocks.set(resource, {
      devices: new Map(list.map((device) => [device.id, device])),
      healthy: new Set(list.filter(({ health }) => health === healthy).map(({ id }) => id)),
      count: list.length,
      plugin,
      options,
      stoppedAt: undefined,
    });
    return changed;
  }

  /** The plugin has gone; false when another one of its resource is there already. */
  disconnect(plugin: Plugin): boolean {
    const { resource } = plugin;
    if (this.#met.get(resource) !== plugin) return false;
    this.#met.delete(resource);
    const stock = this.#stocks.get(resource) ?? this.#empty(plugin.options);
    stock.healthy.clear();
    stock.plugin = undefined;
    stock.stoppedAt = this.#clock.now();
    this.#stocks.set(resource, stock);
    return true;
  }

  plugins(): Iterable<Plugin> {
    return this.#met.values();
  }

  pluginOf(resource: string): Plugin | undefined {
    return this.#met.get(resource);
  }

  get(resource: string): Readonly<Stock> | undefined {
    return this.#stocks.get(resource);
  }

  health(resource: string, id: string): boolean {
    const device = this.#stocks.get(resource)?.devices.get(id);
    return device === undefined || device.health === healthy;
  }

  /** Capacity and allocatable; drops the resources whose plugin has not come back, and says that by `onDropped`. */
  resources(onDropped: () => void): DeviceResources {
    const now = this.#clock.now();
    let dropped = false;
    for (const [resource, { stoppedAt }] of this.#stocks) {
      if (stoppedAt === undefined || now - stoppedAt <= graceMs) continue;
      this.#stocks.delete(resource);
      this.#removed.add(resource);
      dropped = true;
    }
    if (dropped) onDropped();
    const stocks = [...this.#stocks];
    return {
      capacity: Object.fromEntries(stocks.map(([resource, { count }]) => [resource, String(count)])),
      allocatable: Object.fromEntries(stocks.map(([resource, stock]) => [resource, String(stock.healthy.size)])),
      removed: [...this.#removed],
    };
  }

  /** Ids of the healthy devices by resource. */
  registered(): Record<string, string[]> {
    return Object.fromEntries([...this.#stocks].map(([resource, stock]) => [resource, [...stock.healthy]]));
  }

  allocatable(): ResourceDevices[] {
    return [...this.#stocks].map(([resource, stock]) => ({
      resource,
      devices: [...stock.devices.values()].filter(({ id }) => stock.healthy.has(id)),
    }));
  }

  #empty(options: Stock["options"]): Stock {
    return {
      devices: new Map(),
      healthy: new Set(),
      count: 0,
      plugin: undefined,
      options,
      stoppedAt: this.#clock.now(),
    };
  }
}
