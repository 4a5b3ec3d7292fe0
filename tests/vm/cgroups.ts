import type { Driver } from "./node.ts";

/** Where the groups of a driver are below /sys/fs/cgroup (runtime-contract.md section 6). */
export interface GroupPaths {
  readonly kubepods: string;
  readonly burstable: string;
  readonly bestEffort: string;
  guaranteedPod(uid: string): string;
  burstablePod(uid: string): string;
  bestEffortPod(uid: string): string;
}

export const groupPaths: Readonly<Record<Driver, GroupPaths>> = {
  cgroupfs: {
    kubepods: "/kubepods",
    burstable: "/kubepods/burstable",
    bestEffort: "/kubepods/besteffort",
    guaranteedPod: (uid) => `/kubepods/pod${uid}`,
    burstablePod: (uid) => `/kubepods/burstable/pod${uid}`,
    bestEffortPod: (uid) => `/kubepods/besteffort/pod${uid}`,
  },
  systemd: {
    kubepods: "/kubepods.slice",
    burstable: "/kubepods.slice/kubepods-burstable.slice",
    bestEffort: "/kubepods.slice/kubepods-besteffort.slice",
    guaranteedPod: (uid) => `/kubepods.slice/kubepods-pod${under(uid)}.slice`,
    burstablePod: (uid) => `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod${under(uid)}.slice`,
    bestEffortPod: (uid) => `/kubepods.slice/kubepods-besteffort.slice/kubepods-besteffort-pod${under(uid)}.slice`,
  },
};

function under(uid: string): string {
  return uid.replaceAll("-", "_");
}

/** The weight that stands for a CPU request, after the contract's formula. */
export function weight(milliCpu: number): string {
  const shares = Math.max(2, Math.floor(milliCpu * 1024 / 1000));
  return String(1 + Math.floor((shares - 2) * 9999 / 262142));
}

/** The files of a group that the contract sets. */
export function limitFiles(path: string): Record<"weight" | "cpu" | "memory" | "pids" | "cpus", string> {
  const at = `/sys/fs/cgroup${path}`;
  return {
    weight: `${at}/cpu.weight`,
    cpu: `${at}/cpu.max`,
    memory: `${at}/memory.max`,
    pids: `${at}/pids.max`,
    cpus: `${at}/cpuset.cpus`,
  };
}
