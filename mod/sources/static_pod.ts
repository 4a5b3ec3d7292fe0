import { KubeletError } from "../base/errors.ts";
import { fnv1a128 } from "../base/hash.ts";
import { setOwn } from "../kube/decode.ts";
import { withDefaults } from "../kube/defaults/pod.ts";
import { configHash, configMirror, configSource } from "../kube/pod.ts";
import type { BoundPod, ObjectMeta, Pod, PodSpec, Toleration } from "../kube/types.ts";
import { validatePod } from "../kube/validation/pod.ts";
import { formatProblems } from "../kube/validation/problem.ts";
import { apiReferences } from "./api_references.ts";
import { canonicalDump } from "./canonical_dump.ts";

/** Where a manifest came from. */
export type Origin =
  | { readonly source: "file"; readonly path: string }
  | { readonly source: "http"; readonly url: string };

/** What the rules for static pods need to know. */
export interface StaticPodOptions {
  readonly origin: Origin;
  readonly nodeName: string;
  /** Gate PreventStaticPodAPIReferences; default true. */
  readonly preventApiReferences?: boolean;
}

/** A pod ready to run and what was changed or odd on the way. */
export interface StaticPod {
  readonly pod: BoundPod;
  readonly warnings: readonly string[];
}

/** Version of the text that UIDs are made of; see canonical_dump.ts before touching it. */
const dumpVersion = "static-pod/1";

/**
 * The UID of a static pod: its own, else 32 lower-case hex digits of FNV-1a 128 over a dump of the pod as decoded (before
 * defaults, without status and UID), then `host:<node>` and `file:<path>`, or `url:<url>` (runtime-contract.md section 1).
 * The same manifest gives the same UID after a restart and under another version of the agent.
 */
export function staticPodUid(pod: Pod, options: StaticPodOptions): string {
  if (pod.metadata?.uid) return pod.metadata.uid;
  const { uid: _, ...metadata } = pod.metadata ?? {};
  const { origin } = options;
  const where = origin.source === "file" ? `host:${options.nodeName}file:${origin.path}` : `url:${origin.url}`;
  const dump = canonicalDump("Pod", { metadata, spec: pod.spec });
  return fnv1a128(`${dumpVersion}\n${dump}\n${where}`).toString(16).padStart(32, "0");
}

/**
 * Makes a decoded pod a static pod of this node: name suffix, namespace, UID, annotations, node name, toleration
 * (files only), status Pending; sets the API's defaults; then checks it as the API would on creation, and that it refers
 * to no API object (features.md B5, pkg/kubelet/config/common.go). What a file has no business to say (deletion,
 * status, self link, mirror mark) is dropped with a warning. Throws BadManifest with every problem.
 */
export function toStaticPod(decoded: Pod, options: StaticPodOptions): StaticPod {
  const { origin, nodeName } = options;
  const where = origin.source === "file" ? origin.path : redactUrl(origin.url);
  const name = decoded.metadata?.name ?? "";
  if (name === "") throw new KubeletError("BadManifest", `${where}: metadata.name: a pod needs a name; set one`);
  const uid = staticPodUid(decoded, options);
  if (!/^[A-Za-z0-9][A-Za-z0-9._-]{0,127}$/.test(uid)) {
    throw new KubeletError(
      "BadManifest",
      `${where}: metadata.uid: ${JSON.stringify(uid.slice(0, 80))} can't name a directory; ` +
        "use at most 128 letters, digits, '-', '_', '.', or leave it out",
    );
  }
  const warnings: string[] = [];
  const annotations: Record<string, string> = {};
  for (const [key, value] of Object.entries(decoded.metadata?.annotations ?? {})) {
    if (key === configMirror) warnings.push(`metadata.annotations[${configMirror}]: dropped, a manifest is no mirror`);
    else setOwn(annotations, key, value);
  }
  annotations[configHash] = uid;
  annotations[configSource] = origin.source;

  const { spec, status: _, kind: _kind, apiVersion: _version, ...rest } = withDefaults(decoded);
  const bound: BoundPod = {
    ...rest,
    metadata: {
      ...cleanMetadata(decoded.metadata ?? {}, warnings),
      name: `${name}-${nodeName.toLowerCase()}`,
      namespace: decoded.metadata?.namespace || "default",
      uid,
      annotations,
    },
    spec: bindSpec(spec ?? { containers: [] }, options),
    status: { phase: "Pending" },
  };
  const who = `${where}: pod "${bound.metadata.namespace}/${bound.metadata.name}"`;
  const problems = validatePod(bound);
  if (problems.length > 0) throw new KubeletError("BadManifest", `${who} is invalid: ${formatProblems(problems)}`);
  if (options.preventApiReferences ?? true) refuseReferences(who, bound.spec);
  return { pod: bound, warnings };
}

function bindSpec(spec: PodSpec, options: StaticPodOptions): PodSpec {
  const bound: PodSpec = { ...spec, nodeName: options.nodeName };
  // Node problems must not evict what runs without a scheduler; the reference leaves URL pods out.
  if (options.origin.source === "file") bound.tolerations = tolerateNoExecute(spec.tolerations ?? []);
  return bound;
}

function tolerateNoExecute(tolerations: readonly Toleration[]): Toleration[] {
  const everything: Toleration = { operator: "Exists", effect: "NoExecute" };
  const same = (t: Toleration) => !t.key && !t.value && t.operator === "Exists" && t.effect === "NoExecute";
  if (!tolerations.some(same)) return [...tolerations, everything];
  return tolerations.map((t) => same(t) ? everything : t);
}

const dropped = ["deletionTimestamp", "deletionGracePeriodSeconds", "managedFields", "selfLink"] as const;

function cleanMetadata(metadata: ObjectMeta, warnings: string[]): ObjectMeta {
  const clean = structuredClone(metadata);
  for (const field of dropped) {
    if (clean[field] === undefined) continue;
    delete clean[field];
    warnings.push(`metadata.${field}: dropped, it has no meaning in a manifest`);
  }
  return clean;
}

function refuseReferences(who: string, spec: PodSpec): void {
  const found = apiReferences(spec);
  if (found.length === 0) return;
  const list = found.map(({ resource, path }) => `${resource} (${path})`).join(", ");
  throw new KubeletError(
    "BadManifest",
    `${who}: static pods may not reference ${list}; use literal values or hostPath volumes instead`,
  );
}

/** The URL without its password, for messages. */
export function redactUrl(url: string): string {
  const parsed = URL.canParse(url) ? new URL(url) : undefined;
  if (!parsed?.password) return url;
  parsed.password = "xxxxx";
  return parsed.href;
}
