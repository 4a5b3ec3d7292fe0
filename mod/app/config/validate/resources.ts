import { parseQuantity, type Quantity, quantityOf } from "../../../kube/quantity.ts";
import { parseBool } from "../flag_value.ts";
import { didYouMean } from "../nearest.ts";
import type { Context } from "./context.ts";

type OptionStage = "alpha" | "beta" | "stable";
const cpuOptions: Readonly<Record<string, OptionStage>> = {
  "full-pcpus-only": "stable",
  "strict-cpu-reservation": "stable",
  "prefer-align-cpus-by-uncorecache": "stable",
  "distribute-cpus-across-numa": "beta",
  "align-by-socket": "alpha",
  "distribute-cpus-across-cores": "alpha",
};
const topologyOptions: Readonly<Record<string, OptionStage>> = {
  "prefer-closest-numa-nodes": "stable",
  "max-allowable-numa-nodes": "stable",
};

/** CPU quota, swap and memory protection. */
export function checkResources(context: Context): void {
  const { config, gates, facts, written } = context;
  const period = config.cpuCFSQuotaPeriodMs;
  if (!gates.enabled("CustomCPUCFSQuotaPeriod") && period !== 100) {
    context.refuse("cpuCFSQuotaPeriod", "needs feature gate CustomCPUCFSQuotaPeriod unless it is 100ms");
  } else if (!(period >= 1 && period <= 1000)) context.refuse("cpuCFSQuotaPeriod", "must be from 1ms to 1s");
  if (config.memorySwap.swapBehavior !== "" && !gates.enabled("NodeSwap")) {
    context.refuse("memorySwap.swapBehavior", "needs feature gate NodeSwap");
  }
  if (config.memorySwap.swapBehavior === "LimitedSwap" && facts.cgroupVersion === 1) {
    context.refuse("memorySwap.swapBehavior", "needs cgroup v2; use NoSwap on this node");
  }
  if (facts.cgroupVersion === 1) {
    if (config.failCgroupV1) {
      context.refuse(
        "failCgroupV1",
        "forbids this node, which uses cgroup v1; move it to cgroup v2 or set the field to false",
      );
    }
    if (config.singleProcessOOMKill === false) {
      context.refuse("singleProcessOOMKill", "is not possible on cgroup v1; remove it");
    }
  }
  const factor = config.memoryThrottlingFactor;
  if (!(factor > 0 && factor <= 1)) context.refuse("memoryThrottlingFactor", "must be more than 0 and at most 1");
  if (config.memoryReservationPolicy === "TieredReservation" && !gates.enabled("MemoryQoS")) {
    context.refuse("memoryReservationPolicy", "needs feature gate MemoryQoS");
  }
  if (Object.keys(written.qosReserved ?? {}).length > 0 && !gates.enabled("QOSReserved")) {
    context.warnings.push("qosReserved (--qos-reserved): has no effect without feature gate QOSReserved");
  }
  if (config.systemCgroups !== "" && (written.cgroupRoot ?? "") === "") {
    context.refuse("systemCgroups", "needs cgroupRoot (--cgroup-root)");
  }
  if (config.systemCgroups === "/") context.refuse("systemCgroups", "must not be /");
  if (
    config.kubeletCgroups !== "" && config.kubeReservedCgroup !== "" &&
    !config.kubeletCgroups.startsWith(config.kubeReservedCgroup)
  ) {
    context.warnings.push(
      "kubeletCgroups (--kubelet-cgroups) is not within kubeReservedCgroup (--kube-reserved-cgroup); that is not supported",
    );
  }
  checkEnforcement(context);
  checkReservedCpus(context);
  checkManagers(context);
  checkReservedMemory(context);
}

const enforcements = [
  "none",
  "pods",
  "system-reserved",
  "system-reserved-compressible",
  "kube-reserved",
  "kube-reserved-compressible",
];

function checkEnforcement(context: Context): void {
  const { config } = context;
  const path = "enforceNodeAllocatable";
  const list = config.enforceNodeAllocatable;
  for (const plain of ["system-reserved", "kube-reserved"]) {
    if (list.includes(plain) && list.includes(`${plain}-compressible`)) {
      context.refuse(path, `can't have both ${plain} and ${plain}-compressible; keep one`);
    }
  }
  for (const [index, entry] of list.entries()) {
    if (list.indexOf(entry) !== index) {
      context.refuse(path, `has ${entry} twice`);
      continue;
    }
    if (!enforcements.includes(entry)) {
      context.refuse(path, `has ${JSON.stringify(entry.slice(0, 80))}; use ${enforcements.join(", ")}`);
      continue;
    }
    if (entry === "none") {
      if (list.length > 1) context.refuse(path, "can have nothing beside none");
      continue;
    }
    if (entry.startsWith("system-reserved") && config.systemReservedCgroup === "") {
      context.refuse(path, `needs systemReservedCgroup (--system-reserved-cgroup) for ${entry}`);
    }
    if (entry.startsWith("kube-reserved") && config.kubeReservedCgroup === "") {
      context.refuse(path, `needs kubeReservedCgroup (--kube-reserved-cgroup) for ${entry}`);
    }
    if (!config.cgroupsPerQOS) {
      context.refuse(path, `needs cgroupsPerQOS: true (--cgroups-per-qos) for ${entry}; or set it to [none]`);
    }
  }
}

function checkReservedCpus(context: Context): void {
  const { config, facts, written } = context;
  if ((written.reservedSystemCPUs ?? "") === "") return;
  if (config.systemReservedCgroup !== "" || config.kubeReservedCgroup !== "") {
    context.refuse(
      "reservedSystemCPUs",
      "can't be used with systemReservedCgroup (--system-reserved-cgroup) or kubeReservedCgroup (--kube-reserved-cgroup)",
    );
  }
  const online = facts.onlineCpus;
  const missing = online === undefined ? [] : config.reservedSystemCPUs.filter((cpu) => !online.includes(cpu));
  if (missing.length > 0) {
    context.refuse("reservedSystemCPUs", `has CPUs that are not online: ${missing.slice(0, 20).join(",")}`);
  }
}

function checkOptions(context: Context, field: "cpuManagerPolicyOptions" | "topologyManagerPolicyOptions"): void {
  const cpu = field === "cpuManagerPolicyOptions";
  const known = cpu ? cpuOptions : topologyOptions;
  const gate = cpu ? "CPUManagerPolicy" : "TopologyManagerPolicy";
  for (const [name, text] of Object.entries(context.config[field])) {
    const stage = Object.hasOwn(known, name) ? known[name] : undefined;
    if (stage === undefined) {
      context.refuseText(
        field,
        `unknown option ${JSON.stringify(name.slice(0, 80))}${didYouMean(name, Object.keys(known))}; use ${
          Object.keys(known).join(", ")
        }`,
      );
      continue;
    }
    const needed = stage === "stable" ? undefined : `${gate}${stage === "alpha" ? "Alpha" : "Beta"}Options`;
    if (needed !== undefined && !context.gates.enabled(needed)) {
      context.refuseText(field, `${name} needs feature gate ${needed}`);
    }
    if (name === "max-allowable-numa-nodes") {
      if (!/^\d{1,4}$/.test(text) || Number(text) < 8) {
        context.refuseText(field, `${name}=${text.slice(0, 40)} must be a whole number of at least 8`);
      }
      continue;
    }
    try {
      parseBool(text);
    } catch {
      context.refuseText(field, `${name}=${text.slice(0, 40)} must be true or false`);
    }
  }
}

function checkManagers(context: Context): void {
  const { config } = context;
  checkOptions(context, "cpuManagerPolicyOptions");
  checkOptions(context, "topologyManagerPolicyOptions");
  if (config.cpuManagerPolicy === "none" && Object.keys(config.cpuManagerPolicyOptions).length > 0) {
    context.refuse(
      "cpuManagerPolicyOptions",
      "has no meaning with cpuManagerPolicy none; remove it or set the policy to static",
    );
  }
  const options = config.cpuManagerPolicyOptions;
  const on = (name: string) => Object.hasOwn(options, name) && /^(1|t|T|TRUE|true|True)$/.test(options[name] ?? "");
  if (on("full-pcpus-only") && on("distribute-cpus-across-cores")) {
    context.refuseText(
      "cpuManagerPolicyOptions",
      "full-pcpus-only and distribute-cpus-across-cores exclude each other; keep one",
    );
  }
  const cpu = (config.systemReserved.cpu?.nano ?? 0n) + (config.kubeReserved.cpu?.nano ?? 0n);
  if (config.cpuManagerPolicy === "static" && cpu <= 0n) {
    context.refuse(
      "cpuManagerPolicy",
      "needs reserved CPU above 0; set cpu in systemReserved or kubeReserved, or reservedSystemCPUs",
    );
  }
}

function checkReservedMemory(context: Context): void {
  const { config } = context;
  const seen = new Set<string>();
  let total = 0n;
  for (const { numaNode, limits } of config.reservedMemory) {
    for (const [type, text] of Object.entries(limits ?? {})) {
      const at = `node ${numaNode}, ${type.slice(0, 80)}`;
      if (type !== "memory" && !type.startsWith("hugepages-")) {
        context.refuseText("reservedMemory", `${at}: the type must be memory or hugepages-SIZE`);
      }
      const quantity = parseQuantity(text);
      if (quantity.nano === 0n) context.refuseText("reservedMemory", `${at}: must not be 0`);
      if (seen.has(`${numaNode}/${type}`)) context.refuseText("reservedMemory", `${at}: is given twice`);
      seen.add(`${numaNode}/${type}`);
      if (type === "memory") total += quantity.nano;
    }
  }
  if (config.memoryManagerPolicy !== "Static") return;
  const eviction = evictionMemory(context);
  if (eviction === undefined) return;
  const wanted = (config.systemReserved.memory?.nano ?? 0n) + (config.kubeReserved.memory?.nano ?? 0n) + eviction.nano;
  if (total !== wanted || total === 0n) {
    context.refuseText(
      "reservedMemory",
      `with memoryManagerPolicy Static its memory, ${
        total / 1_000_000_000n
      } bytes, must equal systemReserved + kubeReserved + the hard eviction threshold, ${
        wanted / 1_000_000_000n
      } bytes, and not be 0`,
    );
  }
}

/** The hard memory threshold; undefined when it is a share of a memory whose size is not known. */
function evictionMemory(context: Context): Quantity | undefined {
  const { config, facts } = context;
  const threshold = config.evictionThresholds.find((t) => t.signal === "memory.available" && t.gracePeriodMs === 0);
  if (threshold === undefined) return quantityOf(0);
  if ("quantity" in threshold.value) return threshold.value.quantity;
  if (facts.memoryBytes === undefined) return undefined;
  return quantityOf(Math.floor(facts.memoryBytes * threshold.value.share));
}
