import { emptyDirPlugin, type MemoryVolumes } from "./empty_dir.ts";
import { hostPathPlugin } from "./host_path.ts";
import { imagePlugin } from "./image.ts";
import type { VolumePlugin } from "./plugin.ts";
import { type Allocatable, downwardApiPlugin, projectedPlugin, type ProjectionSource } from "./projected.ts";

/** The volume kinds that need no API server. Further ones (Secrets, ConfigMaps, CSI) are put beside them. */
export function standardPlugins(options: {
  readonly memory: MemoryVolumes;
  readonly allocatable: Allocatable;
  /** Sources of projected volumes besides downwardAPI. */
  readonly sources?: readonly ProjectionSource[];
}): VolumePlugin[] {
  return [
    emptyDirPlugin(options.memory),
    hostPathPlugin(),
    downwardApiPlugin(options),
    projectedPlugin(options),
    imagePlugin(),
  ];
}
