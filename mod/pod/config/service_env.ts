/** Variables that tell a container of services (runtime-contract.md section 12). */
import type { BoundPod, Service } from "../../kube/types.ts";

/** The service that every pod is told of, wherever it runs. */
const master = { namespace: "default", name: "kubernetes" } as const;

function variableName(name: string): string {
  return name.replaceAll("-", "_").toUpperCase();
}

/** True for a service with an address of its own; headless and external ones have none. */
function hasAddress({ spec }: Service): boolean {
  return spec?.clusterIP !== undefined && spec.clusterIP !== "" && spec.clusterIP !== "None";
}

function variablesOf(service: Service): [string, string][] {
  const address = service.spec?.clusterIP ?? "";
  const prefix = variableName(service.metadata?.name ?? "");
  const ports = service.spec?.ports ?? [];
  const host = address.includes(":") ? `[${address}]` : address;
  const variables: [string, string][] = [[`${prefix}_SERVICE_HOST`, address]];
  const [first] = ports;
  if (first) variables.push([`${prefix}_SERVICE_PORT`, String(first.port)]);
  for (const { name, port } of ports) {
    if (name) variables.push([`${prefix}_SERVICE_PORT_${variableName(name)}`, String(port)]);
  }
  for (const [i, { port, protocol = "TCP" }] of ports.entries()) {
    const scheme = protocol.toLowerCase();
    const url = `${scheme}://${host}:${port}`;
    const link = `${prefix}_PORT_${port}_${protocol.toUpperCase()}`;
    if (i === 0) variables.push([`${prefix}_PORT`, url]);
    variables.push([link, url], [`${link}_PROTO`, scheme], [`${link}_PORT`, String(port)], [`${link}_ADDR`, address]);
  }
  return variables;
}

/**
 * The variables of the services that a pod is told of: `kubernetes` of the namespace `default` always, those of its own
 * namespace when enableServiceLinks says so (they win over a like-named `kubernetes`). Services are in order of name.
 */
export function serviceEnv(pod: BoundPod, services: Iterable<Service>): Map<string, string> {
  const chosen = new Map<string, Service>();
  const links = pod.spec.enableServiceLinks === true;
  const isMaster = ({ metadata }: Service) => metadata?.name === master.name && metadata.namespace === master.namespace;
  for (const service of services) {
    const name = service.metadata?.name;
    if (name === undefined || !hasAddress(service)) continue;
    const own = links && service.metadata?.namespace === pod.metadata.namespace;
    if (own || (isMaster(service) && !chosen.has(name))) chosen.set(name, service);
  }
  const inOrder = [...chosen].sort(([a], [b]) => a < b ? -1 : 1);
  return new Map(inOrder.flatMap(([, service]) => variablesOf(service)));
}
