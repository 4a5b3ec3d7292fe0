import type { AppArmorProfile, PodSpec, SeccompProfile, SecurityContext } from "../types.ts";
import { checkDescending } from "./paths.ts";
import type { Problems } from "./problem.ts";

const maxId = 2 ** 31 - 1;
const profileTypes = ["Localhost", "RuntimeDefault", "Unconfined"];
/** Sysctls of the IPC and the network namespace (component-helpers, node/util/sysctl). */
const ipcSysctl = /^(?:kernel\.sem$|kernel\.shm|kernel\.msg|fs\.mqueue\.)/;
const netSysctl = /^net\./;

/** Checks a container's security context; `hostUsers` is false in a pod with its own user namespace. */
export function checkSecurityContext(
  p: Problems,
  path: string,
  context: SecurityContext | undefined,
  hostUsers: boolean,
): void {
  if (!context) return;
  p.range(`${path}.runAsUser`, context.runAsUser, 0, maxId);
  p.range(`${path}.runAsGroup`, context.runAsGroup, 0, maxId);
  if (context.procMount !== undefined) {
    p.oneOf(`${path}.procMount`, context.procMount, ["Default", "Unmasked"]);
    if (hostUsers && context.procMount === "Unmasked") {
      p.add(`${path}.procMount`, context.procMount, "needs an own user namespace", "set spec.hostUsers to false");
    }
  }
  checkSeccomp(p, `${path}.seccompProfile`, context.seccompProfile);
  checkAppArmor(p, `${path}.appArmorProfile`, context.appArmorProfile);
  if (context.allowPrivilegeEscalation === false) {
    const at = `${path}.allowPrivilegeEscalation`;
    if (context.privileged) p.add(at, false, "contradicts privileged", "set only one of the two");
    if (context.capabilities?.add?.includes("CAP_SYS_ADMIN")) {
      p.add(at, false, "contradicts the capability CAP_SYS_ADMIN", "set only one of the two");
    }
  }
}

/** Checks the pod's security context and the namespaces that it shares with the host. */
export function checkPodSecurity(p: Problems, spec: PodSpec): void {
  const path = "spec.securityContext";
  const context = spec.securityContext ?? {};
  for (const field of ["fsGroup", "runAsUser", "runAsGroup"] as const) {
    p.range(`${path}.${field}`, context[field], 0, maxId);
  }
  context.supplementalGroups?.forEach((group, i) => p.range(`${path}.supplementalGroups[${i}]`, group, 0, maxId));
  const known = {
    fsGroupChangePolicy: ["OnRootMismatch", "Always"],
    supplementalGroupsPolicy: ["Merge", "Strict"],
    seLinuxChangePolicy: ["Recursive", "MountOption"],
  } as const;
  for (const field of ["fsGroupChangePolicy", "supplementalGroupsPolicy", "seLinuxChangePolicy"] as const) {
    if (context[field] !== undefined) p.oneOf(`${path}.${field}`, context[field], known[field]);
  }
  checkSeccomp(p, `${path}.seccompProfile`, context.seccompProfile);
  checkAppArmor(p, `${path}.appArmorProfile`, context.appArmorProfile);
  checkSysctls(p, `${path}.sysctls`, spec);
  if (spec.shareProcessNamespace && spec.hostPID) {
    p.add("spec.shareProcessNamespace", true, "contradicts hostPID", "set only one of the two");
  }
  if (spec.hostUsers === false) checkUserNamespace(p, spec);
}

function checkUserNamespace(p: Problems, spec: PodSpec): void {
  for (const field of ["hostNetwork", "hostPID", "hostIPC"] as const) {
    if (spec[field]) p.forbidden(`spec.${field}`, "when hostUsers is false");
  }
  for (const list of ["containers", "initContainers", "ephemeralContainers"] as const) {
    spec[list]?.forEach(({ volumeDevices }, i) => {
      if (volumeDevices?.length) p.forbidden(`spec.${list}[${i}].volumeDevices`, "when hostUsers is false");
    });
  }
}

function checkSysctls(p: Problems, path: string, spec: PodSpec): void {
  const names = new Set<string>();
  spec.securityContext?.sysctls?.forEach(({ name }, i) => {
    const at = `${path}[${i}].name`;
    if (!name) p.required(at, "name the sysctl");
    else if (name.length > 253 || !isSysctl(name)) {
      p.add(at, name, "is no sysctl name", "use a name such as net.ipv4.ip_local_port_range");
    } else if (names.has(name)) p.add(at, name, "is set twice", "remove one");
    names.add(name);
    const dotted = toDots(name);
    if (spec.hostNetwork && netSysctl.test(dotted)) p.add(at, name, "belongs to the host's network", "remove it");
    if (spec.hostIPC && ipcSysctl.test(dotted)) p.add(at, name, "belongs to the host's IPC namespace", "remove it");
  });
}

function isSysctl(name: string): boolean {
  return name.split(/[./]/).every((part) => /^[a-z0-9](?:[-_a-z0-9]*[a-z0-9])?$/.test(part));
}

/** `net/ipv4/conf` and `net.ipv4.conf` are one; the first separator tells which one separates. */
function toDots(name: string): string {
  const first = /[./]/.exec(name)?.[0];
  return first === "/" ? name.replace(/[./]/g, (c) => c === "/" ? "." : "/") : name;
}

function checkSeccomp(p: Problems, path: string, profile: SeccompProfile | undefined): void {
  if (!profile) return;
  p.oneOf(`${path}.type`, profile.type, profileTypes);
  const at = `${path}.localhostProfile`;
  if (profile.type !== "Localhost") {
    if (profile.localhostProfile !== undefined) p.forbidden(at, "unless the type is Localhost");
  } else if (profile.localhostProfile === undefined) p.required(at, "name the profile's file");
  else checkDescending(p, at, profile.localhostProfile);
}

function checkAppArmor(p: Problems, path: string, profile: AppArmorProfile | undefined): void {
  if (!profile) return;
  p.oneOf(`${path}.type`, profile.type, profileTypes);
  const at = `${path}.localhostProfile`;
  const name = profile.localhostProfile;
  if (profile.type !== "Localhost") {
    if (name !== undefined) p.forbidden(at, "unless the type is Localhost");
  } else if (!name?.trim()) p.required(at, "name the loaded profile");
  else if (name !== name.trim()) p.add(at, name, "has spaces around it", "remove them");
  else if (name.length > 4095) p.add(at, name, "is too long", "use at most 4095 characters");
}
