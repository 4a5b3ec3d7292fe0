import type { PodObjects } from "../../managers/objects/types.ts";
import type { VolumeManager } from "../../managers/volumes/types.ts";
import type { BoundPod } from "../kube/types.ts";
import type { MountedVolume } from "../pod/mounted_volume.ts";

interface Known {
  /** The definition that the volumes were last brought up to date for. */
  mountedFor: BoundPod | undefined;
  volumes: ReadonlyMap<string, MountedVolume>;
  /** Grows with each change of what the volumes are made of. */
  changes: number;
}

/** What the syncer knows of pods' volumes, and when it is time to look after them again. */
export class PodVolumes {
  readonly #volumes: VolumeManager;
  readonly #objects: Pick<PodObjects, "register" | "unregister"> | undefined;
  readonly #known = new Map<string, Known>();

  /** @param objects where the pod's Secrets and ConfigMaps are kept meanwhile; none without an API server */
  constructor(volumes: VolumeManager, objects: Pick<PodObjects, "register" | "unregister"> | undefined) {
    this.#volumes = volumes;
    this.#objects = objects;
  }

  /** The pod's volumes as they were last set up. */
  of(uid: string): ReadonlyMap<string, MountedVolume> {
    return this.#known.get(uid)?.volumes ?? new Map();
  }

  /** True when nothing has changed since the volumes were brought up to date. */
  upToDate(pod: BoundPod): boolean {
    const { uid } = pod.metadata;
    return sameDefinition(this.#known.get(uid)?.mountedFor, pod) && this.#volumes.retryInMs(uid) !== 0;
  }

  /** Milliseconds until contents that could not be brought up to date are tried again; undefined for none. */
  retryInMs(uid: string): number | undefined {
    return this.#volumes.retryInMs(uid);
  }

  /** Sets the volumes up, or brings them up to date. Rejects with code Volume. */
  async mount(pod: BoundPod, signal: AbortSignal): Promise<void> {
    const { uid } = pod.metadata;
    const known = this.#known.get(uid) ?? { mountedFor: undefined, volumes: new Map(), changes: 0 };
    this.#known.set(uid, known);
    this.#objects?.register(pod);
    const { changes } = known;
    known.volumes = await this.#volumes.mountPod(pod, signal);
    // A change that came meanwhile may not have been seen.
    if (known.changes === changes) known.mountedFor = pod;
  }

  /** What the pod's volumes are made of has changed: the next pass brings them up to date. */
  changed(uid: string): void {
    const known = this.#known.get(uid);
    if (!known) return;
    known.changes++;
    known.mountedFor = undefined;
    this.#volumes.retryNow(uid);
  }

  /** Takes the pod's volumes down; its objects are kept no longer. */
  async unmount(uid: string, signal: AbortSignal): Promise<void> {
    await this.#volumes.unmountPod(uid, signal);
    this.#objects?.unregister(uid);
    this.#known.delete(uid);
  }
}

/** True when what a pod's directories, group and volumes are made from is the same; a pod's status is not. */
function sameDefinition(a: BoundPod | undefined, b: BoundPod): boolean {
  return a?.spec === b.spec && a.metadata.labels === b.metadata.labels &&
    a.metadata.annotations === b.metadata.annotations;
}
