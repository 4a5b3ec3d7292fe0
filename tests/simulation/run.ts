import type { Hierarchies } from "../../managers/cgroups/hierarchies.ts";
import type { Agent, AgentOptions } from "../../mod/app/agent_types.ts";
import { createAgent } from "../../mod/app/agent.ts";
import { messageOf } from "../../mod/base/errors.ts";
import { turn } from "../../mod/base/fake_clock.ts";
import { Journal } from "../../mod/base/journal.ts";
import { seeded } from "../../mod/base/random.ts";
import { Scope } from "../../mod/base/scope.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { Invariants } from "./invariants.ts";
import { Life } from "./life.ts";
import { PodMaker } from "./pods.ts";
import type { RunOptions } from "./run_options.ts";
import { terminal, turnedAway, type Unsettled, unsettled } from "./settled.ts";
import { chooseClusterStep } from "./cluster_steps.ts";
import { makeMember } from "./member.ts";
import { chooseStep } from "./steps.ts";
import { Broken } from "./trace.ts";
import { TraceLogger } from "./trace_logger.ts";
import { type Figures, hierarchiesOf, manifestDir, simulatedConfig, simulatedFacts, World } from "./world.ts";

export interface RunResult {
  readonly seed: number;
  readonly broken: Broken | undefined;
  readonly trace: readonly string[];
  readonly figures: Figures & { simulatedMs: number; turns: number };
}

/** How long the world must be quiet once it has come to rest, milliseconds. */
const quietMs = 90_000;
/** How long after a container's start garbage collection may still take away what went before it, milliseconds. */
const tidyMs = 130_000;
/** Timers that may fire at one moment. */
const stormLimit = 5000;

/** Runs one seed from an empty node to the end. Deterministic: the same seed gives the same trace. */
export async function runSeed(options: RunOptions): Promise<RunResult> {
  const simulation = new Simulation(options);
  const onRejection = (event: PromiseRejectionEvent) => {
    event.preventDefault();
    simulation.world.fail("unhandled rejection", messageOf(event.reason));
  };
  globalThis.addEventListener("unhandledrejection", onRejection);
  try {
    return await simulation.run();
  } finally {
    globalThis.removeEventListener("unhandledrejection", onRejection);
  }
}

/** One seed's world with its agent, and what can be done to it. */
export class Simulation {
  readonly world: World;
  readonly invariants: Invariants;
  readonly maker: PodMaker;
  readonly maxBackOffMs: number;
  readonly #o: RunOptions;
  #agent: Agent | undefined;
  #life: Life | undefined;
  #stop = new AbortController();
  #ended = false;
  #lives = 0;
  #turns = 0;
  #bad: unknown;
  #quiet = false;
  #hierarchies: Hierarchies | undefined;
  #diedAt: number | undefined;
  #wantedBefore = new Map<string, BoundPod>();
  readonly #definitions = new Map<string, string>();
  #records: { uid: string; text: string }[] = [];

  constructor(options: RunOptions) {
    this.#o = options;
    const { echo, cluster = false } = options;
    this.world = new World(options.seed, { cluster, ...(echo ? { echo } : {}) });
    const { dice } = this.world;
    this.maxBackOffMs = options.maxBackOffMs ?? dice.pick([7_000, 20_000, 20_000, 60_000, 300_000]);
    this.invariants = new Invariants(this.world, { maxBackOffMs: this.maxBackOffMs });
    this.maker = new PodMaker(dice);
    options.tamper?.(this.world);
  }

  get alive(): boolean {
    return this.#life?.alive === true && !this.#ended;
  }

  async run(): Promise<RunResult> {
    const { world } = this;
    const start = world.clock.now();
    const steps = this.#o.steps ?? 40;
    const rest = Math.floor(steps * (0.3 + 0.4 * world.dice.random()));
    let broken: Broken | undefined;
    try {
      await this.start();
      for (let i = 0; i < steps; i++) {
        if (world.cluster && world.dice.chance(0.6)) chooseClusterStep(this, world.cluster);
        else await chooseStep(this);
        await this.advance(world.dice.chance(0.004) ? world.dice.span(600_000, 7_200_000) : world.dice.span(1, 30_000));
        if (i === rest) await this.settle();
      }
      await this.settle();
      await this.quiet();
      await this.restart();
      await this.stop();
    } catch (thrown) {
      if (!(thrown instanceof Broken)) throw thrown;
      broken = thrown;
    }
    const simulatedMs = world.clock.now() - start;
    await this.#end();
    return {
      seed: this.#o.seed,
      broken: broken ?? world.broken,
      trace: world.trace.last(80),
      figures: { ...world.figures, simulatedMs, turns: this.#turns },
    };
  }

  /** Starts a life of the agent. */
  async start(): Promise<void> {
    const { world, invariants } = this;
    const n = ++this.#lives;
    world.figures.lives++;
    const { config, flags } = await simulatedConfig();
    const hierarchies = this.#hierarchies ??= await hierarchiesOf(world);
    const life = new Life({
      clock: world.clock,
      hostDelayMs: () => world.hostDelayMs(),
      onDeath: () => {
        this.#diedAt = world.clock.now();
        world.trace.note(`life ${n} is killed`);
      },
    });
    this.#life = life;
    if (n === 1) life.lightFuse(this.#o.fuse ?? Infinity);
    this.#ended = false;
    this.#excused = world.stormy;
    this.#diedAt = undefined;
    this.#stop = new AbortController();
    invariants.begin(n);
    // An agent that cannot read a manifest at its start does not know of its pod, and ends it.
    if (world.weather.disk > 0 && manifestDir.startsWith(world.weather.diskPath)) {
      invariants.renewed(world.wanted().keys());
    }
    const clock = life.clock();
    const service = life.runtime(this.#o.between?.(world.service, () => life.kill()) ?? world.service);
    const log = new TraceLogger(world, () => life.alive);
    world.trace.note(`life ${n} begins`);
    const shared = {
      config: { ...config, crashLoopBackOff: { maxContainerRestartPeriodMs: this.maxBackOffMs } },
      flags,
      host: life.host(world.host),
      clock,
      random: seeded(this.#o.seed * 1000 + n),
      runtime: service,
      images: service,
      runtimeName: "containerd",
      events: { pod: () => {}, node: () => {} },
      log,
    };
    const member = new Scope("member", {
      onFailure: (error, task) => {
        if (life.alive) world.fail("no internal error", `${task} failed: ${error.message}`);
      },
    });
    const cluster = world.cluster && makeMember({
      api: world.cluster.api,
      tokenFile: world.cluster.tokenFile,
      life,
      context: { ...shared, runtimeVersion: "v2.1.4", scope: member },
    });
    const make = this.#o.makeAgent ?? ((given: AgentOptions) => {
      const served = createAgent(given);
      cluster?.start(served);
      return served;
    });
    const agent = make({
      ...shared,
      facts: simulatedFacts,
      hierarchies,
      cgroupDriver: "cgroupfs",
      ...(cluster ? { cluster } : {}),
      dial: life.dial(world.dial),
      journal: new Journal({
        clock,
        sink: life.callback((record) => {
          invariants.onRecord(n, record);
          if (this.#quiet && record.pod) {
            this.#records.push({ uid: record.pod.uid, text: `${record.action} because ${record.reason}` });
          }
        }),
      }),
      onStatus: life.callback((entry) => {
        invariants.onStatus(entry);
        this.#o.onStatus?.(entry);
      }),
    });
    this.#agent = agent;
    const ended = (thrown?: unknown) => {
      if (this.#life !== life || !life.alive) return;
      this.#ended = true;
      this.#excused ||= world.stormy;
      this.#bad = thrown;
      world.trace.note(`life ${n} ends${thrown === undefined ? "" : `: ${messageOf(thrown)}`}`);
    };
    void agent.run(this.#stop.signal).then(() => ended(), ended).then(() => member.close());
    await turn();
  }

  /** Kills the agent at once. */
  kill(): void {
    this.#life?.kill();
  }

  /** Steps through the gates that the agent that lives now has taken. */
  get passed(): number {
    return this.#life?.passed ?? 0;
  }

  /** Kills the agent after so many more steps through the gates. */
  lightFuse(steps: number): void {
    this.#life?.lightFuse(steps);
  }

  /** Asks the agent to end, and waits until it has. */
  async stop(): Promise<void> {
    if (!this.alive) return;
    this.world.trace.note("the agent is told to end");
    const life = this.#life;
    this.#stop.abort();
    // Whatever hangs, the agent ends; only an operation of the disk that is under way is waited for.
    for (let i = 0; i < 60 && life?.alive && !this.#ended; i++) await this.#pass(500);
    if (!this.#ended && life?.alive) this.world.fail("the agent ends", "it was told to end, and still runs after 30 s");
    this.#orderly = true;
  }
  #orderly = false;
  /** The agent ended under a fault that may have kept it from starting. */
  #excused = false;

  /** Lets time pass; an agent that has died meanwhile is started again some time later. */
  async advance(ms: number): Promise<void> {
    await this.#pass(ms);
    await this.revive();
  }

  async revive(): Promise<void> {
    for (let tries = 0; !this.alive; tries++) {
      const { world } = this;
      // What keeps an agent from starting does not last for ever.
      if (tries === 5) world.clear();
      this.invariants.reconcile(this.#diedAt ?? world.clock.now());
      if (this.#ended && !this.#orderly && !this.#excused) {
        world.fail("the agent goes on", `run ended by itself: ${messageOf(this.#bad ?? "without an error")}`);
      }
      this.#life?.kill();
      this.#orderly = false;
      this.#check();
      await this.#pass(this.#o.downMs ?? world.dice.span(1, 20_000));
      await this.start();
      await this.#pass(10);
    }
  }

  async #pass(ms: number): Promise<void> {
    const { clock } = this.world;
    const end = clock.now() + ms;
    await turn();
    this.#check();
    let at = clock.now(), count = 0;
    for (let next = clock.next; next !== undefined && next <= end; next = clock.next) {
      await clock.step();
      this.#turns++;
      if (clock.now() !== at) {
        at = clock.now();
        count = 0;
      } else if (++count > stormLimit) {
        this.world.fail("no storm", `${stormLimit} timers fired at one moment`);
      }
      this.world.cluster?.collect();
      this.#check();
    }
    await clock.advance(end - clock.now());
    this.#check();
  }

  #check(): void {
    const { broken } = this.world;
    if (broken) throw broken;
  }

  /** To be called after the manifests have changed. */
  manifestsChanged(): void {
    const now = this.world.wanted();
    const renewed: string[] = [];
    for (const [uid, pod] of this.#wantedBefore) if (now.get(uid) !== pod) renewed.push(uid);
    for (const uid of now.keys()) {
      if (this.#wantedBefore.has(uid)) continue;
      this.world.figures.pods++;
      // One that comes again: a life of the agent that found it left over may have told of its end.
      if (this.#definitions.has(uid)) renewed.push(uid);
    }
    for (const [uid, pod] of now) {
      const definition = JSON.stringify(pod.spec);
      if ((this.#definitions.get(uid) ?? definition) !== definition) this.invariants.redefined.add(uid);
      this.#definitions.set(uid, definition);
    }
    this.invariants.renewed(renewed);
    this.#wantedBefore = now;
  }

  /** Ends all faults and waits until everything is as the manifests want it, and then that nothing moves. */
  async settle(): Promise<void> {
    const { world, invariants } = this;
    const settleMs = this.#o.settleMs ?? 40 * 60_000;
    world.trace.note("faults end; the world settles");
    world.clear();
    this.lightFuse(Infinity);
    const began = world.clock.now();
    let problems: string[] = ["it has only begun"];
    // After its object was deleted a node registers anew at the agent's next start, unless somebody else does it.
    if (world.cluster && !world.cluster.node) {
      if (world.dice.chance(0.5)) world.cluster.registerNode();
      else this.kill();
    }
    // By a clock that has stepped it is not to be seen how long a container waits: so long as it may is waited.
    const enough = world.clock.shifted === 0 ? 3 : 3 + Math.ceil((this.maxBackOffMs + 45_000) / 30_000);
    // Everything must be in order twice, with time between: what is under way may undo it once.
    for (let good = 0; good < enough;) {
      await this.advance(good === 0 ? 10_000 : 30_000);
      this.lightFuse(Infinity);
      problems = this.unsettled().problems;
      good = problems.length === 0 ? good + 1 : 0;
      if (world.clock.now() - began > settleMs) {
        world.fail("convergence", `after ${settleMs / 60_000} min: ${problems.slice(0, 5).join("; ")}`);
        this.#check();
      }
    }
    invariants.reconcile();
    this.#check();
  }

  /** The machine's clock is set forward or back. */
  stepClock(): void {
    const { dice, trace, clock } = this.world;
    // Not so far back that a pod's deadline would outlast the settling.
    const back = Math.max(0, Math.min(900_000, 900_000 + clock.shifted));
    const ms = dice.chance(0.5) && back > 1000 ? -dice.span(1000, back) : dice.span(1000, 7_200_000);
    trace.note(`step the clock is set by ${ms} ms`);
    clock.shift(ms);
    this.invariants.clockStepped();
  }

  /** What is not as the manifests want it. */
  unsettled(): Unsettled {
    const told = this.#agent?.pods() ?? [];
    const found = unsettled(this.world, told, {
      maxBackOffMs: this.maxBackOffMs,
      redefined: this.invariants.redefined,
    });
    found.problems.push(...this.world.cluster?.problems(told, found.restless) ?? []);
    return found;
  }

  /** When nothing happens the agent does nothing but look. */
  async quiet(): Promise<void> {
    const { world } = this;
    // What the settling has left to garbage collection and housekeeping may still go.
    await this.advance(70_000);
    const { calls } = world.runtime;
    const pods = world.wanted().size;
    const before = this.unsettled().restless;
    // The sandbox that a pod has just left is collected within the next minutes.
    const since = world.clock.now() - tidyMs;
    const tidied = new Set(world.runtime.snapshot().containers.filter((c) => c.startedAt > since).map((c) => c.uid));
    const from = calls.length, turns = this.#turns;
    this.#records = [];
    this.#quiet = true;
    await this.advance(quietMs);
    this.#quiet = false;
    const restless = new Set([...before, ...this.unsettled().restless]);
    for (const { uid, text } of this.#records) {
      if (tidied.has(uid) && / because (OldSandbox|DeadContainerLimit)$/.test(text)) continue;
      if (!restless.has(uid)) world.fail("quiet", `${uid} is at rest, but there was ${text}`);
    }
    if (restless.size === 0) {
      const reads = calls.slice(from).filter((c) => c.because === undefined && c.call !== "ExecSync").length;
      const limit = (quietMs / 1000) * 2.5 + pods * 20 + 20;
      if (reads > limit) {
        world.fail("quiet", `${reads} questions to the runtime in ${quietMs / 1000} s, at most ${limit}`);
      }
      const fired = this.#turns - turns;
      const most = (quietMs / 1000) * (6 + pods * 20) + 100;
      if (fired > most) world.fail("quiet", `${fired} timers in ${quietMs / 1000} s, at most ${most}`);
    }
    if (world.clock.pending > 100 + pods * 60) world.fail("quiet", `${world.clock.pending} timers wait`);
    this.#check();
  }

  /** Invariant 6: a kill and a restart, with nothing else wrong, change no container and no readiness. */
  async restart(): Promise<void> {
    const { world, invariants } = this;
    const running = () =>
      new Set(world.runtime.snapshot().containers.filter((c) => c.state === "running").map((c) => c.id));
    const uids = new Set(world.wanted().keys());
    const states = new Map((this.#agent?.pods() ?? []).map(({ pod, status }) => [pod.metadata.uid, status]));
    for (const uid of this.unsettled().restless) uids.delete(uid);
    // Nothing on the node tells that a deadline has ended a pod: without an API server it runs once more.
    for (const [uid, pod] of world.wanted()) if (pod.spec.activeDeadlineSeconds !== undefined) uids.delete(uid);
    // A pod that was turned away while the node ran short is taken on by the next life.
    for (const [uid, status] of states) if (status && turnedAway(status)) uids.delete(uid);
    const isReady = (uid: string) => states.get(uid)?.conditions?.find((c) => c.type === "Ready")?.status === "True";
    const before = running();
    world.trace.note("kill and restart with nothing else wrong");
    this.kill();
    invariants.reconcile(this.#diedAt);
    await this.#pass(world.dice.span(1, 60_000));
    invariants.transparent = { uids, ready: new Set([...uids].filter(isReady)) };
    this.#records = [];
    this.#quiet = true;
    await this.start();
    await this.#pass(20_000);
    this.#quiet = false;
    invariants.transparent = undefined;
    for (const { uid, text } of this.#records) {
      // A pod that has ended is looked after once more, its sandbox being stopped; a rejected one is rejected again.
      const was = states.get(uid);
      if (/^(StopPodSandbox|Reject) /.test(text) && was && terminal(was)) continue;
      if (uids.has(uid)) world.fail("transparent restart", `after it there was ${text} for ${uid}`);
    }
    const after = running();
    const byId = new Map(world.runtime.snapshot().containers.map((c) => [c.id, c]));
    for (const id of before) {
      const c = byId.get(id);
      if (c && uids.has(c.uid) && !after.has(id)) world.fail("transparent restart", `${c.podName}/${c.name} ended`);
    }
    for (const { pod, status } of this.#agent?.pods() ?? []) {
      const uid = pod.metadata.uid, was = states.get(uid)?.phase;
      if (uids.has(uid) && status?.phase !== was) {
        world.fail("transparent restart", `${uid} was ${was}, and is ${status?.phase}`);
      }
    }
    this.#check();
  }

  async #end(): Promise<void> {
    this.kill();
    await turn();
  }
}
