/** Values of a pod's own fields for variables and downwardAPI files (runtime-contract.md section 12). */
import { KubeletError } from "../../base/errors.ts";
import { compareQuantities, milliValueBig, parseQuantity, valueBig, zeroQuantity } from "../../kube/quantity.ts";
import type { BoundPod, Container, ResourceFieldSelector } from "../../kube/types.ts";
import { hasPodLevelResources } from "../resources.ts";

/** What only the running pod and its node can tell. Without it only the metadata can be read, as for volumes. */
export interface FieldContext {
  /** The pod's addresses as the runtime reports them. */
  readonly podIPs: readonly string[];
  /** The node's addresses, primary first. */
  readonly hostIPs: readonly string[];
}

const prefixPart = /^[a-z0-9]([-a-z0-9]*[a-z0-9])?(\.[a-z0-9]([-a-z0-9]*[a-z0-9])?)*$/;
const namePart = /^([A-Za-z0-9][-A-Za-z0-9_.]*)?[A-Za-z0-9]$/;

function isQualifiedName(name: string): boolean {
  const parts = name.split("/");
  const [prefix, last = ""] = parts.length === 2 ? parts : [undefined, parts[0]];
  return parts.length <= 2 && last.length <= 63 && namePart.test(last) &&
    (prefix === undefined || (prefix.length <= 253 && prefixPart.test(prefix)));
}

function refuse(message: string): never {
  throw new KubeletError("BadPod", message);
}

const shortEscapes: Readonly<Record<string, string>> = {
  "\x07": "\\a",
  "\b": "\\b",
  "\f": "\\f",
  "\n": "\\n",
  "\r": "\\r",
  "\t": "\\t",
  "\v": "\\v",
  '"': '\\"',
  "\\": "\\\\",
};
const needsEscape = /["\\]|[^\p{L}\p{M}\p{N}\p{P}\p{S} ]/gu;

/** A text in double quotes; what can't be printed is escaped as downwardAPI files do it. */
function quote(text: string): string {
  const escaped = text.toWellFormed().replace(needsEscape, (c) => {
    const short = shortEscapes[c];
    if (short !== undefined) return short;
    const code = c.codePointAt(0) ?? 0;
    const hex = (digits: number) => code.toString(16).padStart(digits, "0");
    return code < 0x20 || code === 0x7f ? `\\x${hex(2)}` : code < 0x10000 ? `\\u${hex(4)}` : `\\U${hex(8)}`;
  });
  return `"${escaped}"`;
}

/** Labels or annotations, one `key="value"` a line, sorted by key; no newline at the end. */
export function formatMap(map: Readonly<Record<string, string>> | undefined): string {
  return Object.entries(map ?? {}).sort(([a], [b]) => a < b ? -1 : 1).map(([k, v]) => `${k}=${quote(String(v))}`)
    .join("\n");
}

/** The addresses that a pod shows: the first of the node's primary family, then the first of the other. */
export function sortPodIPs(podIPs: readonly string[], nodeIPs: readonly string[]): string[] {
  const v6 = (ip: string) => ip.includes(":");
  const v6First = v6(nodeIPs[0] ?? "");
  const primary = podIPs.find((ip) => v6(ip) === v6First);
  const secondary = podIPs.find((ip) => v6(ip) !== v6First);
  return [primary, secondary].filter((ip) => ip !== undefined);
}

function subscripted(path: string): { map: string; key: string } | undefined {
  const open = path.indexOf("['");
  return open > 0 && path.endsWith("']") && path.length >= open + 4
    ? { map: path.slice(0, open), key: path.slice(open + 2, -2) }
    : undefined;
}

/**
 * The text of a field path. Without a context only `metadata` paths can be read (downwardAPI volumes).
 * Throws BadPod on a path that isn't one.
 */
export function resolveFieldPath(pod: BoundPod, path: string, ctx?: FieldContext): string {
  const { metadata, spec } = pod;
  const item = subscripted(path);
  if (item !== undefined) {
    const annotations = item.map === "metadata.annotations";
    if (!annotations && item.map !== "metadata.labels") refuse(`field label does not support subscript: ${path}`);
    // Annotation keys may have capitals in their prefix, label keys may not.
    if (!isQualifiedName(annotations ? item.key.toLowerCase() : item.key)) {
      refuse(`invalid key subscript in ${path}: it must be a name with an optional DNS subdomain and "/" before it`);
    }
    const map = (annotations ? metadata.annotations : metadata.labels) ?? {};
    return Object.hasOwn(map, item.key) ? String(map[item.key]) : "";
  }
  switch (path) {
    case "metadata.name":
      return metadata.name;
    case "metadata.namespace":
      return metadata.namespace;
    case "metadata.uid":
      return metadata.uid;
    case "metadata.labels":
      return formatMap(metadata.labels);
    case "metadata.annotations":
      return formatMap(metadata.annotations);
  }
  if (ctx === undefined) refuse(`unsupported fieldPath: ${path}`);
  switch (path) {
    case "spec.nodeName":
    case "spec.host":
      return spec.nodeName ?? "";
    case "spec.serviceAccountName":
      return spec.serviceAccountName ?? "";
    case "status.hostIP":
      return ctx.hostIPs[0] ?? refuse("no host IP is known yet for status.hostIP");
    case "status.hostIPs":
      return ctx.hostIPs.length > 0 ? ctx.hostIPs.join(",") : refuse("no host IP is known yet for status.hostIPs");
    case "status.podIP":
      return sortPodIPs(ctx.podIPs, ctx.hostIPs)[0] ?? "";
    case "status.podIPs":
      return sortPodIPs(ctx.podIPs, ctx.hostIPs).join(",");
    case "spec.restartPolicy":
    case "spec.schedulerName":
    case "status.phase":
      return refuse(`unsupported fieldPath: ${path}`);
    default:
      return refuse(`field label not supported: ${path}`);
  }
}

export interface ResourceContext {
  readonly pod: BoundPod;
  /** The node's allocatable amounts, which stand for limits that are not set. */
  readonly allocatable: Readonly<Record<string, string>>;
}

type Side = "requests" | "limits";
const defaulted = new Set(["cpu", "memory", "ephemeral-storage"]);

function quantity(text: string | undefined, what: string): ReturnType<typeof parseQuantity> {
  return text === undefined ? zeroQuantity : parseQuantity(text, { what, code: "BadPod" });
}

function limitDefault(name: string, ctx: ResourceContext, podLevelFirst: boolean): string | undefined {
  const node = Object.hasOwn(ctx.allocatable, name) ? ctx.allocatable[name] : undefined;
  const level = name === "ephemeral-storage" ? undefined : ctx.pod.spec.resources?.limits?.[name];
  const usesLevel = podLevelFirst && node !== undefined && level !== undefined && hasPodLevelResources(ctx.pod) &&
    quantity(level, `pod limits.${name}`).nano !== 0n;
  return usesLevel ? level : node;
}

/**
 * A container's request or limit divided by the ref's divisor, rounded up.
 * @param container the container whose variable it is; undefined for a volume, where the ref has to name one
 * Throws BadPod on an unknown container, resource or bad quantity.
 */
export function resolveResource(
  container: Container | undefined,
  ref: ResourceFieldSelector,
  ctx: ResourceContext,
): string {
  const { containers, initContainers = [] } = ctx.pod.spec;
  const named = ref.containerName
    ? containers.find((c) => c.name === ref.containerName) ?? initContainers.find((c) => c.name === ref.containerName)
    : container;
  if (named === undefined) refuse(`container ${ref.containerName ?? ""} not found`);
  const dot = ref.resource.indexOf(".");
  const side = ref.resource.slice(0, dot);
  const name = ref.resource.slice(dot + 1);
  if ((side !== "requests" && side !== "limits") || !(defaulted.has(name) || name.startsWith("hugepages-"))) {
    refuse(`unsupported container resource : ${ref.resource}`);
  }
  const list: Partial<Record<string, string>> = named.resources?.[side as Side] ?? {};
  const where = `container ${named.name} ${ref.resource}`;
  let amount = quantity(Object.hasOwn(list, name) ? list[name] : undefined, where);
  // For a variable, another container's limits have defaults only if it is a regular one.
  const hasDefaults = container === undefined || !ref.containerName || containers.includes(named);
  if (side === "limits" && amount.nano === 0n && defaulted.has(name) && hasDefaults) {
    amount = quantity(limitDefault(name, ctx, container !== undefined), `node allocatable ${name}`);
  }
  const given = quantity(ref.divisor === undefined ? undefined : String(ref.divisor), `${where} divisor`);
  const divisor = compareQuantities(given, zeroQuantity) === 0 ? parseQuantity(1) : given;
  const units = name === "cpu" ? milliValueBig : valueBig;
  const [a, b] = [units(amount), units(divisor)];
  if (b <= 0n) refuse(`${where}: the divisor must be more than 0`);
  return String((a + b - 1n) / b);
}
