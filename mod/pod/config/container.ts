/** The CRI configuration of a container (runtime-contract.md section 5). */
import { Signal } from "../../../cri/gen/runtime_pb.ts";
import type { MountedVolume } from "../mounted_volume.ts";
import type { BoundPod, Container } from "../../kube/types.ts";
import type { EnvValue } from "./env.ts";
import { asConfigError } from "./errors.ts";
import { expand, lookupIn } from "./expand.ts";
import { containerAnnotations, containerLabels } from "./labels.ts";
import { containerResources, type ResourcePolicy } from "./linux_resources.ts";
import type { DeviceInit, MountInit, PlainContainerConfig, UserNamespaceInit } from "./init.ts";
import { blockDevices, containerMounts } from "./mounts.ts";
import { containerLogPath, etcHostsFile, rootPaths } from "./paths.ts";
import { containerSecurity, type ImageUser } from "./security.ts";

/** How the node makes containers. */
export interface ContainerPolicy extends ResourcePolicy {
  /** The agent's root directory. */
  readonly rootDir: string;
  readonly seccompDefault: boolean;
  readonly selinuxEnabled: boolean;
  /** The feature gate ContainerStopSignals. */
  readonly stopSignals: boolean;
  /** `/sys/devices/system/cpu/cpu<n>/thermal_throttle` of the CPUs that have it. */
  readonly extraMaskedPaths?: readonly string[];
}

/** What device plugins give a container. */
export interface PluginOptions {
  readonly mounts?: readonly MountInit[];
  readonly devices?: readonly DeviceInit[];
  readonly envs?: readonly EnvValue[];
  readonly annotations?: Readonly<Record<string, string>>;
  readonly cdiDevices?: readonly string[];
}

export interface ContainerConfigInput {
  readonly pod: BoundPod;
  readonly container: Container;
  /** Also the CRI attempt. */
  readonly restartCount: number;
  /** The reference that the image manager returned. */
  readonly imageRef: string;
  readonly imageUser: ImageUser;
  /** From containerEnv. */
  readonly envs: readonly EnvValue[];
  readonly volumes: ReadonlyMap<string, MountedVolume>;
  /** By volume name: the references that the image manager returned for image volumes. */
  readonly imageVolumes?: ReadonlyMap<string, string> | undefined;
  /** Host paths by place in volumeMounts, for what subPathMounts lists. */
  readonly subPaths?: ReadonlyMap<number, string> | undefined;
  readonly podIPs: readonly string[];
  /** The termination message file made for this start. */
  readonly terminationFile?: string | undefined;
  /** The id of an ephemeral container's target, when it runs. */
  readonly targetContainerId?: string | undefined;
  readonly userns?: UserNamespaceInit | undefined;
  /** Groups that volumes need. */
  readonly extraGroups?: readonly number[] | undefined;
  /** True when the pod's runtime handler can do recursive read-only mounts. */
  readonly recursiveReadOnlyMounts?: boolean | undefined;
  readonly exclusiveCpus?: boolean | undefined;
  readonly plugin?: PluginOptions | undefined;
  readonly policy: ContainerPolicy;
}

/** A stop signal of the API, such as `SIGUSR1` or `SIGRTMIN+3`, in the runtime's numbers; unknown ones are the default. */
function stopSignal(name: string): Signal {
  const key = name.replace("+", "PLUS").replace("-", "MINUS");
  const known: Readonly<Record<string, string | Signal>> = Signal;
  const value = key.startsWith("SIG") && Object.hasOwn(known, key) ? known[key] : undefined;
  return typeof value === "number" ? value : Signal.RUNTIME_DEFAULT;
}

/** The container's configuration. Throws CreateContainerConfigError that says what in the spec is at fault. */
export function containerConfig(input: ContainerConfigInput): PlainContainerConfig {
  return asConfigError(() => makeConfig(input));
}

function makeConfig(input: ContainerConfigInput): PlainContainerConfig {
  const { pod, container, policy, plugin = {}, userns } = input;
  const envs = [...plugin.envs ?? [], ...input.envs];
  const lookup = lookupIn(new Map(envs.map((env) => [env.name, env.value])));
  const utf8 = new TextEncoder();
  const signal = policy.stopSignals ? container.lifecycle?.stopSignal : undefined;
  return {
    metadata: { name: container.name, attempt: input.restartCount },
    image: { image: input.imageRef, userSpecifiedImage: container.image ?? "" },
    command: (container.command ?? []).map((text) => expand(text, lookup)),
    args: (container.args ?? []).map((text) => expand(text, lookup)),
    workingDir: container.workingDir ?? "",
    envs: envs.map((env) => ({ key: env.name, value: env.bytes ?? utf8.encode(env.value) })),
    mounts: containerMounts({
      pod,
      container,
      envs,
      volumes: input.volumes,
      imageVolumes: input.imageVolumes,
      subPaths: input.subPaths ?? new Map(),
      podIPs: input.podIPs,
      hostsFile: etcHostsFile(policy.rootDir, pod.metadata.uid),
      terminationFile: input.terminationFile,
      selinuxEnabled: policy.selinuxEnabled,
      recursiveReadOnlyMounts: input.recursiveReadOnlyMounts ?? false,
      userns,
      pluginMounts: plugin.mounts,
    }),
    devices: [...plugin.devices ?? [], ...blockDevices(container, input.volumes)],
    CDIDevices: (plugin.cdiDevices ?? []).map((name) => ({ name })),
    labels: containerLabels(pod, container),
    annotations: containerAnnotations({ pod, container, restartCount: input.restartCount, base: plugin.annotations }),
    logPath: containerLogPath(container.name, input.restartCount),
    stdin: container.stdin ?? false,
    stdinOnce: container.stdinOnce ?? false,
    tty: container.tty ?? false,
    linux: {
      resources: containerResources({ pod, container, policy, exclusiveCpus: input.exclusiveCpus ?? false }),
      securityContext: containerSecurity({
        pod,
        container,
        user: input.imageUser,
        seccompDefault: policy.seccompDefault,
        seccompDir: rootPaths.seccomp(policy.rootDir),
        extraMaskedPaths: policy.extraMaskedPaths,
        extraGroups: input.extraGroups,
        userns,
        targetContainerId: input.targetContainerId,
      }),
    },
    ...(signal === undefined ? {} : { stopSignal: stopSignal(signal) }),
  };
}
