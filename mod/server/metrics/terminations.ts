import type { BoundPod, ContainerStatus, PodStatus } from "../../kube/types.ts";
import type { Numbers } from "./registry.ts";

/** Pods whose ends are known before those are looked for that are gone. */
const prunedFrom = 500;

/** Counts ends of containers from the statuses of their pods (metrics.md section 2, terminated_containers_total). */
export class Terminations {
  /** By UID the instances that had ended when the pod's status was last told. */
  readonly #ended = new Map<string, ReadonlySet<string>>();

  constructor(private readonly counter: Numbers, private readonly isKnown: (uid: string) => boolean) {}

  /** A pod's new status; an end that the status before, or the one that the API gave, tells too counts no more. */
  status(pod: BoundPod, status: PodStatus): void {
    const { uid } = pod.metadata;
    const before = this.#ended.get(uid) ?? new Set(endsOf(pod.status ?? {}).map(({ key }) => key));
    const ends = endsOf(status);
    for (const { key, type, code, reason } of ends) {
      if (before.has(key)) continue;
      this.counter.add({ container_type: type, exit_code: String(code), reason });
    }
    if (this.#ended.size > prunedFrom) {
      for (const known of this.#ended.keys()) if (!this.isKnown(known)) this.#ended.delete(known);
    }
    this.#ended.set(uid, new Set(ends.map(({ key }) => key)));
  }
}

interface End {
  readonly key: string;
  readonly type: string;
  readonly code: number;
  readonly reason: string;
}

function endsOf(status: PodStatus): End[] {
  const of = (type: string, statuses: readonly ContainerStatus[] = []): End[] =>
    statuses.flatMap(({ name, state }) => {
      const ended = state?.terminated;
      if (!ended) return [];
      const { exitCode: code = 0, reason = "", containerID = "" } = ended;
      return [{ key: `${type} ${name} ${containerID}`, type, code, reason }];
    });
  return [
    ...of("init_container", status.initContainerStatuses),
    ...of("container", status.containerStatuses),
    ...of("ephemeral_container", status.ephemeralContainerStatuses),
  ];
}
