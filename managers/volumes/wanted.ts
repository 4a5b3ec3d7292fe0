import { KubeletError } from "../../mod/base/errors.ts";
import { podContainers } from "../../mod/kube/pod.ts";
import type { BoundPod, Volume } from "../../mod/kube/types.ts";
import { volumeKind } from "./plugin.ts";

/** Volumes that some container mounts, in spec order. */
export function volumesToMount(pod: BoundPod): { volume: Volume; asDevice: boolean }[] {
  const mounts = new Set<string>();
  const devices = new Set<string>();
  for (const { spec } of podContainers(pod)) {
    for (const mount of spec.volumeMounts ?? []) mounts.add(mount.name);
    for (const device of spec.volumeDevices ?? []) devices.add(device.name);
  }
  return (pod.spec.volumes ?? [])
    .filter((v) => mounts.has(v.name) || devices.has(v.name))
    .map((volume) => ({ volume, asDevice: devices.has(volume.name) }));
}

const needApi = new Set(["configMap", "secret", "persistentVolumeClaim", "ephemeral", "csi"]);

/** Why no plugin takes a volume. */
export function unsupported(volume: Volume): string {
  const kind = volumeKind(volume);
  return needApi.has(kind)
    ? `volume kind ${kind} is not available without an API server`
    : `volume kind ${kind} is not supported by this agent`;
}

/** Volumes of a pod are not there. `told`: each was told of by an event of its own already. */
export class VolumesNotMounted extends KubeletError {
  constructor(message: string, readonly told: boolean) {
    super("Volume", message);
  }
}

/** The contract's wait error, with the reason of each volume after it. */
export function waitError(unmounted: string[], unprocessed: string[], reasons: string[]): VolumesNotMounted {
  const list = (names: string[]) => `[${[...names].sort().join(" ")}]`;
  return new VolumesNotMounted(
    `unmounted volumes=${list(unmounted)}, unattached volumes=[], failed to process volumes=${list(unprocessed)}: ` +
      reasons.join("; "),
    unprocessed.length === 0,
  );
}
