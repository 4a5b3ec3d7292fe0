import type { BoundPod } from "../../mod/kube/types.ts";
import type { MountedVolume } from "../../mod/pod/mounted_volume.ts";

export type { MountedVolume };

/** Sets up and tears down a pod's volumes (features.md section 8). */
export interface VolumeManager {
  /**
   * Sets up every volume that the pod's containers mount, and waits until all are there or the signal aborts.
   * Idempotent: what is set up stays as it is, except that live contents (downwardAPI, Secrets) are brought up to date;
   * where that fails the old contents stay, the failure is told as an event, and `retryInMs` says when to call again.
   * Rejects with KubeletError code Volume that names each volume that failed and why.
   */
  mountPod(pod: BoundPod, signal: AbortSignal): Promise<ReadonlyMap<string, MountedVolume>>;
  /** Milliseconds until contents that could not be brought up to date are worth another try, 0 when they are now; undefined for none. */
  retryInMs(podUid: string): number | undefined;
  /** What the pod's volumes are made of has changed: set-ups that wait for their back-off go on at once. */
  retryNow(podUid: string): void;
  /** Tears down all volumes of a pod, known or only found on disk, and removes their directories. */
  unmountPod(podUid: string, signal: AbortSignal): Promise<void>;
  /** True when volumes of the pod are still set up, by memory or by what is on disk. */
  hasVolumes(podUid: string): Promise<boolean>;
  /** UIDs of pods that have volume directories on disk. */
  podsOnDisk(): Promise<string[]>;
}

/** A set-up or tear-down of a volume that has ended. */
export interface VolumeOperation {
  /** Such as `kubernetes.io/empty-dir`; empty for a plugin that is not known. */
  readonly plugin: string;
  readonly operation: "volume_mount" | "volume_unmount";
  readonly seconds: number;
  readonly failed: boolean;
}

/** Tells how many volumes there are. */
export interface VolumeCounts {
  /** Volumes that are set up, by plugin. */
  mounted(): ReadonlyMap<string, number>;
  /** Volumes that are set up or being set up, by plugin. */
  wanted(): ReadonlyMap<string, number>;
}

/** Makes parts of a volume mountable (volumeMounts with subPath or subPathExpr). */
export interface SubPaths {
  /**
   * Bind-mounts one part of a volume to a place of its own below the pod's directory and returns that path. Links in
   * the volume are followed only while they stay inside it; missing directories are made with the volume's mode. What
   * is mounted already stays. Rejects with KubeletError code Volume. `unmountPod` takes the mounts away.
   */
  prepareSubPath(request: {
    pod: BoundPod;
    /** Container name. */
    container: string;
    /** The mount's place in the container's volumeMounts. */
    index: number;
    volume: MountedVolume;
    /** Relative, without `..`; already expanded. */
    subPath: string;
    signal: AbortSignal;
  }): Promise<string>;
}
