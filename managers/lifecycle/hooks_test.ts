import assert from "@assert";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import type { BoundPod, LifecycleHandler } from "../../mod/kube/types.ts";
import type { HttpGetCall, HttpGetOutcome } from "../probes/types.ts";
import { createHookRunner } from "./hooks.ts";

const pod: BoundPod = {
  metadata: { name: "p", namespace: "n", uid: "u" },
  spec: { containers: [{ name: "c", ports: [{ name: "web", containerPort: 8080 }] }] },
};

function rig(replies: HttpGetOutcome[] = [], exitCode = 0) {
  const clock = new FakeClock();
  const events = new RecordingEvents();
  const log = new RecordingLogger();
  const calls: HttpGetCall[] = [];
  const cuts = { httpFallback: 0, sleepCut: 0 };
  const execs: { id: string; command: string[]; timeout: number }[] = [];
  const hooks = createHookRunner({
    runtime: {
      execSync(id, command, timeout) {
        execs.push({ id, command, timeout });
        const out = new TextEncoder().encode("the secret");
        return Promise.resolve({ exitCode, stdout: out, stderr: out });
      },
    },
    http(call) {
      calls.push(call);
      const reply = replies.shift();
      return reply ? Promise.resolve(reply) : Promise.reject(new Error("no reply prepared"));
    },
    clock,
    log,
    events,
    meter: { httpFallback: () => cuts.httpFallback++, sleepCut: () => cuts.sleepCut++ },
  });
  const controller = new AbortController();
  const run = (handler: LifecycleHandler) =>
    hooks.run({
      handler,
      pod,
      containerName: "c",
      containerId: "id1",
      podIP: "10.0.0.1",
      signal: controller.signal,
    });
  return { clock, events, log, calls, execs, cuts, run, controller };
}

const ok = (status: number): HttpGetOutcome => ({ ok: true, status, body: "", hostPort: "10.0.0.1:8080" });
const failed = (over: Partial<Extract<HttpGetOutcome, { ok: false }>>): HttpGetOutcome => ({
  ok: false,
  stage: "request",
  plainHttp: false,
  message: "no route",
  hostPort: "10.0.0.1:8080",
  ...over,
});

Deno.test("exec: the command as written, no time limit, exit code decides, output stays in the log", async () => {
  const good = rig();
  await good.run({ exec: { command: ["echo", "$(HOME)"] } });
  assert.deepEqual(good.execs, [{ id: "id1", command: ["echo", "$(HOME)"], timeout: 0 }]);

  const bad = rig([], 3);
  await assert.rejects(bad.run({ exec: { command: ["false"] } }), (thrown: Error) => {
    assert.equal(thrown.message, 'Exec lifecycle hook of container c failed: command "false" exited with 3');
    return true;
  });
  assert.ok(bad.log.lines.some((l) => l.level === "detail1" && l.fields.stdout === "the secret"));
  assert.equal(bad.events.events.length, 0);
});

Deno.test("httpGet: any status is success", async () => {
  for (const status of [200, 302, 404, 500]) {
    const { run, calls } = rig([ok(status)]);
    await run({ httpGet: { port: "web", path: "/x" } });
    const call = calls[0];
    if (!call) throw new Error("no request was made");
    assert.equal(call.purpose, "lifecycle");
    assert.equal(call.timeoutMs, 0);
    assert.equal(call.podIP, "10.0.0.1");
    assert.deepEqual(call.container.ports, [{ name: "web", containerPort: 8080 }]);
    assert.equal(call.fallbackScheme, undefined);
  }
});

Deno.test("httpGet: HTTPS answered in HTTP is tried once more as HTTP, with an event", async () => {
  const { run, calls, events, cuts } = rig([failed({ plainHttp: true }), ok(400)]);
  await run({ httpGet: { port: 8080, scheme: "HTTPS" } });
  assert.deepEqual(calls.map((c) => c.fallbackScheme), [undefined, "http"]);
  assert.deepEqual(
    events.events.map(({ type, reason, message, fieldPath }) => ({ type, reason, message, fieldPath })),
    [{
      type: "Warning",
      reason: "LifecycleHTTPFallback",
      message: "request to HTTPS lifecycle hook 10.0.0.1:8080 got HTTP response, retry with HTTP succeeded",
      fieldPath: undefined,
    }],
  );
  assert.deepEqual(cuts, { httpFallback: 1, sleepCut: 0 });
});

Deno.test("httpGet: failures", async () => {
  const cases: [HttpGetOutcome[], string | undefined, RegExp][] = [
    [[failed({})], "Network", /^HTTP lifecycle hook of container c failed: no route$/],
    [[failed({ plainHttp: true, message: "tls" }), failed({})], "Network", /failed: tls$/],
    [[failed({ stage: "build", message: "port x not found" })], "BadPod", /port x not found$/],
    [[failed({ stage: "body" })], undefined, /never/],
  ];
  for (const [replies, code, message] of cases) {
    const { run, events } = rig(replies);
    const work = run({ httpGet: { port: 8080, scheme: "HTTPS" } });
    if (code === undefined) await work;
    else await assert.rejects(work, { code, message });
    assert.equal(events.events.length, 0);
  }
});

Deno.test("sleep lasts its seconds on the clock, zero allowed, and ends with the signal", async () => {
  const { run, clock, controller, cuts } = rig();
  await run({ sleep: { seconds: 0 } });
  let done = false;
  const five = run({ sleep: { seconds: 5 } }).then(() => done = true);
  await clock.advance(4999);
  assert.equal(done, false);
  await clock.advance(1);
  await five;
  assert.equal(cuts.sleepCut, 0);
  const long = assert.rejects(run({ sleep: { seconds: 500 } }), { code: "Aborted" });
  controller.abort();
  await long;
  assert.equal(cuts.sleepCut, 1);
  assert.equal(clock.pending, 0);
  await assert.rejects(run({ sleep: { seconds: NaN } }), { code: "BadPod" });
});

Deno.test("a handler that cannot be run fails with the remedy", async () => {
  const { run } = rig();
  await assert.rejects(run({ tcpSocket: { port: 1 } }), {
    code: "BadPod",
    message: /tcpSocket hooks are not supported/,
  });
  await assert.rejects(run({}), { code: "BadPod", message: /no handler: use exec, httpGet or sleep/ });
});
