import { parseArgs } from "node:util";
import { systemClock } from "../../mod/base/clock.ts";
import { messageOf } from "../../mod/base/errors.ts";
import { complain, print } from "../../scripts/lib/print.ts";
import { BareCri } from "../../scripts/node/bare_cri.ts";
import { freePort } from "../../scripts/node/agent_node.ts";
import { makeCgroup, removeCgroup } from "../../scripts/node/cgroups.ts";
import { run } from "../../scripts/lib/command.ts";
import { exists, repository } from "../../scripts/lib/files.ts";
import { type TestNode, withNode } from "../node/harness.ts";
import { agentRound, cpuShare, endPods, residentMiB, startAgent, startAgentWithPod, startPods } from "./agent.ts";
import { floorRound } from "./floor.ts";
import { settle } from "./marks.ts";
import { FloorPods } from "./pods.ts";
import { scrapeFigures } from "./scrape.ts";
import { type Figure, figureJson, figureTable, median, ratio, within } from "./report.ts";

const usage = `deno task bench [OPTIONS]
Measures the agent on a private containerd against the floor: the bare CRI calls for the same pods, in the same run.
Prints each figure with its limit. Needs root. Takes about four minutes.

  --rounds N       rounds of one pod (default: 7)
  --bursts N       rounds of many pods at once (default: 3)
  --pods N         pods of a burst (default: 50)
  --idle SECONDS   how long the idle agent is watched (default: 30)
  --only PART      one, burst, idle, scrape or start; may be given several times (default: all)
  --containerd V   debian (default) or v2
  --name NAME      makes several benches differ (default: bench)
  --json FILE      writes the figures to a file too
  --check          exit 1 when a figure is over its limit`;

const parts = ["one", "burst", "idle", "scrape", "start"] as const;
type Part = typeof parts[number];

interface Options {
  readonly rounds: number;
  readonly bursts: number;
  readonly pods: number;
  readonly idleMs: number;
  readonly only: ReadonlySet<Part>;
  readonly containerd: "debian" | "v2";
  readonly name: string;
  readonly json: string | undefined;
  readonly check: boolean;
}

/** How many floors of a burst are tried: the best of them is the floor. */
const concurrencies = [4, 8, 16];

/** Reads the command line; undefined when only help was asked for. */
function readOptions(args: string[]): Options | undefined {
  const { values } = parseArgs({
    args,
    options: {
      rounds: { type: "string", default: "7" },
      bursts: { type: "string", default: "3" },
      pods: { type: "string", default: "50" },
      idle: { type: "string", default: "30" },
      only: { type: "string", multiple: true, default: [...parts] },
      containerd: { type: "string", default: "debian" },
      name: { type: "string", default: "bench" },
      json: { type: "string" },
      check: { type: "boolean", default: false },
      help: { type: "boolean", short: "h", default: false },
    },
  });
  if (values.help) return undefined;
  const number = (option: "rounds" | "bursts" | "pods" | "idle"): number => {
    const value = Number(values[option]);
    if (!Number.isInteger(value) || value < 1 || value > 1000) throw new Error(`--${option}: want 1 to 1000`);
    return value;
  };
  const { containerd } = values;
  if (containerd !== "debian" && containerd !== "v2") throw new Error("--containerd: want debian or v2");
  const only = values.only.map((value) => {
    const part = parts.find((one) => one === value);
    if (!part) throw new Error(`--only ${value}: want ${parts.join(", ")}`);
    return part;
  });
  return {
    rounds: number("rounds"),
    bursts: number("bursts"),
    pods: number("pods"),
    idleMs: number("idle") * 1000,
    only: new Set(only),
    containerd,
    name: values.name,
    json: values.json,
    check: values.check,
  };
}

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
    /** Where the agent's pages are served. */
    private readonly port: number,
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
      ...await scrapeFigures({ port: this.port, pid: this.node.agent.pid, group: cgroup, pods: count, rounds }),
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
}

async function bench(options: Options): Promise<readonly Figure[]> {
  const floorCgroup = `/denolet-${options.name}-floor`;
  const root = `/var/lib/denolet-bench.${options.name}`;
  const marks = `${root}/marks`;
  const figures: Figure[] = [];
  // what scripts/agent.sh runs when it is there and not older than its sources
  await run([Deno.execPath(), "task", "bundle"], { cwd: repository });
  await makeCgroup(floorCgroup);
  try {
    await Deno.mkdir(marks, { recursive: true });
    // manifests are looked at as often as by default
    const [port, readOnlyPort] = [freePort(), freePort()];
    const config = {
      fileCheckFrequency: "20s",
      ...(options.only.has("scrape") ? { enableServer: true, address: "127.0.0.1", port, readOnlyPort } : {}),
    };
    const flags = [`--cert-dir=${root}/pki`];
    await withNode({ name: options.name, containerd: options.containerd, config, flags }, async (node) => {
      using cri = new BareCri(node.containerd.socket);
      const cgroupVersion = await exists("/sys/fs/cgroup/cgroup.controllers") ? 2 : 1;
      const floor = new FloorPods({ marks: { directory: marks }, root, cgroup: floorCgroup, cgroupVersion });
      const rounds = new Bench(node, options, floor, cri, marks, readOnlyPort);
      await rounds.run();
      figures.push(...rounds.figures);
    });
  } finally {
    await removeCgroup(floorCgroup);
    await Deno.remove(root, { recursive: true });
  }
  return figures;
}

async function main(args: string[]): Promise<number> {
  let options: Options | undefined;
  try {
    options = readOptions(args);
  } catch (thrown) {
    complain(`${messageOf(thrown)}\n\n${usage}`);
    return 2;
  }
  if (!options) {
    print(usage);
    return 0;
  }
  const figures = await bench(options);
  print(figureTable(figures));
  if (options.json !== undefined) {
    await Deno.writeTextFile(options.json, `${JSON.stringify(figureJson(figures), null, 2)}\n`);
  }
  return options.check && !figures.every(within) ? 1 : 0;
}

Deno.exit(await main(Deno.args));
