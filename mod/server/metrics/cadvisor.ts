import type { StatsSnapshot } from "../../../managers/stats/types.ts";
import { type Emit, groupFamilies, nodeDisk, type ShownGroup } from "./cadvisor_families.ts";
import { labelPairs, MetricsPage, type MetricType, numberText } from "./text.ts";

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
export function cadvisorPage(snapshot: StatsSnapshot | undefined, facts: MachineFacts): string {
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
  if (snapshot) groups(page, [...groupsOf(snapshot)]);
  return page.text();
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

/** Family by family: a page of 150 groups has some eight thousand lines, so they are put together without detours. */
function groups(page: MetricsPage, shown: readonly Labelled[]): void {
  const opened = shown.map(({ labels }) => ({ open: `{${labels},`, whole: `{${labels}} ` }));
  let name = "", labels = opened[0], lines: string[] = [];
  // Most values of a page have one time: it is put into words once.
  let time = 0, timeText = "";
  const emit: Emit = (value, more, at) => {
    if (value === undefined) return;
    if (at !== undefined && at !== time) [time, timeText] = [at, ` ${Math.floor(at)}\n`];
    const text = numberText(value), end = at === undefined ? "\n" : timeText;
    if (more === undefined) lines.push(name, labels?.whole ?? "", text, end);
    else lines.push(name, labels?.open ?? "", more, "} ", text, end);
  };
  for (const [family, [type, help, values]] of Object.entries(groupFamilies)) {
    [name, lines] = [family, []];
    shown.forEach((group, index) => {
      labels = opened[index];
      values(group, emit);
    });
    page.lines(name, type, help, lines);
  }
}
