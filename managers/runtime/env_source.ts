import { asError, KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";
import { isApiNotFound } from "../../mod/kube/api/types.ts";
import type { BoundPod, Container } from "../../mod/kube/types.ts";
import type { EnvObjects } from "../../mod/pod/config/env.ts";
import type { MountedVolume } from "../../mod/pod/mounted_volume.ts";
import type { ObjectReader } from "../objects/types.ts";
import type { EnvSource } from "./types.ts";

/** Files of variables may be this long, in bytes; a container that writes more is no reason to hold it in memory. */
const longestFile = 1 << 20;

export interface EnvSourceOptions {
  readonly host: Pick<Host, "realPath" | "open">;
  readonly log: Logger;
  /** Reads the Secrets and ConfigMaps of pods; none without an API server. */
  readonly objects?: ObjectReader;
  /** Variables of services. Rejects when they are not known. */
  readonly services?: (pod: BoundPod, signal: AbortSignal) => Promise<ReadonlyMap<string, string>>;
}

/** An answer that was got beforehand: what was read, nothing, or why it could not be read. */
type Answer<T> = { readonly data: T | undefined } | { readonly error: Error };

/** Reads what a container's variables refer to (runtime-contract.md section 12; features.md C22–C24). */
export function createEnvSource(options: EnvSourceOptions): EnvSource {
  const { objects, services } = options;
  return {
    async read({ pod, container, volumes, signal }) {
      const { namespace } = pod.metadata;
      const named = namesIn(container);
      const [secrets, configMaps, files] = await Promise.all([
        objects ? answers(named.secrets, signal, (n) => secretData(objects, namespace, n, signal)) : nothing<never>(),
        objects
          ? answers(named.configMaps, signal, (n) => configMapData(objects, namespace, n, signal))
          : nothing<never>(),
        answers(named.files, signal, (key) => fileText(options, volumes, key)),
      ]);
      const answered: EnvObjects = {
        standalone: objects === undefined,
        secret: (name) => given(secrets.get(name)),
        configMap: (name) => given(configMaps.get(name)),
        file: (volume, path) => given(files.get(fileKey(volume, path))),
      };
      return { objects: answered, services: await services?.(pod, signal) ?? new Map() };
    },
  };
}

function nothing<T>(): Map<string, Answer<T>> {
  return new Map();
}

function fileKey(volume: string, path: string): string {
  return `${volume}/${path}`;
}

function namesIn(container: Container): Record<"secrets" | "configMaps" | "files", ReadonlySet<string>> {
  const secrets = new Set<string>();
  const configMaps = new Set<string>();
  const files = new Set<string>();
  for (const { secretRef, configMapRef } of container.envFrom ?? []) {
    if (secretRef?.name) secrets.add(secretRef.name);
    if (configMapRef?.name) configMaps.add(configMapRef.name);
  }
  for (const { valueFrom } of container.env ?? []) {
    if (valueFrom?.secretKeyRef?.name) secrets.add(valueFrom.secretKeyRef.name);
    if (valueFrom?.configMapKeyRef?.name) configMaps.add(valueFrom.configMapKeyRef.name);
    if (valueFrom?.fileKeyRef) files.add(fileKey(valueFrom.fileKeyRef.volumeName, valueFrom.fileKeyRef.path));
  }
  return { secrets, configMaps, files };
}

async function answers<T>(
  names: ReadonlySet<string>,
  signal: AbortSignal,
  read: (name: string) => Promise<T | undefined>,
): Promise<Map<string, Answer<T>>> {
  const all = await Promise.all([...names].map(async (name): Promise<[string, Answer<T>]> => {
    try {
      return [name, { data: await read(name) }];
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      return [name, isApiNotFound(thrown) ? { data: undefined } : { error: asError(thrown) }];
    }
  }));
  return new Map(all);
}

function given<T>(answer: Answer<T> | undefined): T | undefined {
  if (answer && "error" in answer) throw answer.error;
  return answer?.data;
}

async function configMapData(
  objects: ObjectReader,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<Readonly<Record<string, string>>> {
  return (await objects.configMap(namespace, name, signal)).data ?? {};
}

async function secretData(
  objects: ObjectReader,
  namespace: string,
  name: string,
  signal: AbortSignal,
): Promise<Readonly<Record<string, Uint8Array>>> {
  const { data = {} } = await objects.secret(namespace, name, signal);
  return Object.fromEntries(Object.entries(data).map(([key, text]) => [key, Uint8Array.fromBase64(text)]));
}

/** The text of a volume's file; undefined, and why in the log, when it cannot be read. */
async function fileText(
  { host, log }: EnvSourceOptions,
  volumes: ReadonlyMap<string, MountedVolume>,
  key: string,
): Promise<string | undefined> {
  const slash = key.indexOf("/");
  const [name, path] = [key.slice(0, slash), key.slice(slash + 1)];
  const volume = volumes.get(name);
  if (!volume) return undefined;
  try {
    return await textBelow(host, volume.hostPath, path);
  } catch (thrown) {
    log.warn("a file of variables cannot be read", { volume: name, path, error: messageOf(thrown) });
    return undefined;
  }
}

/** Reads a file below a directory whose contents containers make: no link of theirs may lead out of it. */
async function textBelow(host: EnvSourceOptions["host"], root: string, path: string): Promise<string> {
  const top = await host.realPath(root);
  const full = `${root}/${path}`;
  const real = await host.realPath(full);
  if (!real.startsWith(`${top}/`)) throw new KubeletError("BadPod", `${path} leads out of its volume`);
  using file = await host.open(real);
  const { size } = await file.info();
  if (size > longestFile) throw new KubeletError("BadPod", `${path} is longer than ${longestFile} bytes`);
  const bytes = new Uint8Array(size);
  let at = 0;
  for (let n = -1; n !== 0 && at < size; at += n) n = await file.read(bytes.subarray(at), at);
  // What was a directory a moment ago may have been made a link meanwhile: then the file may be another's.
  if (await host.realPath(real) !== real) throw new KubeletError("BadPod", `${path} changes while it is read`);
  return new TextDecoder().decode(bytes.subarray(0, at));
}
