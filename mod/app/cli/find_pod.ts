import { KubeletError } from "../../base/errors.ts";
import { didYouMean } from "../config/nearest.ts";

/** A pod as its names tell it. */
interface Named {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
}

/** Shortest beginning of a UID that names a pod. */
const shortestUid = 4;

/**
 * The pods that a word on the command line means: by name or namespace/name, else by the name that a static pod's
 * manifest has (without the node's behind it), else by a UID or its beginning.
 */
export function podsNamed<T extends Named>(word: string, pods: readonly T[], nodeName: string): T[] {
  const slash = word.indexOf("/");
  const [namespace, name] = slash < 0 ? [undefined, word] : [word.slice(0, slash), word.slice(slash + 1)];
  const within = namespace === undefined ? pods : pods.filter((pod) => pod.namespace === namespace);
  const ways: ((pod: T) => boolean)[] = [
    (pod) => pod.name === name,
    (pod) => nodeName !== "" && pod.name === `${name}-${nodeName}`,
    (pod) => namespace === undefined && pod.uid === word,
    (pod) => namespace === undefined && word.length >= shortestUid && pod.uid.startsWith(word),
  ];
  for (const way of ways) {
    const found = within.filter(way);
    if (found.length > 0) return found;
  }
  return [];
}

/** The one pod that a word means. Throws a KubeletError (BadConfig) that helps when there is none, or more than one. */
export function onePodNamed<T extends Named>(word: string, pods: readonly T[], nodeName: string): T {
  const found = podsNamed(word, pods, nodeName);
  const [first] = found;
  const shown = JSON.stringify(word.slice(0, 80));
  if (!first) {
    const names = pods.map((pod) => pod.name);
    throw new KubeletError(
      "BadConfig",
      `there is no pod ${shown}${didYouMean(word, names)}; kubelet ps lists the pods`,
    );
  }
  if (found.length === 1) return first;
  const list = found.slice(0, 10).map((pod) => `${pod.namespace}/${pod.name} (uid ${pod.uid})`).join(", ");
  throw new KubeletError(
    "BadConfig",
    `${shown} is the name of ${found.length} pods: ${list}; write namespace/name or a uid`,
  );
}
