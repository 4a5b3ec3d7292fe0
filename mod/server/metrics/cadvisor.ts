import type { StatsSnapshot } from "../../../managers/stats/types.ts";
import { type Emit, groupFamilies, type GroupFamily, nodeDisk, type ShownGroup } from "./cadvisor_families.ts";
import { bytesOf, LineBytes } from "./line_bytes.ts";
import { familyHead, labelPairs, MetricsPage, type MetricType, numberText } from "./text.ts";

/** Facts of the machine that do not change, for the labels of its metrics. */
export interface MachineFacts {
  readonly machineId: string;
  readonly systemUuid: string;
  readonly bootId: string;
  readonly kernelVersion: string;
  readonly osVersion: string;
  /** Cores that are no siblings of one another, and packages; undefined when the kernel does not tell. */
  readonly physicalCores?: number;
  readonly sockets?: number;
  /** Above packages; only some machines have any. */
  readonly books?: number;
  readonly drawers?: number;
}

/** Families of the machine and of the page itself. */
const families: Readonly<Record<string, readonly [MetricType, string]>> = {
  cadvisor_version_info: ["gauge", "Versions of the kernel and the system; always 1"],
  container_scrape_error: ["gauge", "1 when the statistics could not be collected, else 0"],
  machine_cpu_cores: ["gauge", "Logical CPUs"],
  machine_cpu_physical_cores: ["gauge", "Cores"],
  machine_cpu_sockets: ["gauge", "CPU packages"],
  machine_cpu_books: ["gauge", "CPU books"],
  machine_cpu_drawers: ["gauge", "CPU drawers"],
  machine_memory_bytes: ["gauge", "Memory, bytes"],
  machine_swap_bytes: ["gauge", "Swap, bytes"],
  machine_nvm_capacity: ["gauge", "Non-volatile memory by mode, bytes; always 0: not looked for"],
  machine_nvm_avg_power_budget_watts: ["gauge", "Power budget of non-volatile memory; always 0: not looked for"],
  machine_scrape_error: ["gauge", "1 when the machine could not be looked at, else 0"],
};

/** Every family that the page can have, with its type. */
export const cadvisorFamilies: ReadonlyMap<string, MetricType> = new Map([
  ...Object.entries(families).map(([name, [type]]) => [name, type] as const),
  ...Object.entries(groupFamilies).map(([name, [type]]) => [name, type] as const),
]);

/** The page /metrics/cadvisor (metrics.md section 5). @param snapshot undefined when the collection failed */
export function cadvisorPage(snapshot: StatsSnapshot | undefined, facts: MachineFacts): Uint8Array<ArrayBuffer> {
  const page = new MetricsPage();
  for (const [name, [type, help]] of Object.entries(families)) page.family(name, type, help);
  page.sample("container_scrape_error", {}, snapshot ? 0 : 1);
  page.sample("cadvisor_version_info", {
    cadvisorRevision: "",
    cadvisorVersion: "",
    dockerVersion: "",
    kernelVersion: facts.kernelVersion,
    osVersion: facts.osVersion,
  }, 1);
  machine(page, snapshot, facts);
  return assembled(page, snapshot ? [...groupsOf(snapshot)] : []);
}

function machine(page: MetricsPage, snapshot: StatsSnapshot | undefined, facts: MachineFacts): void {
  page.sample("machine_scrape_error", {}, snapshot ? 0 : 1);
  const labels = { boot_id: facts.bootId, machine_id: facts.machineId, system_uuid: facts.systemUuid };
  const at = snapshot?.at;
  page.sample("machine_cpu_physical_cores", labels, facts.physicalCores, at);
  page.sample("machine_cpu_sockets", labels, facts.sockets, at);
  page.sample("machine_cpu_books", labels, facts.books ?? 0, at);
  page.sample("machine_cpu_drawers", labels, facts.drawers ?? 0, at);
  for (const mode of ["app_direct_mode", "memory_mode"]) {
    page.sample("machine_nvm_capacity", { ...labels, mode }, 0, at);
  }
  page.sample("machine_nvm_avg_power_budget_watts", labels, 0, at);
  if (!snapshot) return;
  const { cpus, memoryCapacity, swapCapacity } = snapshot.node;
  page.sample("machine_cpu_cores", labels, cpus, at);
  page.sample("machine_memory_bytes", labels, memoryCapacity, at);
  page.sample("machine_swap_bytes", labels, swapCapacity, at);
}

interface Labelled extends ShownGroup {
  /** The base labels as text, without braces. */
  readonly labels: string;
}

const noLabels = { container: "", id: "", image: "", name: "", namespace: "", pod: "" };

function* groupsOf({ node, pods }: StatsSnapshot): Iterable<Labelled> {
  const labelled = (id: string, more: Partial<typeof noLabels> = {}) => labelPairs({ ...noLabels, ...more, id });
  yield {
    labels: labelled("/"),
    startedAt: node.startedAt,
    sample: node.sample,
    network: node.network,
    disks: node.disks?.map(nodeDisk),
  };
  for (const { group, startedAt, sample } of node.system) yield { labels: labelled(group), startedAt, sample };
  for (const { name: pod, namespace, group, startedAt, sample, sandbox, network, containers } of pods) {
    if (group !== undefined) yield { labels: labelled(group, { namespace, pod }), startedAt, sample };
    if (sandbox) {
      const labels = labelled(sandbox.group, { name: sandbox.id, namespace, pod });
      yield { labels, startedAt, sample: sandbox.sample, network };
    }
    for (const { name: container, id, image, group: own, startedAt: made, sample: each, rootfs } of containers) {
      if (own === undefined) continue;
      const labels = labelled(own, { container, image, name: id, namespace, pod });
      yield {
        labels,
        startedAt: made,
        sample: each,
        // The runtime tells what a layer takes, but not on which device.
        ...(rootfs ? { disks: [{ ...rootfs, device: "" }] } : {}),
      };
    }
  }
}

/** Puts the families of groups between the page's others, by name, all as bytes. */
function assembled(page: MetricsPage, shown: readonly Labelled[]): Uint8Array<ArrayBuffer> {
  const out = new LineBytes();
  const others = page.parts();
  let next = 0;
  const othersBefore = (name: string | undefined) => {
    for (; next < others.length && (name === undefined || (others[next]?.[0] ?? "") < name); next++) {
      out.text(others[next]?.[1] ?? "");
    }
  };
  const writer = new GroupWriter(out, shown);
  for (const name of Object.keys(groupFamilies).sort()) {
    othersBefore(name);
    const family = groupFamilies[name];
    if (family) writer.family(name, family);
  }
  othersBefore(undefined);
  return out.done();
}

/** Writes the lines of groups: a page of 150 groups has some nine thousand. */
class GroupWriter {
  readonly #out: LineBytes;
  readonly #groups: readonly { readonly shown: Labelled; readonly labels: Uint8Array }[];
  /** What stands between a group's labels and the value: few texts, used again and again. */
  readonly #ends = new Map<string, Uint8Array>();

  constructor(out: LineBytes, shown: readonly Labelled[]) {
    this.#out = out;
    this.#groups = shown.map((each) => ({ shown: each, labels: bytesOf(`{${each.labels}`) }));
  }

  family(name: string, [type, help, values]: GroupFamily): void {
    const out = this.#out;
    const head = bytesOf(familyHead(name, type, help)), start = bytesOf(name), plain = this.#end("");
    let labels: Uint8Array | undefined, begun = false;
    // Most values of a page have one time: it is put into words once.
    let time = 0, timeText = "";
    const emit: Emit = (value, more, at) => {
      if (value === undefined || !labels) return;
      if (!begun) out.bytes(head);
      begun = true;
      out.bytes(start);
      out.bytes(labels);
      out.bytes(more === undefined ? plain : this.#end(more));
      out.text(numberText(value));
      if (at !== undefined && at !== time) [time, timeText] = [at, ` ${Math.floor(at)}\n`];
      out.text(at === undefined ? "\n" : timeText);
    };
    for (const group of this.#groups) {
      labels = group.labels;
      values(group.shown, emit);
    }
  }

  #end(more: string): Uint8Array {
    let end = this.#ends.get(more);
    if (!end) this.#ends.set(more, end = bytesOf(more === "" ? "} " : `,${more}} `));
    return end;
  }
}
