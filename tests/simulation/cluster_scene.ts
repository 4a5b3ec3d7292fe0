import type { ServedAgent } from "../../mod/app/agent_types.ts";
import { createAgent } from "../../mod/app/agent.ts";
import { turn } from "../../mod/base/fake_clock.ts";
import { Journal } from "../../mod/base/journal.ts";
import { seeded } from "../../mod/base/random.ts";
import { Scope } from "../../mod/base/scope.ts";
import { FakeApi } from "../../mod/kube/api/fake/fake_api.ts";
import type { Call } from "../../mod/kube/api/fake/faults.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import type { Container, Node, ObjectMeta, Pod, PodCondition, PodSpec } from "../../mod/kube/types.ts";
import { Life } from "./life.ts";
import { makeMember, registerNode } from "./member.ts";
import type { Act } from "./pods.ts";
import { TraceLogger } from "./trace_logger.ts";
import { hierarchiesOf, simulatedConfig, simulatedFacts, World } from "./world.ts";

/** A container that acts as told, instance after instance; without acts it runs until it is stopped. */
export function container(name: string, acts: readonly Act[] = [{}], rest: Partial<Container> = {}): Container {
  const command = ["/sim", JSON.stringify({ key: `k-${name}`, acts })];
  return { name, image: "registry.sim/app:1", command, ...rest };
}

/** One agent as a member of a cluster, on a simulated machine, runtime and API server, all without faults at first. */
export class ClusterScene implements AsyncDisposable {
  readonly world: World;
  readonly api: FakeApi;
  readonly events = new RecordingEvents();
  #life: Life | undefined;
  #stop = new AbortController();
  #lives = 0;
  #running: Promise<void> = Promise.resolve();
  agent: ServedAgent | undefined;
  /** The node as the agent's watch shows it, when that lags behind. */
  nodeSeen: Node | undefined;

  constructor(seed = 1) {
    this.world = new World(seed);
    this.api = new FakeApi({ clock: this.world.clock });
    registerNode(this.api);
  }

  async start(): Promise<void> {
    const { world, api } = this;
    const n = ++this.#lives;
    const { config, flags } = await simulatedConfig();
    const life = new Life({ clock: world.clock, hostDelayMs: () => 0, onDeath: () => {} });
    const clock = life.clock();
    const service = life.runtime(world.service);
    const log = new TraceLogger(world, () => life.alive);
    const scope = new Scope("member");
    const shared = {
      config,
      flags,
      host: life.host(world.host),
      clock,
      random: seeded(n),
      runtime: service,
      images: service,
      runtimeName: "containerd",
      runtimeVersion: "v2.1.4",
      events: this.events,
      log,
    };
    const node = () => this.nodeSeen ?? api.get<Node>(resources.nodes, { name: simulatedFacts.name });
    const cluster = makeMember({ api, life, node, context: { ...shared, scope } });
    const agent = createAgent({
      ...shared,
      facts: simulatedFacts,
      hierarchies: await hierarchiesOf(world),
      cgroupDriver: "cgroupfs",
      dial: life.dial(world.dial),
      journal: new Journal({ clock }),
      cluster,
    });
    cluster.start(agent);
    this.#life = life;
    this.#stop = new AbortController();
    this.agent = agent;
    this.#running = (async () => {
      await agent.run(this.#stop.signal);
      await scope.close();
    })();
    await turn();
  }

  /** The agent is killed at once. */
  kill(): void {
    this.#life?.kill();
  }

  async restart(downMs = 1000): Promise<void> {
    this.kill();
    await this.advance(downMs);
    await this.start();
  }

  /** Lets time pass; throws when an invariant of the world is broken. */
  async advance(ms: number): Promise<void> {
    await this.world.clock.advance(ms);
    if (this.world.broken) throw this.world.broken;
  }

  /** A pod bound to the node, as the scheduler leaves it. */
  create(name: string, spec: Partial<PodSpec> = {}, metadata: ObjectMeta = {}): Pod {
    const { api } = this;
    const made = api.create<Pod>(resources.pods, {
      metadata: { name, namespace: "default", ...metadata },
      spec: { containers: [container("c")], ...spec },
    });
    api.bind({ name, namespace: "default" }, simulatedFacts.name);
    return api.get<Pod>(resources.pods, { name, namespace: "default" }) ?? made;
  }

  pod(name: string): Pod | undefined {
    return this.api.get<Pod>(resources.pods, { name, namespace: "default" });
  }

  merge(name: string, patch: unknown): void {
    this.api.merge<Pod>(resources.pods, { name, namespace: "default" }, patch);
  }

  edit(name: string, change: (spec: PodSpec) => PodSpec): void {
    const pod = this.pod(name);
    if (!pod?.spec) throw new Error(`no pod ${name}`);
    this.api.server.replace(resources.pods, { ...pod, spec: change(pod.spec) } as Pod);
  }

  delete(name: string, gracePeriodSeconds?: number): void {
    const how = gracePeriodSeconds === undefined ? {} : { gracePeriodSeconds };
    this.api.delete(resources.pods, { name, namespace: "default" }, how);
  }

  condition(name: string, type: string): PodCondition | undefined {
    return this.pod(name)?.status?.conditions?.find((c) => c.type === type);
  }

  /** What the agent has written about pods, from the `from`th call on. */
  writes(from = 0): Call[] {
    return this.api.calls.slice(from).filter((c) =>
      c.resource === "pods" && (c.verb === "patch" || c.verb === "delete" || c.verb === "create")
    );
  }

  /** Containers of a pod of this name that run, as `<name>#<attempt>`. */
  running(name: string): string[] {
    return this.world.runtime.snapshot().containers.filter((c) => c.podName === name && c.state === "running")
      .map((c) => `${c.name}#${c.attempt}`).sort();
  }

  /** What is left on the node of a pod: runtime objects and directories. */
  left(uid: string): string[] {
    const { runtime, host } = this.world;
    const { sandboxes, containers } = runtime.snapshot();
    return [
      ...sandboxes.filter((s) => s.uid === uid).map((s) => `sandbox ${s.attempt}`),
      ...containers.filter((c) => c.uid === uid).map((c) => `container ${c.name}`),
      ...host.tree("/").filter((path) => path.includes(uid)),
    ];
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#stop.abort();
    for (let i = 0; i < 20; i++) await this.world.clock.advance(500);
    // Of an agent that was killed no promise settles any more.
    if (this.#life?.alive) await this.#running;
  }
}
