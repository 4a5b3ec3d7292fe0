import assert from "@assert";
import { KubeletError } from "../../mod/base/errors.ts";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { silent } from "../../mod/base/log.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import type { BoundPod, Container, Probe } from "../../mod/kube/types.ts";
import { createProbeManager, type ProbeSample } from "./manager.ts";
import type { ProbeTarget, ProbeUpdate } from "./types.ts";

/** A prober under a simulated clock: exec probes answer what `answers` says for their one-word command. */
function rig(options: { agentAgeMs?: number; random?: number } = {}) {
  const clock = new FakeClock();
  const start = clock.now();
  const calls: { at: number; command: string; containerId: string; timeout: number }[] = [];
  const answers = new Map<string, () => number | Error>();
  const updates: string[] = [];
  const samples: ProbeSample[] = [];
  const events = new RecordingEvents();
  const none = () => Promise.reject(new Error("no network in this test"));
  const manager = createProbeManager({
    runtime: {
      execSync(containerId, command, timeout) {
        const word = command.join(" ");
        calls.push({ at: clock.now() - start, command: word, containerId, timeout });
        const answer = answers.get(word)?.() ?? 0;
        if (answer instanceof Error) return Promise.reject(answer);
        const stdout = new TextEncoder().encode("out:");
        return Promise.resolve({ exitCode: answer, stdout, stderr: new TextEncoder().encode("err") });
      },
    },
    dial: { http: none, tcp: none, grpc: none },
    clock,
    random: () => options.random ?? 0,
    log: silent,
    events,
    startedAt: start - (options.agentAgeMs ?? 3_600_000),
    onUpdate: (u: ProbeUpdate) => updates.push(`${u.type} ${u.containerId} ${u.ok}`),
    onSample: (s) => samples.push(s),
  });
  return { clock, start, calls, answers, updates, samples, events, manager };
}

const exec = (word: string, settings: Partial<Probe> = {}): Probe => ({ exec: { command: [word] }, ...settings });

function podOf(containers: Partial<Container>[], initContainers: Partial<Container>[] = []): BoundPod {
  const named = (c: Partial<Container>, i: number) => ({ name: `c${i}`, image: "x", ...c });
  return {
    metadata: { name: "p", namespace: "n", uid: "u" },
    spec: { containers: containers.map(named), initContainers: initContainers.map(named) },
  };
}

const running = (startedAt: number, extra: Partial<ProbeTarget> = {}): ReadonlyMap<string, ProbeTarget> =>
  new Map([["c0", { containerId: "id1", startedAt, running: true, ...extra }]]);

const times = (calls: { at: number; command: string }[], word: string) =>
  calls.filter((c) => c.command === word).map((c) => c.at);

Deno.test("results before the first probe: readiness false, liveness true, startup unknown", async () => {
  const { manager, start } = rig();
  await using _ = manager;
  manager.addPod(podOf([{ startupProbe: exec("s"), livenessProbe: exec("l"), readinessProbe: exec("r") }]));
  assert.deepEqual(manager.results("id1"), {});
  manager.observe("u", "10.0.0.1", running(start));
  assert.deepEqual(manager.results("id1"), { liveness: true, readiness: false });
});

Deno.test("defaults: period 10 s, timeout 1 s, three failures, one success", async () => {
  const { manager, clock, start, calls, answers, updates } = rig();
  await using _ = manager;
  manager.addPod(podOf([{ readinessProbe: exec("r") }]));
  manager.observe("u", "10.0.0.1", running(start));
  await clock.advance(0);
  assert.deepEqual(calls, [{ at: 0, command: "r", containerId: "id1", timeout: 1 }]);
  assert.deepEqual(manager.results("id1"), { readiness: true });
  answers.set("r", () => 1);
  await clock.advance(20_000);
  assert.deepEqual(manager.results("id1"), { readiness: true });
  await clock.advance(10_000);
  assert.deepEqual(manager.results("id1"), { readiness: false });
  answers.set("r", () => 0);
  await clock.advance(10_000);
  assert.deepEqual(times(calls, "r"), [0, 10_000, 20_000, 30_000, 40_000]);
  assert.deepEqual(updates, ["readiness id1 true", "readiness id1 false", "readiness id1 true"]);
});

Deno.test("thresholds count in a row only", async () => {
  const { manager, clock, start, answers, updates } = rig();
  await using _ = manager;
  const results = [0, 0, 1, 0, 1, 1, 0, 0, 1, 1, 1];
  answers.set("r", () => results.shift() ?? 1);
  manager.addPod(podOf([{ readinessProbe: exec("r", { successThreshold: 2, periodSeconds: 1 }) }]));
  manager.observe("u", "10.0.0.1", running(start));
  await clock.advance(1000);
  assert.deepEqual(updates, ["readiness id1 true"]);
  await clock.advance(8000);
  assert.deepEqual(updates, ["readiness id1 true"], "no three failures in a row yet");
  await clock.advance(1000);
  assert.deepEqual(updates, ["readiness id1 true", "readiness id1 false"]);
});

Deno.test("the first run waits for the initial delay, from the container's start", async () => {
  const { manager, clock, start, calls } = rig();
  await using _ = manager;
  manager.addPod(podOf([{
    readinessProbe: exec("r", { initialDelaySeconds: 15 }),
    livenessProbe: exec("l", { initialDelaySeconds: 15, periodSeconds: 4 }),
  }]));
  manager.observe("u", "10.0.0.1", running(start - 2000));
  await clock.advance(25_000);
  assert.deepEqual(times(calls, "r"), [13_000, 23_000]);
  assert.deepEqual(times(calls, "l"), [16_000, 20_000, 24_000]);
});

Deno.test("startup holds the other probes back, then readiness runs at once", async () => {
  const { manager, clock, start, calls, answers, updates } = rig();
  await using _ = manager;
  answers.set("s", () => clock.now() - start < 20_000 ? 1 : 0);
  manager.addPod(podOf([{
    startupProbe: exec("s", { failureThreshold: 30 }),
    readinessProbe: exec("r"),
    livenessProbe: exec("l", { periodSeconds: 7 }),
  }]));
  manager.observe("u", "10.0.0.1", running(start));
  await clock.advance(19_999);
  assert.deepEqual(calls.map((c) => c.command), ["s", "s"]);
  assert.deepEqual(manager.results("id1"), { liveness: true, readiness: false });
  await clock.advance(15_000);
  assert.deepEqual(times(calls, "s"), [0, 10_000, 20_000]);
  assert.deepEqual(times(calls, "r"), [20_000, 30_000]);
  assert.deepEqual(times(calls, "l"), [21_000, 28_000]);
  assert.deepEqual(updates, ["startup id1 true", "readiness id1 true"]);
  assert.deepEqual(manager.results("id1"), { startup: true, liveness: true, readiness: true });
});

Deno.test("a failed startup or liveness probe holds until a new container id", async () => {
  for (const type of ["startupProbe", "livenessProbe"] as const) {
    const { manager, clock, start, calls, answers, updates } = rig();
    await using _ = manager;
    answers.set("x", () => 1);
    manager.addPod(podOf([{ [type]: exec("x", { periodSeconds: 1, failureThreshold: 2 }) }]));
    manager.observe("u", "10.0.0.1", running(start));
    await clock.advance(30_000);
    manager.observe("u", "10.0.0.1", running(start));
    // A moment in which the runtime did not list the container changes nothing.
    manager.observe("u", "10.0.0.1", new Map());
    manager.observe("u", "10.0.0.1", running(start));
    await clock.advance(30_000);
    assert.deepEqual(times(calls, "x"), [0, 1000]);
    const word = type === "startupProbe" ? "startup" : "liveness";
    assert.deepEqual(updates, [`${word} id1 false`]);
    assert.equal(clock.pending, 0);

    manager.observe("u", "10.0.0.1", running(clock.now(), { containerId: "id2" }));
    assert.deepEqual(manager.results("id1"), {}, "results of the old instance are gone");
    await clock.advance(500);
    assert.equal(calls.at(-1)?.containerId, "id2");
    assert.equal(updates.length, 1, "the old streak does not count for the new instance");
  }
});

Deno.test("events and texts", async () => {
  const cases: { answer: () => number | Error; type: keyof Container; want: string[]; result: boolean }[] = [
    { answer: () => 3, type: "livenessProbe", want: ["Unhealthy Liveness probe failed: out:err"], result: false },
    { answer: () => 3, type: "readinessProbe", want: ["Unhealthy Readiness probe failed: out:err"], result: false },
    { answer: () => 3, type: "startupProbe", want: ["Unhealthy Startup probe failed: out:err"], result: false },
    {
      answer: () => new KubeletError("Timeout", "ExecSync: too long"),
      type: "livenessProbe",
      want: ['Unhealthy Liveness probe failed: command timed out: "x" timed out after 2s'],
      result: false,
    },
    {
      answer: () => new KubeletError("Runtime", "ExecSync id1: broken"),
      type: "livenessProbe",
      want: ["Unhealthy Liveness probe errored and resulted in unknown state: ExecSync id1: broken"],
      result: true,
    },
  ];
  for (const { answer, type, want, result } of cases) {
    const { manager, clock, start, events, answers, samples } = rig();
    await using _ = manager;
    answers.set("x", answer);
    manager.addPod(podOf([{ [type]: exec("x", { failureThreshold: 1, timeoutSeconds: 2 }) }]));
    manager.observe("u", "10.0.0.1", running(start));
    await clock.advance(0);
    assert.deepEqual(events.events.map((e) => `${e.reason} ${e.message}`), want);
    assert.ok(events.events.every((e) => e.type === "Warning" && e.fieldPath === "spec.containers{c0}"));
    const view = manager.results("id1");
    assert.equal(view.liveness ?? view.readiness ?? view.startup, result);
    assert.deepEqual(samples.map((s) => s.ok), result ? [] : [false]);
  }
});

Deno.test("a prober error is tried three times, then discarded", async () => {
  const { manager, clock, start, calls, answers, updates } = rig();
  await using _ = manager;
  let left = 2;
  answers.set("r", () => left-- > 0 ? new KubeletError("Runtime", "hiccup") : 0);
  manager.addPod(podOf([{ readinessProbe: exec("r") }]));
  manager.observe("u", "10.0.0.1", running(start));
  await clock.advance(0);
  assert.deepEqual(times(calls, "r"), [0, 0, 0]);
  assert.deepEqual(updates, ["readiness id1 true"]);
  answers.set("r", () => new KubeletError("Runtime", "down"));
  await clock.advance(60_000);
  assert.equal(calls.length, 3 + 6 * 3);
  assert.deepEqual(manager.results("id1"), { readiness: true }, "errors leave the result as it was");
});

Deno.test("a young agent spreads its first probes over the period", async () => {
  const { manager, clock, start, calls } = rig({ agentAgeMs: 1000, random: 0.4 });
  await using _ = manager;
  manager.addPod(podOf([{ readinessProbe: exec("r"), livenessProbe: exec("l", { periodSeconds: 1 }) }]));
  manager.observe("u", "10.0.0.1", running(start));
  await clock.advance(14_000);
  assert.deepEqual(times(calls, "r"), [4000, 14_000]);
  assert.equal(times(calls, "l")[0], 0, "a probe whose period is not longer than the agent's age does not wait");
});

Deno.test("agent restart: a container older by 10 s keeps what it was until the first result", async () => {
  const probes = { startupProbe: exec("s"), readinessProbe: exec("r"), livenessProbe: exec("l") };
  const cases: { age: number; extra: Partial<ProbeTarget>; want: unknown }[] = [
    { age: 9_999, extra: {}, want: { liveness: true, readiness: false } },
    { age: 10_001, extra: {}, want: { liveness: true, readiness: true, startup: true } },
    // a younger one only when the earlier agent has written down that it had started
    { age: 9_999, extra: { started: true, ready: true }, want: { liveness: true, readiness: true, startup: true } },
    { age: 9_999, extra: { started: true, ready: false }, want: { liveness: true, readiness: false, startup: true } },
    { age: 9_999, extra: { started: false, ready: false }, want: { liveness: true, readiness: false } },
    { age: -1, extra: { started: true, ready: true }, want: { liveness: true, readiness: false } },
    // one that was started by a clock that has been set back since
    { age: -60_000, extra: { started: true, ready: true }, want: { liveness: true, readiness: true, startup: true } },
    { age: -60_000, extra: {}, want: { liveness: true, readiness: false } },
    { age: 10_001, extra: { ready: false }, want: { liveness: true, readiness: false, startup: true } },
    { age: 10_001, extra: { started: false }, want: { liveness: true, readiness: false } },
    { age: 10_001, extra: { running: false }, want: { liveness: true, readiness: false } },
  ];
  for (const { age, extra, want } of cases) {
    const { manager, start } = rig({ agentAgeMs: 0, random: 0.9 });
    await using _ = manager;
    manager.addPod(podOf([probes]));
    manager.observe("u", "10.0.0.1", running(start - age, extra));
    assert.deepEqual(manager.results("id1"), want, `${age} ${JSON.stringify(extra)}`);
  }
});

Deno.test("agent restart: what was started is not asked again; without that knowledge startup still gates", async () => {
  for (const started of [true, undefined]) {
    const { manager, clock, start, calls, answers, updates } = rig({ agentAgeMs: 0 });
    await using _ = manager;
    answers.set("s", () => 1);
    manager.addPod(podOf([{ startupProbe: exec("s"), readinessProbe: exec("r") }]));
    manager.observe("u", "10.0.0.1", running(start - 60_000, started ? { started } : {}));
    await clock.advance(10_000);
    if (started) {
      assert.deepEqual(times(calls, "s"), []);
      assert.deepEqual(times(calls, "r"), [0, 10_000]);
    } else {
      assert.deepEqual(times(calls, "s"), [0, 10_000]);
      assert.deepEqual(times(calls, "r"), []);
    }
    assert.deepEqual(updates, []);
    assert.deepEqual(manager.results("id1"), { readiness: true, startup: true });
  }
});

Deno.test("termination: liveness and startup end, readiness goes on until the pod is removed", async () => {
  const { manager, clock, start, calls, answers } = rig();
  await using _ = manager;
  answers.set("l", () => 1);
  manager.addPod(podOf([{ livenessProbe: exec("l", { failureThreshold: 1 }), readinessProbe: exec("r") }]));
  manager.observe("u", "10.0.0.1", running(start));
  await clock.advance(0);
  assert.deepEqual(manager.results("id1"), { liveness: false, readiness: true });
  manager.stopLivenessAndStartup("u");
  assert.deepEqual(manager.results("id1"), { liveness: true, readiness: true });
  manager.addPod(podOf([{ livenessProbe: exec("l"), readinessProbe: exec("r") }]));
  answers.set("r", () => 1);
  await clock.advance(30_000);
  assert.equal(times(calls, "l").length, 1);
  assert.deepEqual(manager.results("id1"), { liveness: true, readiness: false });
  manager.observe("u", "10.0.0.1", running(start, { running: false }));
  assert.equal(clock.pending, 0);
  manager.removePod("u");
  assert.deepEqual(manager.results("id1"), {});
});

Deno.test("no timer runs while a container does not, and one a worker while it does", async () => {
  const { manager, clock, start, calls } = rig();
  await using _ = manager;
  const probe = exec("x", { periodSeconds: 1 });
  for (let i = 0; i < 50; i++) {
    const pod = podOf([{ livenessProbe: probe, readinessProbe: probe }]);
    pod.metadata.uid = `u${i}`;
    manager.addPod(pod);
    assert.equal(clock.pending, 0);
  }
  for (let i = 0; i < 50; i++) {
    const target = { containerId: `id${i}`, startedAt: start, running: true };
    for (let again = 0; again < 3; again++) manager.observe(`u${i}`, "10.0.0.1", new Map([["c0", target]]));
  }
  assert.equal(clock.pending, 100);
  await clock.advance(2000);
  assert.equal(clock.pending, 100);
  assert.equal(calls.length, 300);
  for (let i = 0; i < 50; i++) manager.observe(`u${i}`, "10.0.0.1", new Map());
  assert.equal(clock.pending, 0);
});

Deno.test("a result that comes after the container was replaced is dropped", async () => {
  const { manager, clock, start, updates } = rig();
  const slow = Promise.withResolvers<number>();
  const events = new RecordingEvents();
  const other = createProbeManager({
    runtime: {
      async execSync() {
        return { exitCode: await slow.promise, stdout: new Uint8Array(), stderr: new Uint8Array() };
      },
    },
    dial: {
      http: () => Promise.reject(new Error("unused")),
      tcp: () => Promise.reject(new Error("unused")),
      grpc: () => Promise.reject(new Error("unused")),
    },
    clock,
    random: () => 0,
    log: silent,
    events,
    startedAt: 0,
    onUpdate: (u) => updates.push(`${u.type} ${u.containerId} ${u.ok}`),
  });
  await using _a = manager;
  await using _b = other;
  other.addPod(podOf([{ readinessProbe: exec("r", { initialDelaySeconds: 5 }) }]));
  other.observe("u", "10.0.0.1", running(start - 5000));
  await clock.advance(0);
  other.observe("u", "10.0.0.1", running(start, { containerId: "id2" }));
  slow.resolve(0);
  await clock.advance(0);
  assert.deepEqual(updates, []);
  await clock.advance(5000);
  assert.deepEqual(updates, ["readiness id2 true"]);
});

Deno.test("sidecars are probed, other init containers are not; $(VAR) comes from literal values", async () => {
  const { manager, clock, start, calls } = rig();
  await using _ = manager;
  const readinessProbe = { exec: { command: ["$(A)", "$(S)", "$(NONE)", "$$(A)", "$"] } };
  const env = [{ name: "A", value: "v" }, { name: "S", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }];
  manager.addPod(podOf([{ name: "main" }], [
    { name: "setup", readinessProbe: exec("never") },
    { name: "side", restartPolicy: "Always", readinessProbe, env },
  ]));
  const at = { startedAt: start, running: true };
  manager.observe(
    "u",
    "10.0.0.1",
    new Map([["setup", { containerId: "a", ...at }], ["side", { containerId: "b", ...at }]]),
  );
  await clock.advance(0);
  assert.deepEqual(calls.map((c) => c.command), ["v  $(NONE) $(A) $"]);
});

Deno.test("a pod that is defined anew under its UID is probed by its new definition", async () => {
  const { manager, clock, start, calls, answers } = rig();
  await using _ = manager;
  answers.set("old", () => 1);
  manager.addPod(podOf([{ startupProbe: exec("old"), readinessProbe: exec("old") }]));
  manager.observe("u", "10.0.0.1", running(start));
  await clock.advance(10_000);
  assert.deepEqual(manager.results("id1"), { readiness: false });
  manager.addPod(podOf([{ readinessProbe: exec("new") }]));
  manager.observe("u", "10.0.0.1", running(start));
  const before = times(calls, "old").length;
  await clock.advance(10_000);
  assert.deepEqual(manager.results("id1"), { readiness: true });
  assert.equal(times(calls, "old").length, before);
  manager.addPod(podOf([{}]));
  manager.observe("u", "10.0.0.1", running(start));
  const asked = times(calls, "new").length;
  await clock.advance(60_000);
  assert.equal(times(calls, "new").length, asked);
  assert.deepEqual(manager.results("id1"), {});
});
