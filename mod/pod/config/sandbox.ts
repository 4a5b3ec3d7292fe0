/** The CRI configuration of a sandbox (runtime-contract.md section 4). */
import { Protocol, SecurityProfile_ProfileType as ProfileType } from "../../../cri/gen/runtime_pb.ts";
import { podContainers } from "../../kube/pod.ts";
import type { BoundPod, Container, ContainerPort } from "../../kube/types.ts";
import type { DnsSettings } from "./dns.ts";
import { int64 } from "./errors.ts";
import { kernelHostname } from "./hostname.ts";
import type { PlainSandboxConfig, PortMappingInit, SandboxSecurityInit, UserNamespaceInit } from "./init.ts";
import { sandboxLabels } from "./labels.ts";
import { type ResourcePolicy, sandboxResources } from "./linux_resources.ts";
import { podLogDir } from "./paths.ts";
import { groupsPolicy, podNamespaces } from "./security.ts";

const protocols: ReadonlyMap<string, Protocol> = new Map([
  ["TCP", Protocol.TCP],
  ["UDP", Protocol.UDP],
  ["SCTP", Protocol.SCTP],
]);

export interface SandboxConfigInput {
  readonly pod: BoundPod;
  /** 0 for the first; else the newest sandbox's attempt + 1. */
  readonly attempt: number;
  /** From podDns. */
  readonly dns: DnsSettings;
  readonly clusterDomain: string;
  /** Such as /var/log/pods. */
  readonly podLogsDir: string;
  /** From the cgroup manager. */
  readonly cgroupParent: string;
  readonly policy: ResourcePolicy;
  readonly userns?: UserNamespaceInit | undefined;
  /** Groups that volumes need. */
  readonly extraGroups?: readonly number[] | undefined;
  /** True when some container of the pod owns CPUs. */
  readonly exclusiveCpus?: boolean | undefined;
}

/** A sysctl's name with dots between its parts; a dot within a part becomes a slash. */
export function sysctlName(name: string): string {
  if (name.search(/[./]/) < 0 || name[name.search(/[./]/)] === ".") return name;
  return name.replace(/[./]/g, (c) => c === "." ? "/" : ".");
}

/** One container's ports, without those that are named or written twice. */
function portsOf(container: Container): PortMappingInit[] {
  const seen = new Set<string>();
  const key = ({ name, protocol, hostIP = "", containerPort, hostPort = 0 }: ContainerPort) => {
    const family = hostIP === "" ? "any" : hostIP.includes(":") ? "v6" : "v4";
    return name || `${family}-${protocol ?? ""}-${hostIP}:${containerPort}:${hostPort}`;
  };
  return (container.ports ?? []).filter((port) => {
    const repeated = seen.has(key(port));
    seen.add(key(port));
    return !repeated;
  }).map((port) => ({
    protocol: protocols.get(port.protocol ?? "TCP") ?? Protocol.TCP,
    containerPort: port.containerPort,
    hostPort: port.hostPort ?? 0,
    hostIp: port.hostIP ?? "",
  }));
}

function security(input: SandboxConfigInput): SandboxSecurityInit {
  const { pod } = input;
  const base: SandboxSecurityInit = {
    privileged: podContainers(pod).some(({ spec }) => spec.securityContext?.privileged === true),
    // Also where containers run unconfined: the sandbox's own process needs no more than the default.
    seccomp: { profileType: ProfileType.RuntimeDefault },
  };
  const sc = pod.spec.securityContext;
  if (sc === undefined) return base;
  const groups = [
    ...(sc.fsGroup === undefined ? [] : [sc.fsGroup]),
    ...input.extraGroups ?? [],
    ...sc.supplementalGroups ?? [],
  ];
  return {
    ...base,
    namespaceOptions: podNamespaces(pod, input.userns),
    ...(sc.runAsUser === undefined ? {} : { runAsUser: { value: int64(sc.runAsUser, "runAsUser") } }),
    ...(sc.runAsGroup === undefined ? {} : { runAsGroup: { value: int64(sc.runAsGroup, "runAsGroup") } }),
    supplementalGroups: groups.map((group) => int64(group, "supplemental group")),
    supplementalGroupsPolicy: groupsPolicy(sc.supplementalGroupsPolicy),
    ...(sc.seLinuxOptions === undefined ? {} : { selinuxOptions: sc.seLinuxOptions }),
  };
}

/** The sandbox's configuration. Throws BadPod on a host name, quantity or policy that can't be used. */
export function sandboxConfig(input: SandboxConfigInput): PlainSandboxConfig {
  const { pod, dns } = input;
  const { name, namespace, uid } = pod.metadata;
  const { resources, overhead } = sandboxResources({
    pod,
    policy: input.policy,
    exclusiveCpus: input.exclusiveCpus ?? false,
  });
  const sysctls = (pod.spec.securityContext?.sysctls ?? []).map((s) => [sysctlName(s.name), s.value]);
  return {
    metadata: { name, namespace, uid, attempt: input.attempt },
    ...(pod.spec.hostNetwork === true ? {} : { hostname: kernelHostname(pod, input.clusterDomain) }),
    logDirectory: podLogDir(input.podLogsDir, pod),
    dnsConfig: { servers: [...dns.servers], searches: [...dns.searches], options: [...dns.options] },
    portMappings: pod.spec.containers.flatMap(portsOf),
    labels: sandboxLabels(pod),
    annotations: { ...pod.metadata.annotations },
    linux: {
      cgroupParent: input.cgroupParent,
      sysctls: Object.fromEntries(sysctls),
      securityContext: security(input),
      resources,
      overhead,
    },
  };
}
