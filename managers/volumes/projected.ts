import { asError, messageOf } from "../../mod/base/errors.ts";
import type { BoundPod, DownwardAPIVolumeFile, VolumeProjection } from "../../mod/kube/types.ts";
import { resolveFieldPath, resolveResource } from "../../mod/pod/config/fieldref.ts";
import type { Payload, PayloadFile } from "./atomic_writer.ts";
import { showGathered, showPayload } from "./contents.ts";
import type { MemoryVolumes } from "./empty_dir.ts";
import { type SetUpContext, volumeKind, type VolumePlugin, VolumeSpecError } from "./plugin.ts";

const defaultFileMode = 0o644;

/** The node's allocatable amounts as quantities, which stand for limits that containers don't set. */
export type Allocatable = () => Readonly<Record<string, string>>;

/** Files of downwardAPI items. Throws VolumeSpecError that names the file. */
export function downwardPayload(
  pod: BoundPod,
  items: readonly DownwardAPIVolumeFile[],
  options: { defaultMode?: number | undefined; allocatable: Allocatable },
): Map<string, PayloadFile> {
  const files = new Map<string, PayloadFile>();
  for (const { path, fieldRef, resourceFieldRef, mode } of items) {
    try {
      let data: string;
      if (fieldRef) data = resolveFieldPath(pod, fieldRef.fieldPath);
      else if (resourceFieldRef) {
        data = resolveResource(undefined, resourceFieldRef, { pod, allocatable: options.allocatable() });
      } else throw new Error("it needs a fieldRef or a resourceFieldRef");
      files.set(path, { data, mode: mode ?? options.defaultMode ?? defaultFileMode });
    } catch (thrown) {
      throw new VolumeSpecError(`downwardAPI file ${JSON.stringify(path)}: ${messageOf(thrown)}`, { cause: thrown });
    }
  }
  return files;
}

interface Options {
  readonly memory?: MemoryVolumes;
  readonly allocatable: Allocatable;
}

/** The pod's own facts as files, brought up to date at each sync. */
export function downwardApiPlugin({ memory = {}, allocatable }: Options): VolumePlugin {
  return {
    name: "kubernetes.io/downward-api",
    live: true,
    canSupport: (volume) => volumeKind(volume) === "downwardAPI",
    setUp: async (context) => {
      const { items = [], defaultMode } = context.volume.downwardAPI ?? {};
      const payload = downwardPayload(context.pod, items, { defaultMode, allocatable });
      return await showPayload(context, payload, { memory });
    },
  };
}

/** Gives the files of one kind of projected source, such as `secret`. */
export interface ProjectionSource {
  readonly kind: keyof VolumeProjection;
  payload(source: VolumeProjection, context: SetUpContext, defaultMode: number): Promise<Payload>;
}

/** Several sources in one directory. Sources other than downwardAPI are handed in by whoever can read them. */
export function projectedPlugin(
  { memory = {}, allocatable, sources = [] }: Options & { sources?: readonly ProjectionSource[] },
): VolumePlugin {
  return {
    name: "kubernetes.io/projected",
    live: true,
    canSupport: (volume) => volumeKind(volume) === "projected",
    setUp: (context) => showGathered(context, () => gather(context, allocatable, sources), { memory }),
  };
}

/** The files of all sources, a later one's in the place of an earlier one's. Rejects with what every source said. */
async function gather(
  context: SetUpContext,
  allocatable: Allocatable,
  sources: readonly ProjectionSource[],
): Promise<Payload> {
  const { projected } = context.volume;
  const defaultMode = projected?.defaultMode ?? defaultFileMode;
  const all = new Map<string, PayloadFile>();
  const errors: Error[] = [];
  for (const source of projected?.sources ?? []) {
    const kinds = Object.keys(source).filter((k) => source[k as keyof VolumeProjection] !== undefined);
    for (const kind of kinds) {
      try {
        const files = kind === "downwardAPI"
          ? downwardPayload(context.pod, source.downwardAPI?.items ?? [], { defaultMode, allocatable })
          : await sources.find((s) => s.kind === kind)?.payload(source, context, defaultMode);
        if (!files) throw new VolumeSpecError(`projected source ${kind} is not available without an API server`);
        for (const [path, file] of files) all.set(path, file);
      } catch (thrown) {
        if (context.signal.aborted) throw thrown;
        errors.push(asError(thrown));
      }
    }
  }
  const [error] = errors;
  if (error && new Set(errors.map((e) => e.message)).size === 1) throw error;
  if (error) throw new AggregateError(errors, `[${[...new Set(errors.map((e) => e.message))].join(", ")}]`);
  return all;
}
