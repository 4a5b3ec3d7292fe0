import type { Clock } from "../../mod/base/clock.ts";
import { KubeletError } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { BoundPod, Volume } from "../../mod/kube/types.ts";
import type { MountedVolume } from "./types.ts";

/** A volume found on disk or known from a set-up: all that a tear-down may rely on, because the spec can be gone. */
export interface VolumeOnDisk {
  readonly host: Host;
  readonly log: Logger;
  readonly rootDir: string;
  readonly podUid: string;
  /** The name of the directory: the volume's name in the pod, or the PersistentVolume's. */
  readonly name: string;
  /** `<root>/pods/<uid>/volumes/<plugin>/<name>`; may not exist. */
  readonly dir: string;
  readonly signal: AbortSignal;
}

/** What a set-up works on. */
export interface SetUpContext extends VolumeOnDisk {
  readonly clock: Clock;
  readonly pod: BoundPod;
  readonly volume: Volume;
  /** Reports a warning event about the pod. */
  readonly warn: (reason: string, message: string) => void;
}

/**
 * One kind of volume. Operations of one (pod, volume) never overlap. A set-up may be called again at any time and
 * after a crash at any point, and then completes what is missing.
 */
export interface VolumePlugin {
  /** Such as `kubernetes.io/empty-dir`. */
  readonly name: string;
  /** True when the contents follow the pod or API objects: each sync calls setUp again. */
  readonly live: boolean;
  /** True when a set-up touches paths that are not the agent's own, such as the node's: those may hang. */
  readonly foreign?: boolean;
  canSupport(volume: Volume): boolean;
  /** Stages before a set-up, for volumes that are attached and mounted once per node. */
  attach?(context: SetUpContext): Promise<void>;
  detach?(volume: VolumeOnDisk): Promise<void>;
  /** Rejects with VolumeSpecError when trying again can't help. */
  setUp(context: SetUpContext): Promise<MountedVolume>;
  /** Undoes setUp; without it the manager unmounts all at and below the directory and removes it. */
  tearDown?(volume: VolumeOnDisk): Promise<void>;
  /** Facts about a volume that is only known from disk, such as a CSI driver's record; undefined when it isn't whole. */
  reconstruct?(volume: VolumeOnDisk): Promise<Readonly<Record<string, string>> | undefined>;
}

/** The volume asks for what this node will not give: no retry until the pod changes. */
export class VolumeSpecError extends KubeletError {
  override readonly name = "VolumeSpecError";
  constructor(message: string, options?: { cause?: unknown }) {
    super("Volume", message, options);
  }
}

/** The kind of a volume: its field's name in the spec. One without a source is an emptyDir. */
export function volumeKind(volume: Volume): string {
  return Object.entries(volume).find(([key, value]) => key !== "name" && value !== undefined && value !== null)?.[0] ??
    "emptyDir";
}
