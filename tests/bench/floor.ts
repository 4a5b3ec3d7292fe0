import { RuntimeService } from "../../cri/gen/runtime_pb.ts";
import { systemClock } from "../../mod/base/clock.ts";
import type { BareCri } from "../../scripts/node/bare_cri.ts";
import { clearMarks, lastMark } from "./marks.ts";
import type { FloorPod } from "./pods.ts";

const { runPodSandbox, createContainer, startContainer, stopContainer, stopPodSandbox, removeContainer } =
  RuntimeService.method;
const { removePodSandbox } = RuntimeService.method;
const callMs = 120_000;

/** Ids of a pod that the bare calls started. */
interface Started {
  readonly sandbox: string;
  readonly container: string;
}

/** The fewest calls that start a pod. */
async function start(cri: BareCri, pod: FloorPod): Promise<Started> {
  const { podSandboxId } = await cri.call(runPodSandbox, { config: pod.sandbox }, callMs);
  const { containerId } = await cri.call(
    createContainer,
    { podSandboxId, config: pod.container, sandboxConfig: pod.sandbox },
    callMs,
  );
  await cri.call(startContainer, { containerId }, callMs);
  return { sandbox: podSandboxId, container: containerId };
}

/** The fewest calls that remove a pod. */
async function stop(cri: BareCri, { sandbox, container }: Started): Promise<void> {
  await cri.call(stopContainer, { containerId: container, timeout: 1n }, callMs);
  await cri.call(stopPodSandbox, { podSandboxId: sandbox }, callMs);
  await cri.call(removeContainer, { containerId: container }, callMs);
  await cri.call(removePodSandbox, { podSandboxId: sandbox }, callMs);
}

/** Runs work on all items, so many at a time. */
async function each<T, R>(items: readonly T[], atOnce: number, work: (item: T) => Promise<R>): Promise<R[]> {
  const results: R[] = [];
  const queue = items.entries();
  await Promise.all(Array.from({ length: atOnce }, async () => {
    for (const [i, item] of queue) results[i] = await work(item);
  }));
  return results;
}

/**
 * Starts pods by the bare calls, so many at a time, and removes them again. Milliseconds from the first call to the last
 * container's mark, and from the first call that ends to the last.
 */
export async function floorRound(options: {
  cri: BareCri;
  pods: readonly FloorPod[];
  atOnce: number;
  marks: string;
}): Promise<{ startMs: number; deleteMs: number }> {
  const { cri, pods, atOnce, marks } = options;
  await clearMarks(marks);
  const began = systemClock.now();
  const started = await each(pods, atOnce, (pod) => start(cri, pod));
  const ran = await lastMark(marks, pods.map((pod) => pod.name), "runs");
  const ending = systemClock.now();
  await each(started, atOnce, (one) => stop(cri, one));
  return { startMs: ran - began, deleteMs: systemClock.now() - ending };
}
