/** Security contexts and namespaces of sandboxes and containers (runtime-contract.md sections 4 and 5). */
import {
  NamespaceMode,
  SecurityProfile_ProfileType as ProfileType,
  SupplementalGroupsPolicy,
} from "../../../cri/gen/runtime_pb.ts";
import type { AppArmorProfile, BoundPod, Container, SeccompProfile, SecurityContext } from "../../kube/types.ts";
import { CreateContainerConfigError, describePod, int64 } from "./errors.ts";
import type { ContainerSecurityInit, NamespacesInit, ProfileInit, UserNamespaceInit } from "./init.ts";
import { pathBelow } from "./paths.ts";

/** The user that an image runs as: a uid or a name; neither means root. */
export interface ImageUser {
  readonly uid?: bigint | number | undefined;
  readonly username?: string | undefined;
}

/** Paths that a container must not see, unless it asks for an unmasked /proc. */
export const maskedPaths: readonly string[] = [
  "/proc/asound",
  "/proc/acpi",
  "/proc/interrupts",
  "/proc/kcore",
  "/proc/keys",
  "/proc/latency_stats",
  "/proc/timer_list",
  "/proc/timer_stats",
  "/proc/sched_debug",
  "/proc/scsi",
  "/sys/firmware",
  "/sys/devices/virtual/powercap",
];
/** Paths that a container must not write. */
export const readonlyPaths: readonly string[] = [
  "/proc/bus",
  "/proc/fs",
  "/proc/irq",
  "/proc/sys",
  "/proc/sysrq-trigger",
];

const appArmorAnnotation = "container.apparmor.security.beta.kubernetes.io/";
/** The API's largest user id. */
const maxUserId = 2_147_483_647n;

/** The pod's namespaces. @param userns as the user namespace manager gave it; undefined for the node's */
export function podNamespaces(pod: BoundPod, userns?: UserNamespaceInit): NamespacesInit {
  const { hostIPC, hostNetwork, hostPID, shareProcessNamespace } = pod.spec;
  return {
    ipc: hostIPC === true ? NamespaceMode.NODE : NamespaceMode.POD,
    network: hostNetwork === true ? NamespaceMode.NODE : NamespaceMode.POD,
    pid: hostPID === true
      ? NamespaceMode.NODE
      : shareProcessNamespace === true
      ? NamespaceMode.POD
      : NamespaceMode.CONTAINER,
    ...(userns === undefined ? {} : { usernsOptions: userns }),
  };
}

/** The runtime's value of a supplementalGroupsPolicy. Throws on an unknown one. */
export function groupsPolicy(policy: string | undefined): SupplementalGroupsPolicy {
  if (policy === undefined || policy === "Merge") return SupplementalGroupsPolicy.Merge;
  if (policy === "Strict") return SupplementalGroupsPolicy.Strict;
  throw new CreateContainerConfigError(`unsupported supplementalGroupsPolicy: ${policy}; use Merge or Strict`);
}

/** The pod's fields with the container's own over them. */
export function effectiveSecurity(pod: BoundPod, container: Container): SecurityContext {
  const { seLinuxOptions, runAsUser, runAsGroup, runAsNonRoot } = pod.spec.securityContext ?? {};
  const merged: SecurityContext = {
    ...(seLinuxOptions === undefined ? {} : { seLinuxOptions }),
    ...(runAsUser === undefined ? {} : { runAsUser }),
    ...(runAsGroup === undefined ? {} : { runAsGroup }),
    ...(runAsNonRoot === undefined ? {} : { runAsNonRoot }),
  };
  // Only fields that are there may cover the pod's: a manifest's explicit null is no value.
  const own = Object.entries(container.securityContext ?? {}).filter(([, value]) =>
    value !== undefined && value !== null
  );
  return { ...merged, ...Object.fromEntries(own) };
}

/** Throws CreateContainerConfigError when runAsNonRoot holds and the container would, or might, run as root. */
export function verifyRunAsNonRoot(pod: BoundPod, container: Container, user: ImageUser): void {
  const { runAsNonRoot, runAsUser } = effectiveSecurity(pod, container);
  if (runAsNonRoot !== true) return;
  const where = `(pod: "${describePod(pod)}", container: ${container.name})`;
  const refuse = (what: string): never => {
    throw new CreateContainerConfigError(`${what} ${where}`);
  };
  if (runAsUser !== undefined) {
    if (Number(runAsUser) === 0) refuse("container's runAsUser breaks non-root policy");
    return;
  }
  if (user.uid === undefined && user.username) {
    refuse(
      `container has runAsNonRoot and image has non-numeric user (${user.username}), cannot verify user is non-root`,
    );
  }
  const uid = int64(user.uid ?? 0, "image user id");
  if (uid === 0n) refuse("container has runAsNonRoot and image will run as root");
  if (uid < 0n || uid > maxUserId) {
    refuse(`container has runAsNonRoot and image has an invalid user id (${uid}). (Must be 1-(${maxUserId}))`);
  }
}

function seccompOf(profile: SeccompProfile | undefined, input: SecurityInput): ProfileInit {
  if (profile === undefined) {
    return { profileType: input.seccompDefault ? ProfileType.RuntimeDefault : ProfileType.Unconfined };
  }
  if (profile.type === "RuntimeDefault") return { profileType: ProfileType.RuntimeDefault };
  if (profile.type !== "Localhost") return { profileType: ProfileType.Unconfined };
  if (!profile.localhostProfile) {
    throw new CreateContainerConfigError("localhostProfile must be set if seccompProfile type is Localhost.");
  }
  return {
    profileType: ProfileType.Localhost,
    localhostRef: pathBelow(input.seccompDir, profile.localhostProfile, "seccompProfile.localhostProfile"),
  };
}

function appArmorOf(pod: BoundPod, container: Container): AppArmorProfile | undefined {
  const own = container.securityContext?.appArmorProfile;
  if (own) return own;
  // The annotation is per container, so it comes before the pod's field.
  const annotations = pod.metadata.annotations ?? {};
  const key = appArmorAnnotation + container.name;
  const legacy = Object.hasOwn(annotations, key) ? annotations[key] : undefined;
  if (legacy === "runtime/default") return { type: "RuntimeDefault" };
  if (legacy === "unconfined") return { type: "Unconfined" };
  if (legacy?.startsWith("localhost/")) {
    return { type: "Localhost", localhostProfile: legacy.slice("localhost/".length) };
  }
  return pod.spec.securityContext?.appArmorProfile;
}

/** Both the profile and its old name, which older runtimes read. */
function appArmor(pod: BoundPod, container: Container): { apparmor?: ProfileInit; apparmorProfile?: string } {
  const profile = appArmorOf(pod, container);
  if (profile === undefined) return {};
  switch (profile.type) {
    case "RuntimeDefault":
      return { apparmor: { profileType: ProfileType.RuntimeDefault }, apparmorProfile: "runtime/default" };
    case "Unconfined":
      return { apparmor: { profileType: ProfileType.Unconfined }, apparmorProfile: "unconfined" };
    case "Localhost":
      if (profile.localhostProfile === undefined) {
        throw new CreateContainerConfigError("missing localhost apparmor profile name");
      }
      return {
        apparmor: { profileType: ProfileType.Localhost, localhostRef: profile.localhostProfile },
        apparmorProfile: `localhost/${profile.localhostProfile}`,
      };
    default:
      throw new CreateContainerConfigError(`unknown apparmor profile type: ${JSON.stringify(profile.type)}`);
  }
}

export interface SecurityInput {
  readonly pod: BoundPod;
  readonly container: Container;
  readonly user: ImageUser;
  readonly seccompDefault: boolean;
  /** `<root>/seccomp`. */
  readonly seccompDir: string;
  /** Paths of this node's hardware to mask besides the usual ones. */
  readonly extraMaskedPaths?: readonly string[] | undefined;
  /** Groups that volumes need. */
  readonly extraGroups?: readonly number[] | undefined;
  readonly userns?: UserNamespaceInit | undefined;
  /** The container whose processes an ephemeral container wants to see. */
  readonly targetContainerId?: string | undefined;
}

function noNewPrivileges(sc: SecurityContext): boolean {
  const powerful = sc.privileged === true ||
    (sc.capabilities?.add ?? []).some((cap) => cap === "CAP_SYS_ADMIN" || cap === "SYS_ADMIN");
  return sc.allowPrivilegeEscalation === false && !powerful;
}

function user(sc: SecurityContext, image: ImageUser): Pick<ContainerSecurityInit, "runAsUser" | "runAsUsername"> {
  if (sc.runAsUser !== undefined) return { runAsUser: { value: int64(sc.runAsUser, "runAsUser") } };
  if (image.uid !== undefined) return { runAsUser: { value: int64(image.uid, "image user id") } };
  return image.username ? { runAsUsername: image.username } : { runAsUser: { value: 0n } };
}

/** The container's security context, after runAsNonRoot was verified. Throws CreateContainerConfigError. */
export function containerSecurity(input: SecurityInput): ContainerSecurityInit {
  const { pod, container, targetContainerId } = input;
  verifyRunAsNonRoot(pod, container, input.user);
  const sc = effectiveSecurity(pod, container);
  const podSc = pod.spec.securityContext ?? {};
  const namespaces = podNamespaces(pod, input.userns);
  const targeted = targetContainerId !== undefined && namespaces.pid === NamespaceMode.CONTAINER;
  const unmasked = sc.procMount === "Unmasked";
  const groups = [
    ...(podSc.fsGroup === undefined ? [] : [podSc.fsGroup]),
    ...podSc.supplementalGroups ?? [],
    ...input.extraGroups ?? [],
  ];
  return {
    ...(sc.capabilities === undefined ? {} : {
      capabilities: { addCapabilities: sc.capabilities.add ?? [], dropCapabilities: sc.capabilities.drop ?? [] },
    }),
    privileged: sc.privileged === true,
    namespaceOptions: targeted ? { ...namespaces, pid: NamespaceMode.TARGET, targetId: targetContainerId } : namespaces,
    ...(sc.seLinuxOptions === undefined ? {} : { selinuxOptions: sc.seLinuxOptions }),
    ...user(sc, input.user),
    ...(sc.runAsGroup === undefined ? {} : { runAsGroup: { value: int64(sc.runAsGroup, "runAsGroup") } }),
    readonlyRootfs: sc.readOnlyRootFilesystem === true,
    supplementalGroups: groups.map((group) => int64(group, "supplemental group")),
    supplementalGroupsPolicy: groupsPolicy(podSc.supplementalGroupsPolicy),
    noNewPrivs: noNewPrivileges(sc),
    maskedPaths: unmasked ? [] : [...maskedPaths, ...input.extraMaskedPaths ?? []],
    readonlyPaths: unmasked ? [] : [...readonlyPaths],
    seccomp: seccompOf(container.securityContext?.seccompProfile ?? podSc.seccompProfile, input),
    ...appArmor(pod, container),
  };
}
