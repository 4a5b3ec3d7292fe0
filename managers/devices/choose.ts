import { KubeletError } from "../../mod/base/errors.ts";
import type { BoundPod } from "../../mod/kube/types.ts";

export interface ChooseRequest {
  readonly resource: string;
  readonly needed: number;
  /** Ids that an init container of the pod had, which has ended by then. */
  readonly reusable: readonly string[];
  /** Ids that are healthy and nobody's, now. */
  readonly available: () => readonly string[];
  /** Asks the plugin which it would choose; undefined when it has no opinion. */
  readonly prefer:
    | ((available: readonly string[], mustInclude: readonly string[], size: number) => Promise<readonly string[]>)
    | undefined;
  /** Holds an id, so that no other pod gets it meanwhile. */
  readonly hold: (id: string) => void;
}

/**
 * Chooses devices (features.md section 13): those of init containers first, then what the plugin prefers, then any in
 * the plugin's order. Rejects when there are not enough.
 */
export async function chooseDevices(request: ChooseRequest): Promise<string[]> {
  const { resource, needed, reusable, available, prefer, hold } = request;
  const chosen = new Set<string>();
  const take = (ids: readonly string[]) => {
    for (const id of ids) {
      if (chosen.size >= needed) return;
      if (chosen.has(id)) continue;
      hold(id);
      chosen.add(id);
    }
  };
  const free = () => available().filter((id) => !chosen.has(id));
  const enough = () => {
    const left = free().length, missing = needed - chosen.size;
    if (left >= missing) return;
    throw new KubeletError(
      "BadPod",
      `requested number of devices unavailable for ${resource}. Requested: ${missing}, Available: ${left}`,
    );
  };
  take(reusable);
  if (chosen.size < needed) enough();
  if (chosen.size < needed && prefer) {
    const preferred = await prefer([...free(), ...chosen], [...chosen], needed);
    const open = new Set(free());
    take(preferred.filter((id) => open.has(id)));
    // Another pod may have taken some while the plugin was asked.
    enough();
  }
  take(free());
  return [...chosen];
}

/**
 * Ids by resource that a container may have of its pod's init containers: they have ended before it starts, unless they
 * are sidecars, which keep theirs. What a container before it has taken of them is that one's.
 */
export function reusableBy(
  pod: BoundPod,
  container: string,
  given: (container: string) => Iterable<readonly [resource: string, ids: readonly string[]]>,
): Map<string, Set<string>> {
  const free = new Map<string, Set<string>>();
  const all = [
    ...(pod.spec.initContainers ?? []).map(({ name, restartPolicy }) => ({ name, keeps: restartPolicy === "Always" })),
    ...pod.spec.containers.map(({ name }) => ({ name, keeps: true })),
  ];
  for (const { name, keeps } of all) {
    if (name === container) break;
    for (const [resource, ids] of given(name)) {
      const own = free.get(resource) ?? new Set<string>();
      for (const id of ids) keeps ? own.delete(id) : own.add(id);
      free.set(resource, own);
    }
  }
  return free;
}
