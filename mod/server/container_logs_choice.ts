import type { ContainerStatus, PodStatus } from "../kube/types.ts";

/** Which container instance's log is meant, as `<runtime>://<id>`, or why there is none (http.md section 5). */
export type LogChoice = { readonly id: string } | { readonly text: string };

/** Chooses by the status that the agent reports, as its clients know it. */
export function chooseLog(status: PodStatus | undefined, names: {
  readonly pod: string;
  readonly container: string;
  readonly previous: boolean;
}): LogChoice {
  const what = `container ${JSON.stringify(names.container)} in pod ${JSON.stringify(names.pod)}`;
  const found = find(status, names.container);
  if (!found) return { text: `${what} is not available` };
  const last = found.lastState?.terminated;
  const { waiting, running, terminated } = found.state ?? {};
  if (names.previous) {
    return last?.containerID ? { id: last.containerID } : { text: `previous terminated ${what} not found` };
  }
  if (running) return { id: found.containerID ?? "" };
  if (terminated ?? last) {
    // Where the next instance did not start, it is the last one that has a log.
    const id = terminated?.containerID || last?.containerID;
    return id ? { id } : { text: `${what} is terminated` };
  }
  if (!waiting) return { text: `${what} is waiting to start - no logs yet` };
  const why: Record<string, string | undefined> = {
    __proto__: null as never,
    ErrImagePull: "image can't be pulled",
    ImagePullBackOff: "trying and failing to pull image",
  };
  const reason = waiting.reason ?? "";
  return { text: `${what} is waiting to start: ${why[reason] ?? reason}` };
}

function find(status: PodStatus | undefined, container: string): ContainerStatus | undefined {
  for (const list of [status?.containerStatuses, status?.initContainerStatuses, status?.ephemeralContainerStatuses]) {
    const found = list?.find((c) => c.name === container);
    if (found) return found;
  }
  return undefined;
}
