import { isIP } from "node:net";
import { psiThresholds } from "../../../../managers/eviction/thresholds.ts";
import { messageOf } from "../../../base/errors.ts";
import { isSubdomain } from "../../../kube/validation/names.ts";
import { badLabelValue, badQualifiedName, badTaint } from "../taints.ts";
import type { Context } from "./context.ts";

const labelKeys = new Set([
  "kubernetes.io/hostname",
  "kubernetes.io/os",
  "kubernetes.io/arch",
  "beta.kubernetes.io/os",
  "beta.kubernetes.io/arch",
  "beta.kubernetes.io/instance-type",
  "node.kubernetes.io/instance-type",
  "topology.kubernetes.io/zone",
  "topology.kubernetes.io/region",
  "failure-domain.beta.kubernetes.io/zone",
  "failure-domain.beta.kubernetes.io/region",
]);
const labelNamespaces = ["kubelet.kubernetes.io", "node.kubernetes.io"];

function within(namespace: string, parent: string): boolean {
  return namespace === parent || namespace.endsWith(`.${parent}`);
}

/** Bytes; with less, every look would rotate. */
const leastLogBudget = 65_536;

/** A label of Kubernetes' own namespaces that a node must not give itself (contract config.md section 3). */
function isForbiddenLabel(key: string): boolean {
  const slash = key.indexOf("/");
  const namespace = slash < 0 ? "" : key.slice(0, slash);
  if (!within(namespace, "kubernetes.io") && !within(namespace, "k8s.io")) return false;
  return !labelKeys.has(key) && !labelNamespaces.some((allowed) => within(namespace, allowed));
}

/** The flags that are no fields, and what the node registers with. */
export function checkFlags(context: Context): void {
  const { flags, config, problems } = context;
  for (const [key, value] of Object.entries(flags.nodeLabels)) {
    const name = `--node-labels: ${JSON.stringify(key.slice(0, 80))}`;
    if (isForbiddenLabel(key)) {
      problems.push(
        `${name} is in a namespace of Kubernetes; use the prefix ${labelNamespaces.join(" or ")}, one of ${
          [...labelKeys].join(", ")
        }, or another namespace`,
      );
    }
    const badKey = badQualifiedName(key);
    if (badKey !== undefined) problems.push(`${name} ${badKey}`);
    const badValue = badLabelValue(value);
    if (badValue !== undefined) problems.push(`${name}: value ${JSON.stringify(value.slice(0, 80))} ${badValue}`);
  }
  const badName = badNodeName(flags.hostnameOverride);
  if (badName !== undefined) problems.push(`--hostname-override: ${badName}`);
  const nodeIP = badNodeIP(flags.nodeIP);
  if (nodeIP !== undefined) problems.push(`--node-ip: ${JSON.stringify(flags.nodeIP.slice(0, 80))} ${nodeIP}`);
  try {
    psiThresholds(flags.denoletEvictionPsi);
  } catch (thrown) {
    problems.push(`--denolet-eviction-psi: ${messageOf(thrown)}`);
  }
  if (flags.denoletLogBudgetBytes !== 0 && !(flags.denoletLogBudgetBytes >= leastLogBudget)) {
    problems.push(`--denolet-log-budget: ${flags.denoletLogBudgetBytes} bytes; give 64Ki or more, or 0 for no limit`);
  }
  if (!["", "external"].includes(flags.cloudProvider)) {
    problems.push(`--cloud-provider: ${JSON.stringify(flags.cloudProvider.slice(0, 80))} must be external or left out`);
  }
  if (flags.exitOnLockContention && flags.lockFile === "") {
    problems.push("--exit-on-lock-contention: needs --lock-file");
  }
  config.registerWithTaints.forEach((taint, index) => {
    const problem = badTaint(taint);
    if (problem !== undefined) context.refuseText("registerWithTaints", `taint ${index}: ${problem}`);
    if (taint.timeAdded !== undefined) {
      context.refuseText("registerWithTaints", `taint ${index}: timeAdded must not be set; remove it`);
    }
  });
}

/** What is wrong with a node's name as it is given; undefined for nothing, and for a name that is left to the machine. */
function badNodeName(text: string): string | undefined {
  const name = text.trim().toLowerCase();
  if (text === "" || isSubdomain(name)) return undefined;
  const shown = JSON.stringify(text.slice(0, 80));
  return `${shown} cannot be a node's name; give letters, digits, - and ., with a letter or digit at both ends of each ` +
    `part, 253 characters at most, or leave it out`;
}

function badNodeIP(text: string): string | undefined {
  if (text === "") return undefined;
  const addresses = text.split(",").map((address) => address.trim());
  const families = addresses.map((address) => isIP(address));
  if (families.includes(0)) return "must be an IP address, or an IPv4 and an IPv6 address with a comma between";
  if (addresses.length === 1) return undefined;
  if (addresses.length > 2 || families[0] === families[1]) return "must be one address of each family";
  return addresses.some((address) => address === "0.0.0.0" || address === "::")
    ? "must not have 0.0.0.0 or :: in a pair"
    : undefined;
}
