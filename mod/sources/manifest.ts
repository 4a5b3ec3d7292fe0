import { KubeletError } from "../base/errors.ts";
import { decode, kindOf } from "../kube/decode.ts";
import type { Pod } from "../kube/types.ts";
import { parseDocuments, parseText, type Tree, type TreeMap } from "../kube/yaml_tree.ts";
import type { BoundPod } from "../kube/types.ts";
import { redactUrl, type StaticPodOptions, toStaticPod } from "./static_pod.ts";

/** Pods of one manifest, and what was odd about it. */
export interface Manifest {
  readonly pods: readonly BoundPod[];
  readonly warnings: readonly string[];
}

function placeOf(options: StaticPodOptions): string {
  return options.origin.source === "file" ? options.origin.path : redactUrl(options.origin.url);
}

/**
 * Reads a file's manifest: one pod, of apiVersion v1, in its first document, as the reference does
 * (pkg/kubelet/config/file.go). Throws BadManifest.
 */
export function readPod(text: string | Uint8Array, options: StaticPodOptions): Manifest {
  const what = placeOf(options);
  const { tree, warnings } = parseText(text, { what });
  const { pods, warnings: more } = podsOf(tree, options, false);
  return { pods, warnings: [...warnings, ...more] };
}

/** Reads a URL's answer: one pod or a list of pods; one bad pod refuses the answer (pkg/kubelet/config/http.go). */
export function readPodOrList(text: string | Uint8Array, options: StaticPodOptions): Manifest {
  const what = placeOf(options);
  const { tree, warnings } = parseText(text, { what });
  const { pods, warnings: more } = podsOf(tree, options, true);
  return { pods, warnings: [...warnings, ...more] };
}

/** Reads a stream of documents, each a pod or a list; a bad document doesn't hurt the others. */
export function readStream(
  text: string | Uint8Array,
  options: StaticPodOptions,
): Manifest & { readonly errors: readonly KubeletError[] } {
  const pods: BoundPod[] = [];
  const warnings: string[] = [];
  const errors: KubeletError[] = [];
  for (const document of parseDocuments(text, { what: placeOf(options) })) {
    try {
      if (document instanceof KubeletError) throw document;
      const found = podsOf(document.tree, options, true);
      pods.push(...found.pods);
      warnings.push(...document.warnings, ...found.warnings);
    } catch (thrown) {
      if (!(thrown instanceof KubeletError)) throw thrown;
      errors.push(thrown);
    }
  }
  return { pods, warnings, errors };
}

function podsOf(tree: Tree, options: StaticPodOptions, lists: boolean): Manifest {
  const what = placeOf(options);
  const { apiVersion, kind } = kindOf(tree);
  const isList = lists && (kind === "PodList" || kind === "List");
  if (apiVersion !== "v1" || (kind !== "Pod" && !isList)) {
    const want = lists ? "kind Pod or PodList" : "kind Pod";
    const got = `apiVersion ${JSON.stringify(apiVersion.slice(0, 80))}, kind ${JSON.stringify(kind.slice(0, 80))}`;
    throw new KubeletError("BadManifest", `${what}: want an object of apiVersion v1 and ${want}, got ${got}`);
  }
  if (!isList) return onePod(tree, options, what);
  const items = (tree as TreeMap).get("items") ?? [];
  if (!Array.isArray(items)) throw new KubeletError("BadManifest", `${what}: items: want a list of pods`);
  const found = items.map((item: Tree, i) => {
    const stated = kindOf(item);
    if (stated.kind !== "" && stated.kind !== "Pod") {
      throw new KubeletError("BadManifest", `${what}: items[${i}]: want a Pod, got ${JSON.stringify(stated.kind)}`);
    }
    return onePod(item, options, `${what}: items[${i}]`);
  });
  return { pods: found.flatMap(({ pods }) => pods), warnings: found.flatMap(({ warnings }) => warnings) };
}

function onePod(tree: Tree, options: StaticPodOptions, what: string): Manifest {
  const decoded = decode<Pod>("Pod", tree, { what });
  try {
    const { pod, warnings } = toStaticPod(decoded.value, options);
    return { pods: [pod], warnings: [...decoded.warnings, ...warnings] };
  } catch (thrown) {
    // what is missing was often only misspelled
    if (!(thrown instanceof KubeletError) || decoded.warnings.length === 0) throw thrown;
    throw new KubeletError(thrown.code, [thrown.message, ...decoded.warnings.slice(0, 3)].join("; "), {
      cause: thrown,
    });
  }
}
