import assert from "@assert";
import fc from "fast-check";
import type { BoundPod, Container, EphemeralContainer } from "../../kube/types.ts";
import { type PodActions } from "../actions.ts";
import { isQuiet, World } from "../testdata/model.ts";
import { decide, isLive } from "./decide.ts";
import { matchingRule, restartsAfterExit } from "./restart.ts";
import { sandboxVerdict } from "./sandbox.ts";

const policy = fc.constantFrom("Always", "OnFailure", "Never");
const rules = fc.array(
  fc.record({
    action: fc.constantFrom("Restart", "RestartAllContainers"),
    exitCodes: fc.record({
      operator: fc.constantFrom("In", "NotIn"),
      values: fc.array(fc.constantFrom(0, 1, 2), { minLength: 1, maxLength: 2 }),
    }),
  }),
  { maxLength: 2 },
);
const probe = { exec: { command: ["x"] } };

function containerOf(name: string): fc.Arbitrary<Container> {
  return fc.record({ own: fc.option(policy, { nil: undefined }), rules, startup: fc.boolean() }).map((o) => ({
    name,
    image: "img:1",
    ...(o.own === undefined ? {} : { restartPolicy: o.own, restartPolicyRules: o.rules }),
    ...(o.startup ? { startupProbe: probe, livenessProbe: probe } : {}),
  }));
}
const names = (prefix: string, min: number, max: number) =>
  fc.integer({ min, max }).chain((n) => fc.tuple(...Array.from({ length: n }, (_, i) => containerOf(`${prefix}${i}`))));
const pods: fc.Arbitrary<BoundPod> = fc.record({
  restartPolicy: policy,
  initContainers: names("i", 0, 3),
  containers: names("c", 1, 3),
  ephemeral: fc.boolean(),
}).map(({ ephemeral, ...spec }) => ({
  metadata: { name: "web", namespace: "ns", uid: "u1" },
  spec: { ...spec, ...(ephemeral ? { ephemeralContainers: [{ name: "e0" } as EphemeralContainer] } : {}) },
}));

/** Something that happens to the pod: which container (or the sandbox), what, and a number. */
const happenings = fc.array(
  fc.record({
    what: fc.constantFrom(
      "exit",
      "exit",
      "unknown",
      "created",
      "lose",
      "probe",
      "pass",
      "sandbox",
      "image",
      "ghost",
      "sync",
    ),
    pick: fc.nat(6),
    code: fc.constantFrom(0, 0, 1, 2),
    good: fc.boolean(),
  }),
  { maxLength: 25 },
);

async function happen(world: World, h: { what: string; pick: number; code: number; good: boolean }): Promise<void> {
  const { spec } = world.pod;
  const all = [...spec.initContainers ?? [], ...spec.containers];
  const container = all[h.pick % all.length];
  const instance = world.newest(container?.name ?? "");
  const live = instance?.state === "running" ? instance : undefined;
  switch (h.what) {
    case "exit":
      if (live) world.end(live, h.code);
      break;
    case "unknown":
    case "created":
      if (live) live.state = h.what;
      break;
    case "lose":
      world.containers = world.containers.filter((c) => c !== instance || isLive(c));
      break;
    case "probe":
      if (live) world.probes.set(live.id, { startup: h.good, liveness: h.code === 0 });
      break;
    case "pass":
      await world.clock.advance(h.pick * 60_000);
      break;
    case "sandbox":
      if (world.sandboxes[0]) world.sandboxes[0].ready = false;
      break;
    case "image":
      if (container) container.image = `img:${h.pick}`;
      break;
    case "ghost": {
      const older = world.containers.findLast((c) => c.name === container?.name);
      if (older) older.state = "running";
      break;
    }
    case "sync":
      world.apply(checked(world));
  }
}

/** Decides and checks what must hold of every decision. */
function checked(world: World): PodActions {
  const actions = world.decide();
  assert.deepEqual(world.decide(), actions, "the same input gives the same answer");
  const gone = new Set([...actions.kill, ...actions.resetContainers?.containers ?? []].map((k) => k.id));
  for (const s of actions.start) {
    const live = world.containers.filter((c) => c.name === s.name && isLive(c));
    assert.ok(actions.killPod || live.every((c) => gone.has(c.id)), `${s.name} is started while it runs`);
  }
  const started = [...actions.start, ...actions.held].map((s) => s.name);
  assert.equal(new Set(started).size, started.length, "nothing is started twice, or started and held");
  const order = actions.start.map((s) => ["ephemeral", "init", "regular"].indexOf(s.kind));
  assert.deepEqual(order, order.toSorted(), "ephemeral, init, regular");
  assert.ok(actions.start.length === 0 || actions.createSandbox || actions.sandboxId, "a start has a sandbox to go to");
  if (actions.killPod && !actions.createSandbox) assert.deepEqual(actions.start, []);
  if (actions.finished) assert.ok(!world.containers.some(isLive) && actions.start.length + actions.held.length === 0);
  return actions;
}

Deno.test("whatever happens, decisions never start what is live, and settle", async () => {
  await fc.assert(
    fc.asyncProperty(pods, happenings, async (pod, list) => {
      const world = new World(structuredClone(pod));
      for (const h of list) await happen(world, h);
      let rounds = 0;
      for (let actions = checked(world); !isQuiet(actions); actions = checked(world)) {
        world.apply(actions);
        const live = world.containers.filter(isLive).map((c) => c.name);
        assert.equal(new Set(live).size, live.length, "never two live instances of a name");
        assert.ok(++rounds < 30, `does not settle: ${JSON.stringify(actions)}`);
      }
      const settled = world.decide();
      assert.deepEqual([settled.kill, settled.start, settled.remove], [[], [], []]);
    }),
    { numRuns: 400 },
  );
});

Deno.test("a pod that is being deleted gets nothing new", async () => {
  await fc.assert(
    fc.asyncProperty(pods, happenings, async (pod, list) => {
      const world = new World(structuredClone(pod));
      for (const h of list) await happen(world, h);
      world.pod.metadata.deletionTimestamp = "2026-01-01T00:00:00Z";
      const actions = checked(world);
      assert.deepEqual([actions.start, actions.createSandbox, actions.resetContainers], [[], undefined, undefined]);
      world.apply(actions);
      assert.ok(world.decide().finished);
    }),
    { numRuns: 100 },
  );
});

Deno.test("a restart rule is the first one whose exit codes match", () => {
  const rule = (operator: string, values: number[], action = "Restart") => ({
    action,
    exitCodes: { operator, values },
  });
  const c: Container = {
    name: "c",
    restartPolicyRules: [rule("In", [1]), rule("NotIn", [1, 2], "RestartAllContainers")],
  };
  assert.equal(matchingRule(c, 1)?.action, "Restart");
  assert.equal(matchingRule(c, 2), undefined);
  assert.equal(matchingRule(c, 3)?.action, "RestartAllContainers");
  assert.equal(matchingRule({ name: "c", restartPolicyRules: [{ action: "Restart" }] }, 0), undefined);
  assert.equal(matchingRule({ name: "c", restartPolicyRules: [rule("Maybe", [0])] }, 0), undefined);
});

Deno.test("restart after an exit: rules, container policy, pod policy", () => {
  const restart = { action: "Restart", exitCodes: { operator: "In", values: [42] } };
  type Row = [pod: string | undefined, own: string | undefined, ruled: boolean, code: number, want: boolean];
  const rows: Row[] = [
    [undefined, undefined, false, 0, true],
    ["Always", undefined, false, 0, true],
    ["OnFailure", undefined, false, 0, false],
    ["OnFailure", undefined, false, 1, true],
    ["Never", undefined, false, 1, false],
    ["Never", "Always", false, 0, true],
    ["Always", "Never", false, 1, false],
    ["Always", "OnFailure", false, 0, false],
    ["Never", "OnFailure", false, 1, true],
    ["Never", "Never", true, 42, true],
    ["Never", "Never", true, 43, false],
    ["Never", undefined, true, 42, false],
    ["Never", "Sometimes", false, 1, false],
  ];
  for (const [ofPod, own, ruled, code, want] of rows) {
    const container: Container = {
      name: "c",
      ...(own === undefined ? {} : { restartPolicy: own }),
      ...(ruled ? { restartPolicyRules: [restart] } : {}),
    };
    const pod: BoundPod = {
      metadata: { name: "p", namespace: "n", uid: "u" },
      spec: { containers: [container], ...(ofPod === undefined ? {} : { restartPolicy: ofPod }) },
    };
    assert.equal(restartsAfterExit(pod, container, code), want, JSON.stringify([ofPod, own, ruled, code]));
  }
});

Deno.test("the message of a held container gives the whole delay, whatever is left of it", () => {
  const pod: BoundPod = {
    metadata: { name: "web", namespace: "ns", uid: "u1" },
    spec: { containers: [{ name: "c", image: "img:1" }] },
  };
  const world = new World(pod);
  world.apply(world.decide());
  const instance = world.newest("c");
  if (!instance) throw new Error("c was not started");
  world.end(instance, 1);
  const observed = world.observed();
  const input = { pod, observed, now: instance.finishedAt + 100_000, probes: () => ({}) };
  const { held } = decide({ ...input, backOff: () => 200_000 });
  assert.deepEqual(held, [{
    kind: "regular",
    name: "c",
    remainingMs: 200_000,
    reason: "CrashLoopBackOff",
    message: "back-off 5m0s restarting failed container=c pod=web_ns(u1)",
  }]);
  // The clock went on by a millisecond or two before the back-off was asked.
  for (const lost of [1, 2, 40]) {
    assert.equal(decide({ ...input, backOff: () => 200_000 - lost }).held[0]?.message, held[0]?.message);
  }
});

Deno.test("why a sandbox is needed can be told in words", () => {
  const pod: BoundPod = {
    metadata: { name: "web", namespace: "ns", uid: "u1" },
    spec: { containers: [{ name: "c" }] },
  };
  const world = new World(pod);
  const message = () => {
    const verdict = sandboxVerdict(pod, world.observed());
    return verdict.needed ? verdict.why.message : undefined;
  };
  assert.equal(message(), "the pod has no sandbox yet");
  world.createSandbox(0);
  assert.equal(message(), undefined);
  const [sandbox] = world.sandboxes;
  if (sandbox) sandbox.ready = false;
  assert.equal(message(), "sandbox s0 is not ready");
});
