import { ContainerState, RuntimeService } from "../../cri/gen/runtime_pb.ts";
import { systemClock } from "../../mod/base/clock.ts";
import { repository } from "../../scripts/lib/files.ts";
import { complain } from "../../scripts/lib/print.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { endPods, type Subject } from "./agent.ts";
import { cpuOf, cpuOfAll, runtimePids } from "./cpu.ts";
import { execCommand } from "./exec_client.ts";
import { settle } from "./marks.ts";
import { manifest } from "./pods.ts";
import { type Figure, median } from "./report.ts";

/** What a while of so many ExecSync calls took. */
interface Watched {
  readonly calls: number;
  readonly seconds: number;
  /** CPU of who calls, and of containerd with its shims and all that they ran; milliseconds. */
  readonly callerMs: number;
  readonly runtimeMs: number;
}

async function watch(pid: number, runtime: readonly number[], ms: number, calls: () => Promise<number>) {
  const looks = async () => ({
    calls: await calls(),
    callerMs: (await cpuOf(pid)).own,
    runtimeMs: await cpuOfAll(runtime),
    at: performance.now(),
  });
  const before = await looks();
  await systemClock.sleep(ms);
  const after = await looks();
  return {
    calls: after.calls - before.calls,
    callerMs: after.callerMs - before.callerMs,
    runtimeMs: after.runtimeMs - before.runtimeMs,
    seconds: (after.at - before.at) / 1000,
  };
}

/** Runs the bare client on these containers, in a process of its own with the agent's V8 flags. */
async function bare(socket: string, ids: readonly string[], runtime: readonly number[], ms: number): Promise<Watched> {
  const agentSh = await Deno.readTextFile(`${repository}/scripts/agent.sh`);
  const v8 = /--v8-flags=\S+/.exec(agentSh)?.[0];
  if (v8 === undefined) throw new Error("scripts/agent.sh names no V8 flags any more");
  const client = new Deno.Command(Deno.execPath(), {
    args: [
      "run",
      "--allow-all",
      "--quiet",
      "--unstable-net",
      v8,
      `${repository}/tests/bench/exec_client.ts`,
      socket,
      ...ids,
    ],
    stdin: "piped",
    stdout: "piped",
    env: { MALLOC_ARENA_MAX: "1", MALLOC_TRIM_THRESHOLD_: "65536", MALLOC_MMAP_THRESHOLD_: "32768" },
  }).spawn();
  let calls = 0;
  const reading = (async () => {
    for await (const text of client.stdout.pipeThrough(new TextDecoderStream())) {
      calls = Number(text.trim().split("\n").at(-1));
    }
  })();
  try {
    await waitFor("the bare client's calls", () => calls > 2 * ids.length, { within: 120_000 });
    return await watch(client.pid, runtime, ms, () => Promise.resolve(calls));
  } finally {
    await client.stdin.close(); // tells it to end
    await client.status;
    await reading;
  }
}

/** Probes that the agent has run so far, as its metrics say. */
async function probesRun(port: number): Promise<number> {
  const text = await (await fetch(`http://127.0.0.1:${port}/metrics/probes`)).text();
  const lines = text.split("\n").filter((line) => line.startsWith("prober_probe_total{"));
  return lines.reduce((sum, line) => sum + Number(line.slice(line.lastIndexOf(" ") + 1)), 0);
}

/**
 * Many pods that each have an exec probe every second, against a client that makes the same ExecSync calls on the same
 * containers at the same rate, while no agent runs. CPU is counted for each call that was made: on a busy machine
 * neither may come to all. What a probe costs is the agent, containerd, its shims, and what these run (runc, the
 * command); so does the floor count, with the client in the agent's place.
 */
export async function probeFigures(
  subject: Subject,
  options: {
    containerd: { readonly pid: number; readonly socket: string };
    port: number;
    pods: readonly string[];
    ms: number;
    rounds: number;
  },
): Promise<Figure[]> {
  const { agent, cri, marks } = subject;
  const { containerd, port, pods, ms, rounds } = options;
  const count = pods.length;
  for (const name of pods) {
    const probe = { exec: { command: execCommand }, periodSeconds: 1, timeoutSeconds: 20, failureThreshold: 1000 };
    await agent.putManifest(`${name}.json`, manifest(name, { directory: marks }, { livenessProbe: probe }));
  }
  const idsOf = async () => {
    const filter = { state: { state: ContainerState.CONTAINER_RUNNING } };
    return (await cri.call(RuntimeService.method.listContainers, { filter }, 60_000)).containers.map(({ id }) => id);
  };
  const ids = await waitFor("all pods to run", async () => {
    const all = await idsOf();
    return all.length >= count && all;
  }, { within: 300_000 });
  const runtime = await runtimePids(containerd);
  const floors: Watched[] = [], agents: Watched[] = [];
  for (let round = 1; round <= rounds; round++) {
    await agent.kill();
    await settle();
    const floor = await bare(containerd.socket, ids, runtime, ms);
    agent.start();
    await agent.healthy();
    await waitFor("each pod to be probed twice", async () => await probesRun(port) > 2 * count, { within: 120_000 });
    const full = await watch(agent.pid, runtime, ms, () => probesRun(port));
    complain(`  probes, round ${round}: floor ${shown(floor)}; agent ${shown(full)}`);
    floors.push(floor);
    agents.push(full);
  }
  await endPods(subject, pods);

  const whole = ({ callerMs, runtimeMs, calls }: Watched) => (callerMs + runtimeMs) / calls;
  const caller = ({ callerMs, calls }: Watched) => callerMs / calls;
  const rate = ({ calls, seconds }: Watched) => calls / seconds;
  const against = (of: (one: Watched) => number) => agents.map((one) => of(one) / median(floors.map(of)));
  const title = `${count} pods with an exec probe each second`;
  return [
    { name: `${title}: bare client's calls`, unit: "1/s", values: floors.map(rate) },
    { name: `${title}: agent's probes`, unit: "1/s", values: agents.map(rate) },
    { name: `${title}: CPU of a call, bare client and runtime`, unit: "ms", values: floors.map(whole) },
    { name: `${title}: CPU of a probe, agent and runtime`, unit: "ms", values: agents.map(whole) },
    {
      name: `${title}: CPU with the runtime's, agent / bare client`,
      unit: "ratio",
      values: against(whole),
      limit: 1.3,
    },
    { name: `${title}: bare client's own CPU of a call`, unit: "ms", values: floors.map(caller) },
    {
      name: `${title}: agent's own CPU of a probe, all else that it does included`,
      unit: "ms",
      values: agents.map(caller),
    },
    { name: `${title}: own CPU, agent / bare client`, unit: "ratio", values: against(caller) },
  ];
}

function shown({ calls, seconds, callerMs, runtimeMs }: Watched): string {
  return `${(calls / seconds).toFixed(1)}/s, own ${(callerMs / calls).toFixed(2)} ms, runtime ${
    (runtimeMs / calls).toFixed(1)
  } ms a call`;
}
