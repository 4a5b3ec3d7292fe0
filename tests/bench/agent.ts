import { RuntimeService } from "../../cri/gen/runtime_pb.ts";
import { systemClock } from "../../mod/base/clock.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import type { AgentNode } from "../../scripts/node/agent_node.ts";
import type { BareCri } from "../../scripts/node/bare_cri.ts";
import { cpuOf } from "./cpu.ts";
import { clearMarks, lastMark } from "./marks.ts";
import { manifest } from "./pods.ts";

const { listPodSandbox, listContainers } = RuntimeService.method;

/** What one round with the agent took, milliseconds. */
export interface AgentRound {
  /** From the manifests to the last container's mark. */
  readonly startMs: number;
  /** From the manifests' removal until the runtime has nothing of the pods. */
  readonly deleteMs: number;
  /** From the last process's end until the runtime has nothing of the pods. */
  readonly afterExitMs: number;
}

/** The agent under test, and what is needed to look at it. */
export interface Subject {
  readonly agent: AgentNode;
  readonly cri: BareCri;
  /** Directory of the marks. */
  readonly marks: string;
}

/** Puts manifests and waits until all containers run; milliseconds. */
export async function startPods({ agent, marks }: Subject, names: readonly string[]): Promise<number> {
  await clearMarks(marks);
  const began = systemClock.now();
  for (const name of names) await agent.putManifest(`${name}.json`, manifest(name, { directory: marks }));
  return await lastMark(marks, names, "runs") - began;
}

/** Removes manifests and waits until nothing of the pods is left in the runtime. */
export async function endPods(
  { agent, cri, marks }: Subject,
  names: readonly string[],
): Promise<Pick<AgentRound, "deleteMs" | "afterExitMs">> {
  const began = systemClock.now();
  for (const name of names) await agent.removeManifest(`${name}.json`);
  await waitFor("the pods to be gone", async () => {
    if ((await cri.call(listPodSandbox, {})).items.length > 0) return false;
    return (await cri.call(listContainers, {})).containers.length === 0;
  }, { within: 120_000, every: names.length > 1 ? 50 : 5 });
  const gone = systemClock.now();
  return { deleteMs: gone - began, afterExitMs: gone - await lastMark(marks, names, "ended") };
}

/** One start and end of pods. */
export async function agentRound(subject: Subject, names: readonly string[]): Promise<AgentRound> {
  const startMs = await startPods(subject, names);
  await systemClock.sleep(500); // the pass that started the pod looks at it once more
  return { startMs, ...await endPods(subject, names) };
}

/** Share of one core that a process uses over a while, percent. */
export async function cpuShare(pid: number, ms: number): Promise<number> {
  const before = (await cpuOf(pid)).own;
  const began = performance.now();
  await systemClock.sleep(ms);
  return ((await cpuOf(pid)).own - before) / (performance.now() - began) * 100;
}

/** Resident memory of a process, MiB. */
export async function residentMiB(pid: number): Promise<number> {
  const status = await Deno.readTextFile(`/proc/${pid}/status`);
  return Number(/^VmRSS:\s+(\d+) kB$/m.exec(status)?.[1]) / 1024;
}

/** Starts the agent anew; milliseconds until /healthz answers 200. */
export async function startAgent({ agent }: Subject): Promise<number> {
  await agent.kill();
  const began = systemClock.now();
  agent.start();
  await waitFor("/healthz", async () => {
    const answer = await fetch(`http://127.0.0.1:${agent.healthzPort}/healthz`);
    await answer.body?.cancel();
    return answer.status === 200;
  }, { within: 30_000, every: 5 });
  return systemClock.now() - began;
}

/** Starts the agent anew with one manifest there; milliseconds until the pod's container runs. */
export async function startAgentWithPod(subject: Subject, name: string): Promise<number> {
  const { agent, marks } = subject;
  await agent.kill();
  await clearMarks(marks);
  await agent.putManifest(`${name}.json`, manifest(name, { directory: marks }));
  const began = systemClock.now();
  agent.start();
  const took = await lastMark(marks, [name], "runs") - began;
  await endPods(subject, [name]);
  return took;
}
