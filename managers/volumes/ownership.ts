import type { Clock } from "../../mod/base/clock.ts";
import type { Host } from "../../mod/base/host.ts";
import type { PodSecurityContext } from "../../mod/kube/types.ts";

const setgid = 0o2000;
/** When a change that goes on is told of first, and how often after that (features.md section 11), milliseconds. */
const firstReportMs = 30_000;
const reportMs = 60_000;

/** A file's mode when its volume belongs to a group (features.md section 11, fsGroup). */
export function fsGroupFileMode(mode: number, readOnly: boolean): number {
  return mode | (readOnly ? 0o440 : 0o660);
}

/** A directory's mode when its volume belongs to a group. */
export function fsGroupDirMode(mode: number, readOnly: boolean): number {
  return fsGroupFileMode(mode, readOnly) | 0o110 | setgid;
}

/** What a volume is given to a group with. */
export interface GroupChange {
  readonly host: Pick<Host, "stat" | "groupTree">;
  readonly clock: Pick<Clock, "after">;
  /** The volume's directory. */
  readonly dir: string;
  readonly podUid: string;
  /** The pod's fsGroup; undefined changes nothing. */
  readonly gid: number | undefined;
  readonly readOnly: boolean;
  /** OnRootMismatch only where the volume's kind heeds it; undefined is Always. */
  readonly policy?: PodSecurityContext["fsGroupChangePolicy"] | undefined;
  readonly signal: AbortSignal;
  /** Told while it takes long: the text of an event VolumePermissionChangeInProgress. */
  readonly onSlow: (message: string) => void;
}

/**
 * Gives a volume and all in it to the pod's group. With OnRootMismatch nothing is done when the volume's directory has
 * the group and the mode bits already. Links are not followed. Rejects when some entry cannot be changed.
 */
export async function giveToGroup(change: GroupChange): Promise<void> {
  const { host, clock, dir, podUid, gid, readOnly, signal } = change;
  if (gid === undefined || (change.policy === "OnRootMismatch" && await rootFits(change, gid))) return;
  const at = dir.indexOf(podUid);
  const shown = at < 0 ? dir : dir.slice(at);
  let entries = 0;
  let timer = clock.after(firstReportMs, () => {
    change.onSlow(
      `Setting volume ownership for ${shown} is taking longer than expected, consider using OnRootMismatch - ` +
        "https://kubernetes.io/docs/tasks/configure-pod-container/security-context/" +
        "#configure-volume-permission-and-ownership-change-policy-for-pods",
    );
    again();
  });
  const again = () => {
    timer = clock.after(reportMs, () => {
      change.onSlow(`Setting volume ownership for ${shown}, processed ${entries} files.`);
      again();
    });
  };
  try {
    await host.groupTree(dir, {
      gid,
      fileBits: fsGroupFileMode(0, readOnly),
      directoryBits: fsGroupDirMode(0, readOnly),
      signal,
      onEntry: () => entries++,
    });
  } finally {
    timer[Symbol.dispose]();
  }
}

async function rootFits({ host, dir, readOnly }: GroupChange, gid: number): Promise<boolean> {
  const info = await host.stat(dir);
  return info?.kind === "directory" && info.gid === gid && fsGroupDirMode(info.mode, readOnly) === info.mode;
}
