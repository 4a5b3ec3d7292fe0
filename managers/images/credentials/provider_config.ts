import { createHash } from "node:crypto";
import { parseDuration } from "../../../mod/base/duration.ts";
import { KubeletError, messageOf } from "../../../mod/base/errors.ts";
import type { Host } from "../../../mod/base/host.ts";
import { parseText, type Tree, type TreeMap } from "../../../mod/kube/yaml_tree.ts";

/** What a plugin is given of a pod's service account. */
export interface TokenAttributes {
  readonly audience: string;
  /** Pods without a service account get nothing from the plugin. */
  readonly required: boolean;
  readonly requiredAnnotations: readonly string[];
  readonly optionalAnnotations: readonly string[];
  /** Credentials are kept for the account, or for one token of it only. */
  readonly cacheType: "ServiceAccount" | "Token";
}

/** One credential provider plugin (features.md section 13, credential plugin config). */
export interface ProviderConfig {
  /** Also the name of its program. */
  readonly name: string;
  /** Of its requests and answers. */
  readonly apiVersion: string;
  readonly matchImages: readonly string[];
  /** How long credentials are kept when the plugin does not say, in milliseconds. */
  readonly defaultCacheMs: number;
  readonly args: readonly string[];
  readonly env: Readonly<Record<string, string>>;
  readonly token?: TokenAttributes;
}

const configVersions = ["v1", "v1beta1", "v1alpha1"].map((v) => `kubelet.config.k8s.io/${v}`);
export const providerVersions = ["v1", "v1beta1", "v1alpha1"].map((v) => `credentialprovider.kubelet.k8s.io/${v}`);
const longestFile = 10 << 20;

/** A place in a file, for messages. */
class At {
  constructor(readonly file: string, readonly path: string) {}

  in(field: string | number): At {
    const step = typeof field === "number" ? `[${field}]` : this.path === "" ? field : `.${field}`;
    return new At(this.file, this.path + step);
  }

  refuse(problem: string): never {
    throw new KubeletError("BadConfig", `credential provider config ${this.file}: ${this.path || "it"}: ${problem}`);
  }
}

function mapAt(tree: Tree | undefined, at: At, known: readonly string[]): TreeMap {
  if (!(tree instanceof Map)) at.refuse("must be an object");
  const map: TreeMap = tree;
  for (const key of map.keys()) {
    if (!known.includes(key)) at.in(key).refuse(`unknown field; the fields are ${known.join(", ")}`);
  }
  return map;
}

function text(tree: Tree | undefined, at: At): string {
  if (tree === undefined || tree === null) return "";
  return typeof tree === "string" ? tree : at.refuse("must be a string");
}

function list(tree: Tree | undefined, at: At): readonly Tree[] {
  if (tree === undefined || tree === null) return [];
  return Array.isArray(tree) ? tree : at.refuse("must be a list");
}

function texts(tree: Tree | undefined, at: At): string[] {
  return list(tree, at).map((one, i) => text(one, at.in(i)));
}

/** The plugins of a configuration, and a digest of its text (`sha256:…`) by which its changes are noticed. */
export interface ProviderConfigs {
  readonly providers: readonly ProviderConfig[];
  readonly hash: string;
}

/** Every plugin's configuration in a file, or in the *.json, *.yaml and *.yml files of a directory. Throws BadConfig. */
export async function readProviderConfigs(
  host: Pick<Host, "stat" | "readDir" | "readBytes">,
  path: string,
): Promise<ProviderConfigs> {
  const info = await host.stat(path);
  if (!info) {
    throw new KubeletError("BadConfig", `credential provider config ${path}: there is nothing; check the flag`);
  }
  let files = [path];
  if (info.kind === "directory") {
    files = (await host.readDir(path)).filter(({ name, kind }) => kind !== "directory" && /\.(json|ya?ml)$/.test(name))
      .map(({ name }) => `${path}/${name}`).sort();
    if (files.length === 0) throw new KubeletError("BadConfig", `no configuration files found in directory ${path}`);
  }
  const providers = new Map<string, ProviderConfig>();
  const hash = createHash("sha256");
  for (const file of files) {
    const bytes = await host.readBytes(file, longestFile);
    const length = new DataView(new ArrayBuffer(8));
    length.setBigUint64(0, BigInt(bytes.length));
    hash.update(length).update(bytes);
    for (const provider of readText(bytes, file)) {
      if (providers.has(provider.name)) {
        throw new KubeletError(
          "BadConfig",
          `credential provider config ${file}: there are two providers named ${JSON.stringify(provider.name)}; ` +
            "remove or rename one",
        );
      }
      providers.set(provider.name, provider);
    }
  }
  if (providers.size === 0) {
    throw new KubeletError("BadConfig", `credential provider config ${path}: it has no providers`);
  }
  return { providers: [...providers.values()], hash: `sha256:${hash.digest("hex")}` };
}

function readText(bytes: Uint8Array, file: string): ProviderConfig[] {
  const at = new At(file, "");
  const { tree } = parseText(bytes, { what: file, code: "BadConfig" });
  const map = mapAt(tree, at, ["apiVersion", "kind", "providers"]);
  const version = text(map.get("apiVersion"), at.in("apiVersion"));
  if (!configVersions.includes(version)) at.in("apiVersion").refuse(`must be one of ${configVersions.join(", ")}`);
  if (map.get("kind") !== "CredentialProviderConfig") at.in("kind").refuse("must be CredentialProviderConfig");
  const providers = at.in("providers");
  return list(map.get("providers"), providers).map((one, i) => readProvider(one, providers.in(i)));
}

function readProvider(tree: Tree, at: At): ProviderConfig {
  const fields = ["name", "matchImages", "defaultCacheDuration", "apiVersion", "args", "env", "tokenAttributes"];
  const map = mapAt(tree, at, fields);
  const name = text(map.get("name"), at.in("name"));
  if (!/^[^/\s\0]+$/.test(name) || name === "." || name === "..") {
    at.in("name").refuse("must be the name of a program, without '/' and spaces");
  }
  const apiVersion = text(map.get("apiVersion"), at.in("apiVersion"));
  if (!providerVersions.includes(apiVersion)) {
    at.in("apiVersion").refuse(`must be one of ${providerVersions.join(", ")}`);
  }
  const matchImages = texts(map.get("matchImages"), at.in("matchImages"));
  if (matchImages.length === 0) at.in("matchImages").refuse("must name at least one image");
  const broken = matchImages.findIndex((image) => image === "" || /[\s?#\\\0]/.test(image));
  if (broken >= 0) at.in("matchImages").in(broken).refuse("must be a registry's address, without scheme and spaces");
  const env = list(map.get("env"), at.in("env")).map((one, i): [string, string] => {
    const here = at.in("env").in(i);
    const pair = mapAt(one, here, ["name", "value"]);
    const variable = text(pair.get("name"), here.in("name"));
    if (variable === "" || /[=\0]/.test(variable)) here.in("name").refuse("must be a variable's name");
    return [variable, text(pair.get("value"), here.in("value"))];
  });
  const attributes = map.get("tokenAttributes");
  const token = attributes === undefined || attributes === null
    ? undefined
    : readToken(attributes, at.in("tokenAttributes"), apiVersion);
  return {
    name,
    apiVersion,
    matchImages,
    defaultCacheMs: readDuration(map.get("defaultCacheDuration"), at.in("defaultCacheDuration")),
    args: texts(map.get("args"), at.in("args")),
    env: Object.fromEntries(env),
    ...(token ? { token } : {}),
  };
}

function readDuration(tree: Tree | undefined, at: At): number {
  const value = text(tree, at);
  if (value === "") at.refuse('is required, such as "12h"');
  let ms: number;
  try {
    ms = parseDuration(value);
  } catch (thrown) {
    at.refuse(messageOf(thrown));
  }
  return ms < 0 ? at.refuse("must be greater than or equal to 0") : ms;
}

function readToken(tree: Tree, at: At, apiVersion: string): TokenAttributes {
  const fields = [
    "serviceAccountTokenAudience",
    "requireServiceAccount",
    "requiredServiceAccountAnnotationKeys",
    "optionalServiceAccountAnnotationKeys",
    "cacheType",
  ];
  const map = mapAt(tree, at, fields);
  const [first] = providerVersions;
  if (apiVersion !== first) at.refuse(`needs apiVersion ${first}`);
  const audience = text(map.get("serviceAccountTokenAudience"), at.in("serviceAccountTokenAudience"));
  if (audience === "") at.in("serviceAccountTokenAudience").refuse("is required");
  const required = map.get("requireServiceAccount");
  if (typeof required !== "boolean") return at.in("requireServiceAccount").refuse("is required, true or false");
  const cacheType = text(map.get("cacheType"), at.in("cacheType"));
  if (cacheType !== "ServiceAccount" && cacheType !== "Token") {
    return at.in("cacheType").refuse("must be ServiceAccount or Token");
  }
  const requiredAnnotations = keys(map, at, "requiredServiceAccountAnnotationKeys");
  const optionalAnnotations = keys(map, at, "optionalServiceAccountAnnotationKeys");
  if (!required && requiredAnnotations.length > 0) {
    at.in("requiredServiceAccountAnnotationKeys").refuse("needs requireServiceAccount: true");
  }
  const both = requiredAnnotations.find((key) => optionalAnnotations.includes(key));
  if (both !== undefined) at.refuse(`annotation ${JSON.stringify(both)} cannot be both required and optional`);
  return { audience, required, requiredAnnotations, optionalAnnotations, cacheType };
}

const qualifiedName = /^(?:[a-z0-9](?:[-a-z0-9.]{0,251}[a-z0-9])?\/)?[a-z0-9](?:[-a-z0-9_.]{0,61}[a-z0-9])?$/i;

function keys(map: TreeMap, at: At, field: string): string[] {
  const found = texts(map.get(field), at.in(field));
  const bad = found.findIndex((key, i) => !qualifiedName.test(key) || found.indexOf(key) !== i);
  return bad < 0 ? found : at.in(field).in(bad).refuse("must be an annotation's key, each only once");
}
