import {
  formatQuantity,
  milliQuantityOf,
  milliValueBig,
  parseQuantity,
  type Quantity,
  quantityOf,
  valueBig,
} from "../../mod/kube/quantity.ts";

/** What the machine has. Bytes, whole CPUs. */
export interface MachineCapacity {
  readonly memory: number;
  readonly cpus: number;
  /** Bytes of the file system that the root directory is on; undefined where pods are not held to any (localStorageCapacityIsolation). */
  readonly ephemeralStorage?: number;
  /** Bytes of a page, and of all pages of that size; none when not given. */
  readonly hugePages?: readonly { readonly size: number; readonly total: number }[];
}

/** An amount that is fixed, or a share (0 to 1) of the whole. */
export type Amount = { readonly quantity: Quantity } | { readonly share: number };

/** What the configuration takes away: reservations by resource, hard eviction thresholds by signal. */
export interface Reservations {
  readonly systemReserved: Readonly<Record<string, Quantity>>;
  readonly kubeReserved: Readonly<Record<string, Quantity>>;
  readonly evictionHard: Readonly<Record<string, Amount>>;
  readonly maxPods: number;
  readonly podsPerCore: number;
}

/** Which hard eviction signal counts against which resource (runtime-contract.md section 19). */
const signalOf: Readonly<Record<string, string>> = {
  memory: "memory.available",
  "ephemeral-storage": "nodefs.available",
};

function evictionAmount(value: Amount | undefined, capacity: bigint): bigint {
  if (value === undefined) return 0n;
  if ("quantity" in value) return valueBig(value.quantity);
  // The reference has percentages in single precision, which shows in the bytes that are left.
  return BigInt(Math.floor(Number(capacity) * Math.fround(value.share)));
}

/** The node's capacity as quantities by resource. */
export function nodeCapacity(
  machine: MachineCapacity,
  config: Pick<Reservations, "maxPods" | "podsPerCore">,
): Record<string, string> {
  const perCore = config.podsPerCore > 0 ? machine.cpus * config.podsPerCore : config.maxPods;
  const hugePages = (machine.hugePages ?? []).map(({ size, total }) => [
    `hugepages-${formatQuantity(quantityOf(size, "BinarySI"))}`,
    formatQuantity(quantityOf(total, "BinarySI")),
  ]);
  return {
    cpu: formatQuantity(quantityOf(machine.cpus)),
    ...(machine.ephemeralStorage === undefined
      ? {}
      : { "ephemeral-storage": formatQuantity(quantityOf(machine.ephemeralStorage, "BinarySI")) }),
    memory: formatQuantity(quantityOf(machine.memory, "BinarySI")),
    pods: String(Math.min(perCore, config.maxPods)),
    ...Object.fromEntries(hugePages),
  };
}

/**
 * What pods may have: capacity less system and kube reservations and the hard eviction thresholds, never below zero;
 * the number of pods is not reduced, and memory by what huge pages hold of it (runtime-contract.md section 19).
 */
export function nodeAllocatable(machine: MachineCapacity, config: Reservations): Record<string, string> {
  const capacity = nodeCapacity(machine, config);
  const result: Record<string, string> = {};
  for (const [resource, text] of Object.entries(capacity)) {
    if (resource === "pods") {
      result[resource] = text;
      continue;
    }
    const reserved = [config.systemReserved[resource], config.kubeReserved[resource]].filter((r) => r !== undefined);
    if (resource === "cpu") {
      const left = reserved.reduce(
        (sum, r) => sum - milliValueBig(r),
        milliValueBig(parseQuantity(text)),
      );
      result[resource] = formatQuantity(milliQuantityOf(left < 0n ? 0n : left));
      continue;
    }
    const whole = valueBig(parseQuantity(text));
    const kept = evictionAmount(config.evictionHard[signalOf[resource] ?? ""], whole);
    const huge = resource === "memory" ? BigInt((machine.hugePages ?? []).reduce((sum, p) => sum + p.total, 0)) : 0n;
    const left = reserved.reduce((sum, r) => sum - valueBig(r), whole - kept - huge);
    result[resource] = formatQuantity(quantityOf(left < 0n ? 0n : left, "BinarySI"));
  }
  return result;
}
