import { KubeletError } from "../../base/errors.ts";
import { didYouMean } from "../config/nearest.ts";

/** A pod as its names tell it. */
interface Named {
  readonly namespace: string;
  readonly name: string;
  readonly uid: string;
  /** No source wants it any more, and it has not ended yet. */
  readonly leaving?: true;
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

/** What a word on the command line was found to mean. */
export interface FoundPod<T> {
  readonly pod: T;
  /** Pods of the same name that are ending: the instances before an edit of a static pod. */
  readonly ending: readonly T[];
}

/**
 * The one pod that a word means; where others of its full name are ending, the one that is not. Throws a KubeletError
 * (BadConfig) that helps when there is none, or more than one.
 */
export function onePodNamed<T extends Named>(word: string, pods: readonly T[], nodeName: string): FoundPod<T> {
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
  const byName = Map.groupBy(found, (pod) => `${pod.namespace}/${pod.name}`);
  const current = found.filter(({ leaving }) => !leaving);
  const only = found.length === 1 ? first : current.length === 1 && byName.size === 1 ? current[0] : undefined;
  if (only) return { pod: only, ending: found.filter((pod) => pod !== only) };
  const told = current.length < found.length;
  const list = found.slice(0, 10).map((pod) =>
    `${pod.namespace}/${pod.name} (uid ${pod.uid}${told ? pod.leaving ? ", ending" : ", current" : ""})`
  ).join(", ");
  // A full name is enough where it means one pod, or one beside others that are ending.
  const enough = [...byName.values()].map((same) => same.length === 1 || same.filter((p) => !p.leaving).length === 1);
  const remedy = enough.every(Boolean)
    ? "write namespace/name or a uid"
    : enough.length === 1
    ? "they have one name, so write a uid"
    : "write namespace/name, or a uid where several have one name";
  const what = found.some(({ name, uid }) => name !== word && uid.startsWith(word))
    ? "the beginning of the uids"
    : "the name";
  throw new KubeletError("BadConfig", `${shown} is ${what} of ${found.length} pods: ${list}; ${remedy}`);
}
