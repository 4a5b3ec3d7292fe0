import assert from "@assert";
import { createAgent } from "../../mod/app/agent.ts";
import type { Agent, AgentOptions } from "../../mod/app/agent_types.ts";
import type { Because } from "../../mod/base/journal.ts";
import type { BoundPod, PodStatus } from "../../mod/kube/types.ts";
import { Invariants } from "./invariants.ts";
import { runSeed } from "./run.ts";
import { World } from "./world.ts";

// An invariant that cannot fail shows nothing: here each one is broken on purpose.

const because: Because = { reason: "Test", message: "test" };
const pod = (uid: string, name = "p"): BoundPod => ({
  metadata: { name, namespace: "default", uid },
  spec: { containers: [{ name: "c", image: "i" }] },
});

function make(podName = "p") {
  const world = new World(1);
  const invariants = new Invariants(world, { maxBackOffMs: 300_000 });
  invariants.begin(1);
  const { service } = world;
  const sandboxConfig = (uid: string) => ({ metadata: { name: podName, namespace: "default", uid, attempt: 0 } });
  return {
    world,
    invariants,
    service,
    sandbox: (uid: string) => service.runPodSandbox(sandboxConfig(uid), "", { because }),
    /** Makes and starts a container; one with `ms` ends after so long. */
    async start(sandboxId: string, uid: string, attempt: number, ms?: number) {
      await service.pullImage({ image: { image: "i" } }, { because });
      const plan = JSON.stringify({ key: "k1", acts: [ms === undefined ? {} : { ms }] });
      const config = { metadata: { name: "c", attempt }, image: { image: "i" }, command: ["/sim", plan] };
      const id = await service.createContainer({ sandboxId, config, sandboxConfig: sandboxConfig(uid) }, { because });
      await service.startContainer(id, { because });
      return id;
    },
    publish: (status: PodStatus, uid = "u1") =>
      invariants.onStatus({ pod: pod(uid), status, version: 1, keep: true, finished: false }),
    broken: () => world.broken?.invariant,
  };
}

const count = (restartCount: number): PodStatus => ({
  phase: "Running",
  containerStatuses: [{ name: "c", restartCount, ready: true, image: "", imageID: "", state: { running: {} } }],
});

Deno.test("two live instances of a container are seen", async () => {
  const t = make();
  const sandbox = await t.sandbox("u1");
  await t.start(sandbox, "u1", 0);
  assert.equal(t.broken(), undefined);
  await t.start(sandbox, "u1", 1);
  assert.equal(t.broken(), "one instance");
});

Deno.test("two static pods of one name that run at once are seen", async () => {
  const t = make("p-node1");
  await t.start(await t.sandbox("u1"), "u1", 0);
  await t.start(await t.sandbox("u2"), "u2", 0);
  assert.equal(t.broken(), "one after another");
});

Deno.test("a phase that goes back is seen, unless the pod was removed meanwhile", () => {
  for (const renewed of [false, true]) {
    const t = make();
    t.publish({ phase: "Running" });
    if (renewed) t.invariants.renewed(["u1"]);
    t.publish({ phase: "Pending" });
    assert.equal(t.broken(), renewed ? undefined : "phase forward");
  }
  const t = make();
  t.publish({ phase: "Succeeded" });
  t.publish({ phase: "Failed" });
  assert.equal(t.broken(), "phase forward");
});

Deno.test("a terminal phase while a container runs is seen", async () => {
  const t = make();
  await t.start(await t.sandbox("u1"), "u1", 0);
  t.publish({ phase: "Failed" });
  assert.equal(t.broken(), "terminal phase");
});

Deno.test("a restart count that goes down is seen", () => {
  const t = make();
  t.publish(count(2));
  t.publish(count(3));
  assert.equal(t.broken(), undefined);
  t.publish(count(1));
  assert.equal(t.broken(), "restart counts");
});

Deno.test("a call without a record and a record without a call are seen", async () => {
  const t = make();
  await t.sandbox("u1");
  const at = t.world.clock.now();
  const record = { ...because, seq: 1, at, action: "RunPodSandbox", target: "p" };
  t.invariants.onRecord(1, record);
  t.invariants.reconcile();
  assert.equal(t.broken(), undefined);
  t.invariants.onRecord(1, record);
  t.invariants.reconcile();
  assert.equal(t.broken(), "journal");
  const other = make();
  await other.sandbox("u1");
  other.invariants.reconcile();
  assert.equal(other.broken(), "journal");
});

Deno.test("a record without a reason is seen", () => {
  const t = make();
  t.invariants.onRecord(1, { seq: 1, at: 0, action: "StopContainer", reason: "", message: "" });
  assert.equal(t.broken(), "journal");
});

Deno.test("a restart before its back-off is over is seen", async () => {
  for (const waitMs of [10_000, 9_000]) {
    const t = make();
    const sandbox = await t.sandbox("u1");
    for (const [attempt, wait] of [[0, 0], [1, 0], [2, waitMs]] as const) {
      await t.world.clock.advance(wait);
      await t.start(sandbox, "u1", attempt, 100);
      await t.world.clock.advance(100);
    }
    assert.equal(t.broken(), waitMs < 10_000 ? "back-off" : undefined);
  }
});

/** Runs seeds with an agent that was made worse, until an invariant breaks. */
async function brokenBy(change: (options: AgentOptions) => Agent): Promise<string> {
  for (let seed = 1; seed < 15; seed++) {
    const { broken } = await runSeed({ seed, steps: 12, settleMs: 600_000, makeAgent: change });
    if (broken) return `${broken.invariant}: ${broken.what}`;
  }
  return "nothing";
}

/** An agent whose view of some methods is another one. */
function with_<T extends object>(target: T, other: Partial<T>): T {
  return new Proxy(target, {
    get(_, name) {
      if (Object.hasOwn(other, name)) return Reflect.get(other, name);
      const value: unknown = Reflect.get(target, name);
      return typeof value === "function" ? value.bind(target) : value;
    },
  });
}

const idle: Agent = {
  run: (signal) => new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true })),
  healthChecks: [],
  pods: () => [],
  sourcesReady: true,
  problems: () => new Map(),
};

/** The real agent, with something running beside it. */
function beside(options: AgentOptions, work: (options: AgentOptions, signal: AbortSignal) => Promise<void>): Agent {
  const agent = createAgent(options);
  return with_(agent, {
    run: async (signal) => void await Promise.all([agent.run(signal), work(options, signal).catch(() => {})]),
  });
}

const doubles: { name: string; expected: RegExp; agent: (options: AgentOptions) => Agent }[] = [
  { name: "does nothing", expected: /^convergence: .*the agent does not have it/, agent: () => idle },
  { name: "ends by itself", expected: /^the agent goes on/, agent: () => ({ ...idle, run: () => Promise.resolve() }) },
  {
    name: "leaves directories behind",
    expected: /^convergence: .*left: directory/,
    agent: (o) => createAgent({ ...o, host: with_(o.host, { removeTree: () => Promise.resolve() }) }),
  },
  {
    name: "leaves sandboxes behind",
    expected: /^convergence: .*left: sandbox/,
    agent: (o) => createAgent({ ...o, runtime: with_(o.runtime, { removePodSandbox: () => Promise.resolve() }) }),
  },
  {
    name: "does not see what runs",
    expected: /^one instance/,
    agent: (o) => createAgent({ ...o, runtime: with_(o.runtime, { listContainers: () => Promise.resolve([]) }) }),
  },
  {
    name: "asks too often",
    expected: /^quiet: .* questions/,
    agent: (o) =>
      beside(o, async ({ clock, runtime }, signal) => {
        for (;;) {
          await clock.sleep(100, signal);
          await runtime.listContainers();
        }
      }),
  },
  {
    name: "stirs up timers",
    expected: /^no storm/,
    agent: (o) =>
      beside(o, async ({ clock }, signal) => {
        await clock.sleep(20_000, signal);
        for (;;) await clock.sleep(0, signal);
      }),
  },
  {
    name: "stops what it finds at its start",
    expected: /^transparent restart|^journal|^quiet/,
    agent: (o) =>
      beside(o, async ({ journal, runtime }) => {
        for (const { id, labels } of await runtime.listContainers()) {
          const uid = labels["io.kubernetes.pod.uid"] ?? "";
          const why = { ...because, pod: { namespace: "default", name: "p", uid } };
          await journal.act("StopContainer", why, id, () => runtime.stopContainer(id, 0, { because: why }));
        }
      }),
  },
  {
    name: "fails a task",
    expected: /^no internal error/,
    agent: (o) => beside(o, ({ log }) => Promise.resolve(log.error("a task of the agent failed", { task: "x" }))),
  },
  {
    name: "leaves a rejection unhandled",
    expected: /^unhandled rejection/,
    agent: (o) => beside(o, () => Promise.resolve(void Promise.reject(new Error("nobody minds")))),
  },
  {
    name: "does not end when told to",
    expected: /^the agent ends/,
    agent: (o) => {
      const agent = createAgent(o);
      return with_(agent, { run: () => agent.run(new AbortController().signal) });
    },
  },
];

for (const { name, expected, agent } of doubles) {
  Deno.test(`an agent that ${name} breaks an invariant`, async () => {
    assert.match(await brokenBy(agent), expected);
  });
}
