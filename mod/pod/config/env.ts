/** A container's environment variables (runtime-contract.md section 12). */
import type { BoundPod, Container, EnvFromSource, EnvVarSource } from "../../kube/types.ts";
import { valueInEnvFile } from "./env_file.ts";
import { asConfigError, CreateContainerConfigError } from "./errors.ts";
import { expand, lookupIn } from "./expand.ts";
import { type FieldContext, resolveFieldPath, resolveResource } from "./fieldref.ts";

/** One variable. `bytes` is set where the value is a Secret's, whose bytes need not be text. */
export interface EnvValue {
  readonly name: string;
  readonly value: string;
  readonly bytes?: Uint8Array;
}

/** The ConfigMaps and Secrets of the pod's namespace, and files of its volumes, read beforehand. */
export interface EnvObjects {
  /** True for an agent without an API server, which can have no objects at all. */
  readonly standalone: boolean;
  /** The data of a ConfigMap, or undefined when there is none of the name. */
  configMap(name: string): Readonly<Record<string, string>> | undefined;
  /** The decoded data of a Secret. */
  secret(name: string): Readonly<Record<string, Uint8Array>> | undefined;
  /** The text of a file of a volume, or undefined when it can't be read. */
  file?(volume: string, path: string): string | undefined;
}

/** What an agent without an API server has. */
export const noObjects: EnvObjects = {
  standalone: true,
  configMap: () => undefined,
  secret: () => undefined,
};

export interface EnvInput {
  readonly pod: BoundPod;
  readonly container: Container;
  readonly objects: EnvObjects;
  /** Variables of services, which never override the container's own. */
  readonly services: ReadonlyMap<string, string>;
  readonly fields: FieldContext;
  /** The node's allocatable amounts. */
  readonly allocatable: Readonly<Record<string, string>>;
}

type Kind = "configMap" | "secret";
type Data = ReadonlyMap<string, string | Uint8Array>;

function missing(input: EnvInput, kind: Kind, name: string): CreateContainerConfigError {
  const { namespace } = input.pod.metadata;
  return new CreateContainerConfigError(
    input.objects.standalone
      ? `couldn't get ${kind} ${namespace}/${name}, no kubeClient defined`
      : `${kind.toLowerCase()} "${name}" not found`,
  );
}

/** The object's data, or undefined when it may be missing and is. */
function dataOf(input: EnvInput, kind: Kind, name: string, optional: boolean): Data | undefined {
  const data = kind === "configMap" ? input.objects.configMap(name) : input.objects.secret(name);
  if (data !== undefined) return new Map<string, string | Uint8Array>(Object.entries(data));
  if (optional) return undefined;
  throw missing(input, kind, name);
}

function keyOf(
  input: EnvInput,
  kind: Kind,
  ref: { name?: string; key: string; optional?: boolean },
): string | Uint8Array | undefined {
  const name = ref.name ?? "";
  const data = dataOf(input, kind, name, ref.optional === true);
  const value = data?.get(ref.key);
  if (value !== undefined || ref.optional === true) return value;
  const word = kind === "configMap" ? "ConfigMap" : "Secret";
  throw new CreateContainerConfigError(
    `couldn't find key ${ref.key} in ${word} ${input.pod.metadata.namespace}/${name}`,
  );
}

function fromFile(input: EnvInput, ref: NonNullable<EnvVarSource["fileKeyRef"]>): string | undefined {
  if (!(input.pod.spec.volumes ?? []).some((v) => v.name === ref.volumeName)) {
    throw new CreateContainerConfigError(`cannot find the volume "${ref.volumeName}" referenced by FileKeyRef`);
  }
  const text = input.objects.file?.(ref.volumeName, ref.path);
  if (text === undefined) throw new CreateContainerConfigError(`couldn't parse env file`);
  const value = valueInEnvFile(text, ref.key);
  if (value !== undefined || ref.optional === true) return value;
  throw new CreateContainerConfigError(
    `environment variable key "${ref.key}" not found in file "${ref.path}" of volume "${ref.volumeName}"`,
  );
}

/** The value of a source; undefined when the variable is left out, being optional. */
function fromSource(input: EnvInput, source: EnvVarSource): string | Uint8Array | undefined {
  const { pod, container } = input;
  if (source.fieldRef !== undefined) return resolveFieldPath(pod, source.fieldRef.fieldPath, input.fields);
  if (source.resourceFieldRef !== undefined) return resolveResource(container, source.resourceFieldRef, input);
  if (source.configMapKeyRef !== undefined) return keyOf(input, "configMap", source.configMapKeyRef);
  if (source.secretKeyRef !== undefined) return keyOf(input, "secret", source.secretKeyRef);
  return source.fileKeyRef === undefined ? "" : fromFile(input, source.fileKeyRef);
}

function fromObject(input: EnvInput, from: EnvFromSource): Data {
  const ref = from.configMapRef ?? from.secretRef;
  if (ref === undefined) return new Map();
  const kind = from.configMapRef === undefined ? "secret" : "configMap";
  return dataOf(input, kind, ref.name ?? "", ref.optional === true) ?? new Map();
}

/**
 * The container's variables: those of whole objects (the later wins), then its own (which win over them, each may refer
 * to those before it and to services), then the services' that have no like-named one.
 * Throws CreateContainerConfigError that names the object, key or path that can't be had.
 */
export function containerEnv(input: EnvInput): EnvValue[] {
  const { pod, container, services } = input;
  if (pod.spec.enableServiceLinks === undefined) {
    throw new CreateContainerConfigError("nil pod.spec.enableServiceLinks encountered, cannot construct envvars");
  }
  const values = new Map<string, string>();
  const raw = new Map<string, Uint8Array>();
  const set = (name: string, value: string | Uint8Array) => {
    raw.delete(name);
    if (typeof value !== "string") raw.set(name, value);
    values.set(name, typeof value === "string" ? value : new TextDecoder().decode(value));
  };
  return asConfigError(() => {
    for (const from of container.envFrom ?? []) {
      for (const [key, value] of fromObject(input, from)) set((from.prefix ?? "") + key, value);
    }
    const lookup = lookupIn(values, services);
    for (const { name, value, valueFrom } of container.env ?? []) {
      const got = value ? expand(value, lookup) : valueFrom === undefined ? "" : fromSource(input, valueFrom);
      if (got !== undefined) set(name, got);
    }
    for (const [name, value] of services) if (!values.has(name)) set(name, value);
    return [...values].map(([name, value]) => {
      const bytes = raw.get(name);
      return bytes === undefined ? { name, value } : { name, value, bytes };
    });
  });
}
