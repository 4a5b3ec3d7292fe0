import assert from "@assert";
import { processesDie } from "../../managers/cgroups/fake_kernel.ts";
import { createAgent } from "../../mod/app/agent.ts";
import type { Host } from "../../mod/base/host.ts";
import { Journal } from "../../mod/base/journal.ts";
import { silent } from "../../mod/base/log.ts";
import { seeded } from "../../mod/base/random.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import type { PodSpec } from "../../mod/kube/types.ts";
import { hierarchiesOf, manifestDir, simulatedConfig, simulatedFacts, World } from "./world.ts";

const forever = <T>() => new Promise<T>(() => {});

/** An agent with the pods `stuck` and `other`; `hangs` says which runtime calls never end, by method and target. */
class Scene {
  readonly world = new World(11);
  readonly events = new RecordingEvents();
  readonly journal = new Journal({ clock: this.world.clock });
  hangs: (call: string, target: string) => boolean = () => false;
  /** Paths of the node that hang. */
  hangingPaths: (operation: "stat" | "unmount", path: string) => boolean = () => false;
  readonly #stop = new AbortController();
  #running: Promise<void> | undefined;
  #agent: ReturnType<typeof createAgent> | undefined;

  async start(): Promise<void> {
    const { world, events, journal } = this;
    const { config, flags } = await simulatedConfig();
    world.runtime.faults = (call, target = "") => this.hangs(call, target) ? { hang: true } : undefined;
    processesDie(world.host);
    this.#agent = createAgent({
      config,
      flags,
      facts: simulatedFacts,
      hierarchies: await hierarchiesOf(world),
      cgroupDriver: "cgroupfs",
      host: this.#host(),
      clock: world.clock,
      random: seeded(1),
      runtime: world.service,
      images: world.service,
      runtimeName: "containerd",
      dial: world.dial,
      journal,
      events,
      log: silent,
    });
    this.#running = this.#agent.run(this.#stop.signal);
    await this.pass(2);
  }

  #host(): Host {
    const { host } = this.world;
    return new Proxy<Host>(host, {
      get: (_, name) => {
        const value: unknown = Reflect.get(host, name);
        if (typeof value !== "function") return value;
        return (...given: unknown[]) =>
          (name === "stat" || name === "unmount") && this.hangingPaths(name, String(given[0]))
            ? forever()
            : Reflect.apply(value, host, given);
      },
    });
  }

  put(name: string, spec: Partial<PodSpec> = {}, image = "localhost/app:1"): void {
    const pod = {
      apiVersion: "v1",
      kind: "Pod",
      metadata: { name },
      spec: { terminationGracePeriodSeconds: 5, containers: [{ name: "c", image }], ...spec },
    };
    this.world.writeManifest(`${manifestDir}/${name}.yaml`, JSON.stringify(pod));
  }

  remove(name: string): Promise<void> {
    return this.world.removeManifest(`${manifestDir}/${name}.yaml`);
  }

  async pass(seconds: number): Promise<void> {
    for (let i = 0; i < seconds; i++) await this.world.clock.advance(1000);
  }

  phase(name: string): string | undefined {
    return this.#agent?.pods().find(({ pod }) => pod.metadata.name.startsWith(`${name}-`))?.status?.phase;
  }

  uid(name: string): string {
    const pods = [...this.#agent?.pods() ?? [], ...this.#agent?.leaving() ?? []];
    return pods.find(({ pod }) => pod.metadata.name.startsWith(`${name}-`))?.pod.metadata.uid ?? "";
  }

  containers(uid: string): string[] {
    return [...this.world.runtime.snapshot().containers].filter((c) => c.uid === uid)
      .map((c) => c.id);
  }

  /** The pod that does not hang is well, can go, and others can come. */
  async othersGoOn(): Promise<void> {
    assert.equal(this.phase("other"), "Running");
    const other = this.uid("other");
    await this.remove("other");
    this.put("late");
    await this.pass(30);
    assert.equal(this.phase("late"), "Running");
    assert.deepEqual(this.containers(other), [], "the other pod is gone");
    assert.equal(this.world.host.exists(`/var/lib/kubelet/pods/${other}`), false);
  }

  async end(): Promise<void> {
    this.#stop.abort();
    for (let i = 0; i < 20; i++) await this.world.clock.advance(1000);
    // What hangs for good in an operation of the disk would be waited for.
    void this.#running;
  }
}

interface Case {
  readonly name: string;
  readonly stuck?: Partial<PodSpec>;
  readonly image?: string;
  /** Set before the pods are there. */
  readonly hangs?: (scene: Scene) => Scene["hangs"];
  readonly paths?: Scene["hangingPaths"];
  /** Seconds until the others are looked at. */
  readonly within?: number;
}

const cases: Case[] = [
  {
    name: "a sandbox that is never made",
    hangs: () => (call, target) => call === "RunPodSandbox" && /^stuck/.test(target),
  },
  { name: "a container that is never started", hangs: () => startOfFirst() },
  {
    name: "a pull that never ends, with serial pulls",
    image: "localhost/hangs:1",
    hangs: () => (call, target) => call === "PullImage" && /hangs/.test(target),
    within: 320,
  },
  {
    name: "a path of the node that hangs",
    stuck: {
      containers: [{ name: "c", image: "localhost/app:1", volumeMounts: [{ name: "v", mountPath: "/v" }] }],
      volumes: [{ name: "v", hostPath: { path: "/mnt/dead", type: "Directory" } }],
    } as Partial<PodSpec>,
    paths: (operation, path) => operation === "stat" && path.startsWith("/mnt/dead"),
  },
  {
    name: "an exec probe that hangs",
    stuck: {
      containers: [{
        name: "c",
        image: "localhost/app:1",
        livenessProbe: { exec: { command: ["hang"] }, periodSeconds: 1 },
      }],
    } as Partial<PodSpec>,
    hangs: () => (call) => call === "ExecSync",
  },
];

/** The start of the first container that is started hangs, and no other's. */
function startOfFirst(): Scene["hangs"] {
  let first: string | undefined;
  return (call, target) => {
    if (call !== "StartContainer") return false;
    first ??= target;
    return target === first;
  };
}

for (const one of cases) {
  Deno.test(`bulkheads: ${one.name} holds up its own pod only`, async () => {
    const scene = new Scene();
    if (one.hangs) scene.hangs = one.hangs(scene);
    if (one.paths) scene.hangingPaths = one.paths;
    await scene.start();
    scene.put("stuck", one.stuck, one.image);
    await scene.pass(3);
    scene.put("other");
    await scene.pass(one.within ?? 20);
    await scene.othersGoOn();
    await scene.end();
  });
}

Deno.test("bulkheads: a stop that hangs ends in the control group's kill, and the pod goes", async () => {
  const scene = new Scene();
  await scene.start();
  scene.put("stuck");
  scene.put("other");
  await scene.pass(20);
  assert.deepEqual([scene.phase("stuck"), scene.phase("other")], ["Running", "Running"]);
  const { world, journal } = scene;
  const uid = scene.uid("stuck");
  const [id = ""] = scene.containers(uid);
  // The container's processes, in the pod's group.
  const v2 = world.host.exists(`${world.host.cgroupRoot}/cgroup.controllers`);
  const group = `${world.host.cgroupRoot}${v2 ? "" : "/memory"}/kubepods/besteffort/pod${uid}/${id}`;
  await world.host.mkdir(group);
  await world.host.writeControl(`${group}/cgroup.procs`, "4711");
  scene.hangs = (call, target) => call === "StopContainer" && target === id;
  await scene.remove("stuck");
  await scene.pass(30);
  await scene.othersGoOn();
  await scene.pass(60);
  const steps = journal.records(uid).filter((r) => ["StopContainer", "CgroupKill"].includes(r.action));
  assert.deepEqual(
    steps.slice(0, 3).map((r) => [r.action, Math.round((r.tookMs ?? 0) / 1000), r.error !== undefined]),
    [
      ["StopContainer", 35, true],
      ["StopContainer", 30, true],
      ["CgroupKill", 0, false],
    ],
  );
  assert.deepEqual(world.host.kills.map((k) => k.pid), [4711]);
  // Stopping the sandbox, which follows, takes the container along for this runtime.
  await scene.pass(60);
  assert.deepEqual(scene.containers(uid), []);
  assert.equal(world.host.exists(`/var/lib/kubelet/pods/${uid}`), false);
  await scene.end();
});

Deno.test("bulkheads: an unmount that hangs keeps its pod, and is told; others come and go", async () => {
  const scene = new Scene();
  await scene.start();
  scene.put("stuck", {
    containers: [{ name: "c", image: "localhost/app:1", volumeMounts: [{ name: "m", mountPath: "/m" }] }],
    volumes: [{ name: "m", emptyDir: { medium: "Memory" } }],
  } as Partial<PodSpec>);
  scene.put("other");
  await scene.pass(20);
  const uid = scene.uid("stuck");
  scene.hangingPaths = (operation, path) => operation === "unmount" && path.includes(uid);
  await scene.remove("stuck");
  await scene.pass(40);
  await scene.othersGoOn();
  const waiting = scene.journal.records(uid).find((r) => r.action === "Waiting");
  assert.match(waiting?.message ?? "", /its volumes are being unmounted, for 30 s now/);
  assert.equal(scene.world.host.exists(`/var/lib/kubelet/pods/${uid}`), true);
  await scene.end();
});
