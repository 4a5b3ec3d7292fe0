/** A container's mounts and block devices (runtime-contract.md section 5). */
import { posix } from "node:path";
import { MountPropagation } from "../../../cri/gen/runtime_pb.ts";
import type { MountedVolume } from "../mounted_volume.ts";
import type { BoundPod, Container, VolumeMount } from "../../kube/types.ts";
import type { EnvValue } from "./env.ts";
import { asConfigError, CreateContainerConfigError } from "./errors.ts";
import { expand } from "./expand.ts";
import type { DeviceInit, MountInit, UserNamespaceInit } from "./init.ts";
import { pathBelow } from "./paths.ts";

const hostsPath = "/etc/hosts";
const propagations: ReadonlyMap<string, MountPropagation> = new Map([
  ["None", MountPropagation.PROPAGATION_PRIVATE],
  ["HostToContainer", MountPropagation.PROPAGATION_HOST_TO_CONTAINER],
  ["Bidirectional", MountPropagation.PROPAGATION_BIDIRECTIONAL],
]);

/** A mount of a part of a volume, which has to be made safe on the node before the container is made. */
export interface SubPathMount {
  /** Place in the container's volumeMounts. */
  readonly index: number;
  readonly volume: string;
  /** Relative, without `..`. */
  readonly subPath: string;
}

function subPathOf(mount: VolumeMount, envs: readonly EnvValue[]): string {
  let path = mount.subPath ?? "";
  if (mount.subPathExpr) {
    const values = new Map(envs.map((env) => [env.name, env.value]));
    const missing = new Set<string>();
    path = expand(mount.subPathExpr, (name) => {
      const value = values.get(name);
      if (!value) missing.add(name);
      return value ?? "";
    });
    if (missing.size > 0) {
      throw new CreateContainerConfigError(`missing value for ${[...missing].sort().join(", ")}`);
    }
  }
  if (path === "") return "";
  if (path.startsWith("/")) {
    throw new CreateContainerConfigError(`error SubPath \`${path}\` must not be an absolute path`);
  }
  return asConfigError(() => pathBelow("", path, `volumeMount ${mount.name} SubPath`)).slice(1);
}

/**
 * The sub paths that the container mounts, expanded and checked; the volumes' side makes each a host path, and gives
 * them to containerMounts by index. Image volumes' sub paths are the runtime's and not listed.
 * Throws CreateContainerConfigError.
 */
export function subPathMounts(
  container: Container,
  envs: readonly EnvValue[],
  volumes: ReadonlyMap<string, MountedVolume>,
): SubPathMount[] {
  return (container.volumeMounts ?? []).flatMap((mount, index) => {
    const subPath = subPathOf(mount, envs);
    return subPath === "" || volumes.get(mount.name)?.image !== undefined
      ? []
      : [{ index, volume: mount.name, subPath }];
  });
}

/** Whether a read-only mount is so for mounts inside it too. Throws CreateContainerConfigError. */
function recursiveReadOnly(mount: VolumeMount, supported: boolean): boolean {
  const mode = mount.recursiveReadOnly;
  if (mode === undefined || mode === "Disabled") return false;
  const refuse = (what: string): never => {
    throw new CreateContainerConfigError(`failed to resolve recursive read-only mode: ${what}`);
  };
  const asks = `volume "${mount.name}" requested recursive read-only mode, but it is`;
  if (mount.readOnly !== true) refuse(`${asks} not read-only`);
  if (mount.mountPropagation !== undefined && mount.mountPropagation !== "None") {
    refuse(`${asks} not compatible with propagation "${mount.mountPropagation}"`);
  }
  if (mode === "IfPossible") return supported;
  if (mode !== "Enabled") refuse(`unknown recursive read-only mode "${mode}"`);
  return supported || refuse(`${asks} not supported by the runtime`);
}

function propagationOf(mount: VolumeMount): MountPropagation {
  const found = propagations.get(mount.mountPropagation ?? "None");
  if (found !== undefined) return found;
  throw new CreateContainerConfigError(`invalid MountPropagation mode: "${mount.mountPropagation}"`);
}

export interface MountInput {
  readonly pod: BoundPod;
  readonly container: Container;
  readonly envs: readonly EnvValue[];
  /** The pod's volumes by name. */
  readonly volumes: ReadonlyMap<string, MountedVolume>;
  /** By volume name: the references that the image manager returned for image volumes. */
  readonly imageVolumes?: ReadonlyMap<string, string> | undefined;
  /** Host paths of sub paths, by place in volumeMounts (see subPathMounts). */
  readonly subPaths: ReadonlyMap<number, string>;
  readonly podIPs: readonly string[];
  /** The pod's hosts file on the node. */
  readonly hostsFile: string;
  /** The termination message file on the node; undefined when it could not be made. */
  readonly terminationFile?: string | undefined;
  readonly selinuxEnabled: boolean;
  /** True when the pod's runtime handler can do recursive read-only mounts. */
  readonly recursiveReadOnlyMounts: boolean;
  readonly userns?: UserNamespaceInit | undefined;
  /** Mounts of device plugins, which come first. */
  readonly pluginMounts?: readonly MountInit[] | undefined;
}

function volumeMount(input: MountInput, mount: VolumeMount, index: number): MountInit {
  const { container } = input;
  const volume = input.volumes.get(mount.name);
  if (volume === undefined) {
    throw new CreateContainerConfigError(
      `cannot find volume "${mount.name}" to mount into container "${container.name}"`,
    );
  }
  const subPath = subPathOf(mount, input.envs);
  let hostPath = volume.image === undefined ? volume.hostPath : "";
  if (subPath !== "" && volume.image === undefined) {
    const prepared = input.subPaths.get(index);
    if (prepared === undefined) {
      throw new CreateContainerConfigError(
        `failed to prepare subPath for volumeMount "${mount.name}" of container "${container.name}"`,
      );
    }
    hostPath = prepared;
  }
  return {
    containerPath: mount.mountPath.startsWith("/") ? mount.mountPath : posix.resolve("/", mount.mountPath),
    hostPath,
    readonly: mount.readOnly === true || volume.readOnly,
    selinuxRelabel: volume.selinuxRelabel && input.selinuxEnabled,
    propagation: propagationOf(mount),
    recursiveReadOnly: recursiveReadOnly(mount, input.recursiveReadOnlyMounts),
    ...(volume.image === undefined ? {} : {
      image: {
        image: input.imageVolumes?.get(mount.name) ?? volume.image,
        userSpecifiedImage: volume.image,
        annotations: { ...input.pod.metadata.annotations },
      },
      imageSubPath: subPath,
    }),
  };
}

/**
 * The mounts: device plugins', volumes in spec order, /etc/hosts (unless the container brings its own, or the pod's
 * address isn't known), the termination message file. Throws CreateContainerConfigError.
 */
export function containerMounts(input: MountInput): MountInit[] {
  const { pod, container, userns } = input;
  const wanted = container.volumeMounts ?? [];
  const mounts = [...input.pluginMounts ?? [], ...wanted.map((mount, index) => volumeMount(input, mount, index))];
  const hosts = (input.podIPs.length > 0 || pod.spec.hostNetwork === true) &&
    !wanted.some((mount) => mount.mountPath === hostsPath);
  if (hosts) {
    mounts.push({ containerPath: hostsPath, hostPath: input.hostsFile, selinuxRelabel: input.selinuxEnabled });
  }
  if (input.terminationFile !== undefined && container.terminationMessagePath) {
    mounts.push({
      // Termination messages are found again by this path: always in its clean form.
      containerPath: terminationPath(container.terminationMessagePath),
      hostPath: input.terminationFile,
      selinuxRelabel: input.selinuxEnabled,
    });
  }
  if (userns === undefined) return mounts;
  return mounts.map((mount) => ({ ...mount, uidMappings: userns.uids ?? [], gidMappings: userns.gids ?? [] }));
}

/** A terminationMessagePath as the container's mount has it. */
export function terminationPath(path: string): string {
  return posix.resolve("/", path);
}

/** Block volumes as devices. Throws CreateContainerConfigError. */
export function blockDevices(container: Container, volumes: ReadonlyMap<string, MountedVolume>): DeviceInit[] {
  return (container.volumeDevices ?? []).map(({ name, devicePath }) => {
    if (!devicePath.startsWith("/")) {
      throw new CreateContainerConfigError(`error DevicePath \`${devicePath}\` must be an absolute path`);
    }
    const volume = volumes.get(name);
    if (volume === undefined) {
      throw new CreateContainerConfigError(`cannot find volume "${name}" to pass into container "${container.name}"`);
    }
    return { hostPath: volume.hostPath, containerPath: devicePath, permissions: volume.readOnly ? "r" : "mrw" };
  });
}
