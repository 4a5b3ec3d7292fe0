import { KubeletError } from "../../mod/base/errors.ts";
import { isApiNotFound } from "../../mod/kube/api/types.ts";
import type { ConfigMap, KeyToPath, Secret } from "../../mod/kube/types.ts";
import type { ObjectReader } from "../objects/types.ts";
import type { Payload, PayloadFile } from "./atomic_writer.ts";
import { showGathered } from "./contents.ts";
import type { MemoryVolumes } from "./empty_dir.ts";
import { type SetUpContext, volumeKind, type VolumePlugin } from "./plugin.ts";

/** Mode of files when the volume gives none (features.md section 11). */
const defaultFileMode = 0o644;

/** How an object's keys become files. */
export interface Mapping {
  readonly items?: readonly KeyToPath[] | undefined;
  readonly defaultMode?: number | undefined;
  readonly optional?: boolean | undefined;
}

function decoded(data: Readonly<Record<string, string>> | undefined): [string, Uint8Array][] {
  return Object.entries(data ?? {}).map(([key, text]) => {
    try {
      return [key, Uint8Array.fromBase64(text)];
    } catch (cause) {
      throw new KubeletError("Volume", `the value of key ${JSON.stringify(key)} is no base64; write the object anew`, {
        cause,
      });
    }
  });
}

/**
 * All keys as files of their names, or those that `items` name at their paths.
 * Throws code Volume for a key that is not there and may not be missing.
 */
function payloadOf(
  data: ReadonlyMap<string, string | Uint8Array>,
  { items = [], defaultMode = defaultFileMode, optional }: Mapping,
  missingKey: string,
): Map<string, PayloadFile> {
  if (items.length === 0) return new Map([...data].map(([key, value]) => [key, { data: value, mode: defaultMode }]));
  const files = new Map<string, PayloadFile>();
  for (const { key, path, mode } of items) {
    const value = data.get(key);
    if (value !== undefined) files.set(path, { data: value, mode: mode ?? defaultMode });
    else if (optional !== true) throw new KubeletError("Volume", `${missingKey}: ${key}`);
  }
  return files;
}

/** Files of a Secret's keys. */
export function secretPayload(secret: Secret | undefined, mapping: Mapping): Payload {
  return payloadOf(new Map(decoded(secret?.data)), mapping, "references non-existent secret key");
}

/** Files of a ConfigMap's keys; where text and bytes have one key, an item takes the text, all keys take the bytes. */
export function configMapPayload(configMap: ConfigMap | undefined, mapping: Mapping): Payload {
  const text = Object.entries(configMap?.data ?? {});
  const bytes = decoded(configMap?.binaryData);
  const inOrder = mapping.items?.length ? [...bytes, ...text] : [...text, ...bytes];
  const data = new Map<string, string | Uint8Array>(inOrder);
  return payloadOf(data, mapping, "configmap references non-existent config key");
}

/** The object; undefined when there is none and that is allowed. */
export async function optionally<T>(read: Promise<T>, optional: boolean | undefined): Promise<T | undefined> {
  try {
    return await read;
  } catch (thrown) {
    if (optional === true && isApiNotFound(thrown)) return undefined;
    throw thrown;
  }
}

/** Reads the Secret that a volume, or a part of one, names in the pod's namespace. */
export async function readSecret(
  objects: ObjectReader,
  { pod, signal }: SetUpContext,
  name: string,
  mapping: Mapping,
): Promise<Payload> {
  return secretPayload(
    await optionally(objects.secret(pod.metadata.namespace, name, signal), mapping.optional),
    mapping,
  );
}

/** Reads the ConfigMap that a volume, or a part of one, names in the pod's namespace. */
export async function readConfigMap(
  objects: ObjectReader,
  { pod, signal }: SetUpContext,
  name: string,
  mapping: Mapping,
): Promise<Payload> {
  return configMapPayload(
    await optionally(objects.configMap(pod.metadata.namespace, name, signal), mapping.optional),
    mapping,
  );
}

/** Secrets as files in memory (features.md H7). */
export function secretPlugin(objects: ObjectReader, memory: MemoryVolumes): VolumePlugin {
  return {
    name: "kubernetes.io/secret",
    live: true,
    canSupport: (volume) => volumeKind(volume) === "secret",
    setUp: (context) => {
      const { secret = {} } = context.volume;
      return showGathered(context, () => readSecret(objects, context, secret.secretName ?? "", secret), { memory });
    },
  };
}

/** ConfigMaps as files on the node's disk (features.md H6). */
export function configMapPlugin(objects: ObjectReader): VolumePlugin {
  return {
    name: "kubernetes.io/configmap",
    live: true,
    canSupport: (volume) => volumeKind(volume) === "configMap",
    setUp: (context) => {
      const { configMap = {} } = context.volume;
      return showGathered(context, () => readConfigMap(objects, context, configMap.name ?? "", configMap), "disk");
    },
  };
}
