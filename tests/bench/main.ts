import { systemClock } from "../../mod/base/clock.ts";
import { messageOf } from "../../mod/base/errors.ts";
import { complain, print } from "../../scripts/lib/print.ts";
import { Refusal, runScript } from "../../scripts/lib/script.ts";
import { BareCri } from "../../scripts/node/bare_cri.ts";
import { freePort } from "../../scripts/node/agent_node.ts";
import { makeCgroup, removeCgroup } from "../../scripts/node/cgroups.ts";
import { exists, repository } from "../../scripts/lib/files.ts";
import { type TestNode, withNode } from "../node/harness.ts";
import { agentRound, cpuShare, endPods, residentMiB, startAgent, startAgentWithPod, startPods } from "./agent.ts";
import { floorRound } from "./floor.ts";
import { settle } from "./marks.ts";
import { FollowBench, followConfig } from "./follow.ts";
import { memoryFigures } from "./memory.ts";
import { type Options, readOptions, usage } from "./options.ts";
import { FloorPods } from "./pods.ts";
import { probeFigures } from "./probes.ts";
import { chooseProgram, type Program } from "./program.ts";
import { scrapeFigures } from "./scrape.ts";
import { type Figure, figureJson, figureTable, median, ratio, within } from "./report.ts";

/** How many floors of a burst are tried: the best of them is the floor. */
const concurrencies = [4, 8, 16];

function names(prefix: string, count: number): string[] {
  return Array.from({ length: count }, (_, i) => `${prefix}-${i}`);
}

/** One run of the bench on one node. */
class Bench {
  readonly figures: Figure[] = [];
  readonly #cri: BareCri;
  readonly #marks: string;

  constructor(
    private readonly node: TestNode,
    private readonly options: Options,
    private readonly floor: FloorPods,
    cri: BareCri,
    marks: string,
    private readonly places: {
      readonly program: Program;
      readonly root: string;
      /** Where the agent's pages are served. */
      readonly port: number;
      readonly readOnlyPort: number;
    },
  ) {
    this.#cri = cri;
    this.#marks = marks;
  }

  get #subject(): Parameters<typeof agentRound>[0] {
    return { agent: this.node.agent, cri: this.#cri, marks: this.#marks };
  }

  async run(): Promise<void> {
    const { only } = this.options;
    if (only.has("one")) await this.#one();
    if (only.has("burst")) await this.#burst();
    if (only.has("idle")) await this.#idle();
    if (only.has("scrape")) await this.#scrape();
    if (only.has("start")) await this.#start();
    if (only.has("probes")) await this.#probes();
    if (only.has("follow")) await this.#follow();
    if (only.has("memory")) await this.#memory();
  }

  /** One pod: starts and ends, floor and agent in turn. */
  async #one(): Promise<void> {
    const floor = { start: [] as number[], end: [] as number[] };
    const agent = { start: [] as number[], end: [] as number[], afterExit: [] as number[] };
    const pod = await this.floor.make("floor-one");
    // The first round of each warms up; it is not counted.
    for (let round = 0; round <= this.options.rounds; round++) {
      const bare = await floorRound({ cri: this.#cri, pods: [pod], atOnce: 1, marks: this.#marks });
      await settle();
      const full = await agentRound(this.#subject, [`one-${round}`]);
      await settle();
      if (round === 0) continue;
      complain(
        `  one pod, round ${round}: start ${bare.startMs} / ${full.startMs} ms, ` +
          `end ${bare.deleteMs} / ${full.deleteMs} ms (floor / agent)`,
      );
      floor.start.push(bare.startMs);
      floor.end.push(bare.deleteMs);
      agent.start.push(full.startMs);
      agent.end.push(full.deleteMs);
      agent.afterExit.push(full.afterExitMs);
    }
    this.figures.push(
      { name: "one pod: floor's start", unit: "ms", values: floor.start },
      { name: "one pod: agent's start", unit: "ms", values: agent.start },
      ratio("one pod: start, agent / floor", agent.start, floor.start, 1.2),
      { name: "one pod: floor's end", unit: "ms", values: floor.end },
      { name: "one pod: agent's end", unit: "ms", values: agent.end },
      ratio("one pod: end, agent / floor", agent.end, floor.end, 1.4),
      { name: "one pod: gone after the process's exit", unit: "ms", values: agent.afterExit, limit: 300 },
    );
  }

  /** Many pods at once. */
  async #burst(): Promise<void> {
    const { pods: count, bursts } = this.options;
    const pods = await Promise.all(names("floor", count).map((name) => this.floor.make(name)));
    const floors = new Map(concurrencies.map((atOnce) => [atOnce, { start: [] as number[], end: [] as number[] }]));
    const agent = { start: [] as number[], end: [] as number[] };
    for (let round = 1; round <= bursts; round++) {
      for (const [atOnce, taken] of floors) {
        const bare = await floorRound({ cri: this.#cri, pods, atOnce, marks: this.#marks });
        complain(`  ${count} pods, round ${round}: floor ${atOnce} at once: ${bare.startMs}, end ${bare.deleteMs} ms`);
        taken.start.push(bare.startMs);
        taken.end.push(bare.deleteMs);
        await settle();
      }
      const full = await agentRound(this.#subject, names(`burst${round}`, count));
      complain(`  ${count} pods, round ${round}: agent: ${full.startMs}, end ${full.deleteMs} ms`);
      agent.start.push(full.startMs);
      agent.end.push(full.deleteMs);
      await settle();
    }
    const best = (what: "start" | "end") =>
      [...floors].map(([atOnce, taken]) => ({ atOnce, values: taken[what] }))
        .sort((a, b) => median(a.values) - median(b.values))[0] ?? { atOnce: 0, values: [] };
    const [start, end] = [best("start"), best("end")];
    this.figures.push(
      { name: `${count} pods: floor's start, ${start.atOnce} at once`, unit: "ms", values: start.values },
      { name: `${count} pods: agent's start`, unit: "ms", values: agent.start },
      ratio(`${count} pods: start, agent / floor`, agent.start, start.values, 1.3),
      { name: `${count} pods: floor's end, ${end.atOnce} at once`, unit: "ms", values: end.values },
      { name: `${count} pods: agent's end`, unit: "ms", values: agent.end },
      ratio(`${count} pods: end, agent / floor`, agent.end, end.values),
    );
  }

  /** Many pods that do nothing. */
  async #idle(): Promise<void> {
    const { pods: count, idleMs } = this.options;
    const { agent } = this.node;
    const idle = names("idle", count);
    await startPods(this.#subject, idle);
    await systemClock.sleep(5_000);
    const cpu = await cpuShare(agent.pid, idleMs);
    const memory = await residentMiB(agent.pid);
    this.figures.push(
      { name: `${count} idle pods: CPU of a core`, unit: "%", values: [cpu], limit: 1.5 },
      { name: `${count} idle pods: resident memory`, unit: "MiB", values: [memory], limit: 95 },
    );
    await endPods(this.#subject, idle);
  }

  /** Statistics of many pods, as monitoring asks for them. */
  async #scrape(): Promise<void> {
    const { pods: count, rounds } = this.options;
    const pods = names("scraped", count);
    await startPods(this.#subject, pods);
    await systemClock.sleep(3_000);
    const { cgroup } = this.node.agent.paths;
    this.figures.push(
      ...await scrapeFigures({
        port: this.places.readOnlyPort,
        pid: this.node.agent.pid,
        group: cgroup,
        pods: count,
        rounds,
      }),
    );
    await endPods(this.#subject, pods);
  }

  /** The agent's own start. */
  async #start(): Promise<void> {
    const healthy: number[] = [];
    const running: number[] = [];
    for (let round = 1; round <= this.options.rounds; round++) {
      healthy.push(await startAgent(this.#subject));
      await settle();
      running.push(await startAgentWithPod(this.#subject, `first-${round}`));
    }
    this.figures.push(
      { name: "agent's start to /healthz", unit: "ms", values: healthy, limit: 600 },
      { name: "agent's start to its first pod running", unit: "ms", values: running },
    );
  }

  /** Many pods that are probed by a program each second. */
  async #probes(): Promise<void> {
    const { pods: count, probingMs: ms } = this.options;
    const { containerd } = this.node;
    const { readOnlyPort: port } = this.places;
    this.figures.push(
      ...await probeFigures(this.#subject, { containerd, port, pods: names("probed", count), ms, rounds: 2 }),
    );
  }

  /** A log that is followed while it is written as fast as that goes. */
  async #follow(): Promise<void> {
    const { paths } = this.node.agent;
    const { program, port, root } = this.places;
    const argv = program.path === undefined ? ["sh", `${repository}/scripts/agent.sh`] : [program.path];
    const follow = new FollowBench({
      subject: this.#subject,
      nodeName: this.options.name,
      port,
      command: {
        // the flags say which agent is asked
        argv,
        flags: ["--config", paths.config, "--root-dir", paths.kubelet],
        env: { DENOLET_RUN: paths.run, DENOLET_DENO: Deno.execPath() },
      },
      directory: root,
      rounds: 2,
    });
    this.figures.push(...await follow.figures());
  }

  /** Many pods that come and go. */
  async #memory(): Promise<void> {
    const { churn, pods: atOnce } = this.options;
    this.figures.push(...await memoryFigures(this.#subject, { pods: churn, atOnce }));
  }
}

/** The server's guests: the bench asks it on the machine's own address only. */
const everybody = { anonymous: { enabled: true }, webhook: { enabled: false } };

async function bench(options: Options, program: Program): Promise<readonly Figure[]> {
  const floorCgroup = `/denolet-${options.name}-floor`;
  const root = `/var/lib/denolet-bench.${options.name}`;
  const marks = `${root}/marks`;
  const figures: Figure[] = [];
  await makeCgroup(floorCgroup);
  try {
    await Deno.mkdir(marks, { recursive: true });
    // manifests are looked at as often as by default
    const [port, readOnlyPort] = [freePort(), freePort()];
    const served = (["scrape", "probes", "follow"] as const).some((part) => options.only.has(part));
    const config = {
      fileCheckFrequency: "20s",
      ...(served ? { enableServer: true, address: "127.0.0.1", port, readOnlyPort } : {}),
      ...(options.only.has("follow") ? { ...followConfig, authentication: everybody } : {}),
    };
    const flags = [`--cert-dir=${root}/pki`];
    const { name, containerd } = options;
    const run = { name, containerd, config, flags, ...(program.path === undefined ? {} : { program: program.path }) };
    await withNode(run, async (node) => {
      using cri = new BareCri(node.containerd.socket);
      const cgroupVersion = await exists("/sys/fs/cgroup/cgroup.controllers") ? 2 : 1;
      const floor = new FloorPods({ marks: { directory: marks }, root, cgroup: floorCgroup, cgroupVersion });
      const rounds = new Bench(node, options, floor, cri, marks, { program, root, port, readOnlyPort });
      await rounds.run();
      figures.push(...rounds.figures);
    });
  } finally {
    await removeCgroup(floorCgroup);
    await Deno.remove(root, { recursive: true });
  }
  return figures;
}

function loads(): string {
  return Deno.loadavg().map((load) => load.toFixed(1)).join(" ");
}

/** What the figures depend on. */
async function machine(): Promise<string> {
  const model = /^model name\s*:\s*(.*)$/m.exec(await Deno.readTextFile("/proc/cpuinfo"))?.[1] ?? "unknown processor";
  return `${navigator.hardwareConcurrency} × ${model}; load at the beginning: ${loads()}`;
}

async function main(args: readonly string[]): Promise<number> {
  const options = readOptions(args);
  if (!options) {
    print(usage);
    return 0;
  }
  let program: Program;
  try {
    program = await chooseProgram(options.program);
  } catch (thrown) {
    throw new Refusal(messageOf(thrown), { cause: thrown });
  }
  const about = `measured: ${program.what}; containerd ${options.containerd}; ${await machine()}`;
  complain(about);
  const figures = await bench(options, program);
  print(`${about}; load at the end: ${loads()}`);
  print(figureTable(figures));
  if (options.json !== undefined) {
    await Deno.writeTextFile(options.json, `${JSON.stringify(figureJson(figures), null, 2)}\n`);
  }
  return options.check && !figures.every(within) ? 1 : 0;
}

await runScript({ name: "bench", usage, main });
