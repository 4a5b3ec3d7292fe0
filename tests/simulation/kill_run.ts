import { isSidecar, podContainers, podRef } from "../../mod/kube/pod.ts";
import type { Snapshot, SnapshotContainer, SnapshotSandbox } from "../../cri/fake/snapshot.ts";
import type { StatusEntry } from "../../managers/status/status_manager.ts";
import type { Pod } from "../../mod/kube/types.ts";
import { Simulation } from "./run.ts";
import { Broken, short } from "./trace.ts";
import { type Answer, linkDir, manifestDir, mutating, rootDir, type World } from "./world.ts";

/**
 * Where an agent is killed: at the n-th call to the runtime, counted from 0. `before`: the runtime never sees the
 * call. `after`: the call has taken effect, its answer is not heard. `late`: the call is under way, and takes effect
 * when the next agent is there already.
 */
export interface KillPoint {
  readonly call: number;
  readonly when: "before" | "after" | "late";
}

/** A story of a few pods; it must come out the same wherever the agent is killed meanwhile. */
export interface Scenario {
  readonly name: string;
  play(stage: Stage): Promise<void>;
}

/** One call of the agent, as the run without a kill saw it. */
export interface SeenCall {
  readonly name: string;
  readonly mutating: boolean;
}

/** All that a run showed. */
export interface Told {
  readonly calls: readonly SeenCall[];
  readonly containers: ReadonlyMap<string, SnapshotContainer>;
  readonly sandboxes: ReadonlyMap<string, SnapshotSandbox>;
  /** What was published of each pod and container, without what was said twice: `<uid> phase` → [Pending, Running]. */
  readonly said: ReadonlyMap<string, readonly string[]>;
  readonly problems: readonly string[];
  /** Steps that the last agent took, of every kind. */
  readonly steps: number;
  readonly trace: readonly string[];
}

/** How long the agent is away, milliseconds. */
export const downMs = 400;
/** How long after the kill what was under way takes effect, milliseconds. */
const lateMs = 1500;
const stepMs = 100;
/** How long something may take to come, milliseconds. */
const patienceMs = 150_000;

/** What a scenario can do to the world. */
export class Stage {
  readonly #start: number;

  constructor(readonly simulation: Simulation, private readonly look: () => void) {
    this.#start = simulation.world.clock.now();
  }

  get world(): World {
    return this.simulation.world;
  }

  put(name: string, pod: Pod): void {
    this.world.trace.note(`scenario: ${name}.json`);
    this.world.writeManifest(`${manifestDir}/${name}.json`, JSON.stringify(pod));
    this.simulation.manifestsChanged();
  }

  async remove(name: string): Promise<void> {
    this.world.trace.note(`scenario: ${name}.json is removed`);
    await this.world.removeManifest(`${manifestDir}/${name}.json`);
    this.simulation.manifestsChanged();
  }

  answer(key: string, answer: Answer): void {
    this.world.trace.note(`scenario: ${key} answers ${answer}`);
    this.world.answers.set(key, answer);
  }

  /** Lets time pass until so many seconds after the scenario began. */
  async at(seconds: number): Promise<void> {
    const { clock } = this.world;
    const end = this.#start + seconds * 1000;
    while (clock.now() < end) await this.#step(Math.min(stepMs, end - clock.now()));
  }

  /** Lets time pass until something is so. */
  async until(what: string, look: () => boolean): Promise<void> {
    const { clock } = this.world;
    for (const end = clock.now() + patienceMs; !look();) {
      if (clock.now() > end) throw new Broken("scenario", `waited in vain for ${what}`);
      await this.#step(stepMs);
    }
  }

  /** Ends a container as if its process had ended. */
  async exit(pod: string, container: string, code: number): Promise<void> {
    const running = () =>
      this.world.runtime.snapshot().containers.find((c) =>
        c.podName === `${pod}-node1` && c.name === container && c.state === "running"
      );
    await this.until(`${pod}/${container} to run`, () => running() !== undefined);
    this.world.trace.note(`scenario: ${pod}/${container} exits with ${code}`);
    this.world.runtime.exitContainer(running()?.id ?? "", code);
  }

  async #step(ms: number): Promise<void> {
    await this.simulation.advance(ms);
    this.look();
  }
}

/** Plays a scenario on the world of a seed, with kills or without, to its end: every manifest is removed at last. */
export async function play(scenario: Scenario, options: {
  seed: number;
  kills?: readonly KillPoint[];
  /** Kills the first agent after so many steps of any kind, between two operations on files, too. */
  fuse?: number;
  /** Files that are lost with the agent; for tests of the checks. */
  lose?: readonly string[];
  /** What happens to the manifests while no agent is there. */
  meanwhile?: (stage: Stage) => Promise<void> | void;
}): Promise<Told> {
  const { kills = [], lose = [], meanwhile } = options;
  let after = meanwhile;
  const calls: SeenCall[] = [];
  const containers = new Map<string, SnapshotContainer>();
  const sandboxes = new Map<string, SnapshotSandbox>();
  const said = new Map<string, string[]>();
  const problems: string[] = [];
  let played = false, steps = 0;
  const simulation: Simulation = new Simulation({
    seed: options.seed,
    downMs,
    ...(options.fuse === undefined ? {} : { fuse: options.fuse }),
    maxBackOffMs: 300_000,
    between: (service, end) =>
      dying(service, simulation.world, {
        calls,
        kills,
        end: () => {
          end();
          for (const path of lose) void simulation.world.host.removeTree(path);
          void after?.(stage);
          after = undefined;
        },
      }),
    // What is said of a pod that nobody wants any more is heard by nobody; nor what happens while a run waits for the
    // minute's sweep, which one that was killed may have to do longer than another.
    onStatus: (entry) =>
      !played && world.wanted().has(entry.pod.metadata.uid) && note(said, entry, world.runtime.snapshot()),
  });
  const { world } = simulation;
  const look = () => {
    if (played) return;
    const now = world.runtime.snapshot();
    for (const one of now.containers) containers.set(one.id, one);
    for (const one of now.sandboxes) sandboxes.set(one.id, one);
    const ready = now.sandboxes.filter((s) => s.ready);
    for (const { id, uid, podName } of ready) {
      const other = ready.find((s) => s.uid === uid && s.id !== id);
      if (other) problems.push(`${podName} has two sandboxes that are ready: ${short(id)} and ${short(other.id)}`);
    }
  };
  const stage = new Stage(simulation, look);
  try {
    await simulation.start();
    await scenario.play(stage);
    look();
    played = true;
    steps = simulation.passed;
    problems.push(...missingLinks(world));
    // What nobody knows any more is swept within a minute.
    await stage.until("everything to be as it must be", () => simulation.unsettled().problems.length === 0);
    const uids = [...world.wanted().keys()];
    for (const path of [...world.manifests.keys()]) await stage.remove(path.slice(manifestDir.length + 1, -5));
    await stage.until("nothing to be left", () => simulation.unsettled().problems.length === 0);
    // What is under way in the runtime, and what the sweep finds, comes to its end.
    await stage.until(
      "all calls to end",
      () => world.runtime.calls.every((c) => c.because === undefined || c.endedAt !== undefined),
    );
    await simulation.advance(3000);
    problems.push(...simulation.unsettled().problems, ...remains(world, uids));
    await simulation.stop();
  } catch (thrown) {
    if (!(thrown instanceof Broken)) throw thrown;
    const left = simulation.unsettled().problems.slice(0, 3).join("; ");
    problems.push(`${thrown.message}${left === "" ? "" : ` (${left})`}`);
  }
  if (world.broken) problems.push(world.broken.message);
  simulation.kill();
  return { calls, containers, sandboxes, said, problems: [...new Set(problems)], steps, trace: world.trace.last(400) };
}

/** The runtime in front of which the agent dies at its point. */
function dying(
  service: World["service"],
  world: World,
  { calls, kills, end }: { calls: SeenCall[]; kills: readonly KillPoint[]; end: () => void },
): World["service"] {
  return new Proxy(service, {
    get: (target, name) => {
      const method: unknown = Reflect.get(target, name);
      if (typeof method !== "function" || name === "containerEvents") return method;
      return async (...given: unknown[]): Promise<unknown> => {
        const here = kills.find(({ call }) => call === calls.length)?.when;
        calls.push({ name: String(name), mutating: mutating.has(String(name)) });
        switch (here) {
          case "before":
            end();
            return undefined;
          case "after":
            try {
              return await Reflect.apply(method, target, given);
            } finally {
              end();
            }
          case "late": {
            world.runtime.faults = () => ({ loseAnswer: true, delayMs: lateMs });
            const answer: Promise<unknown> = Reflect.apply(method, target, given);
            world.runtime.faults = undefined;
            end();
            return await answer;
          }
          default:
            return await Reflect.apply(method, target, given);
        }
      };
    },
  });
}

/** Notes what a status says; not that a pod or container is unready while what it needs to be so does not run. */
function note(said: Map<string, string[]>, { pod, status }: StatusEntry, { containers }: Snapshot): void {
  const { uid } = podRef(pod);
  const say = (what: string, value: string) => {
    const list = said.get(`${uid} ${what}`) ?? [];
    if (list.at(-1) !== value) said.set(`${uid} ${what}`, [...list, value]);
  };
  const runs = (name: string) => containers.some((c) => c.uid === uid && c.name === name && c.state === "running");
  const names = podContainers(pod).filter((c) => c.kind === "regular" || isSidecar(c)).map((c) => c.spec.name);
  say("phase", status.phase ?? "none");
  say("Initialized", status.conditions?.find((c) => c.type === "Initialized")?.status ?? "absent");
  for (const type of ["Ready", "ContainersReady"]) {
    const value = status.conditions?.find((c) => c.type === type)?.status ?? "absent";
    if (value === "True" || names.every(runs)) say(type, value);
  }
  for (const one of [...status.initContainerStatuses ?? [], ...status.containerStatuses ?? []]) {
    if (one.ready || runs(one.name)) say(`${one.name} ready`, String(one.ready));
    say(`${one.name} restarts`, String(one.restartCount));
  }
}

/** Each container that runs has its link in the directory of all logs. */
function missingLinks(world: World): string[] {
  const links = world.host.tree(linkDir);
  return world.runtime.snapshot().containers.filter((c) => c.state === "running")
    .filter((c) => !links.some((path) => path.includes(c.id)))
    .map((c) => `${c.podName}/${c.name}#${c.attempt} has no link in ${linkDir}`);
}

/** Files of pods that are gone. */
function remains(world: World, uids: readonly string[]): string[] {
  const paths = [rootDir, "/var/log", "/run"].flatMap((dir) => world.host.tree(dir).map((path) => `${dir}/${path}`));
  return paths.filter((path) => uids.some((uid) => path.includes(uid))).map((path) => `left: ${path}`);
}
