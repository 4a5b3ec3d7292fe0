import assert from "@assert";
import { grpcCode, RuntimeError } from "../../cri/api.ts";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { KubeletError } from "../../mod/base/errors.ts";
import { Journal } from "../../mod/base/journal.ts";
import { silent } from "../../mod/base/log.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import type { BoundPod, Container } from "../../mod/kube/types.ts";
import { Killer } from "./kill.ts";

const why = { reason: "SourceRemoved", message: "gone" };
const preStop = { exec: { command: ["bye"] } };

function makePod(containers: Container[], initContainers: Container[] = [], grace = 30): BoundPod {
  return {
    metadata: { name: "p", namespace: "default", uid: "1" },
    spec: { containers, initContainers, terminationGracePeriodSeconds: grace },
  };
}

function setUp(options: { hook?: (signal: AbortSignal) => Promise<void>; stopMs?: (id: string) => number } = {}) {
  const clock = new FakeClock(0);
  const did: string[] = [];
  const events = new RecordingEvents();
  const fail = new Map<string, Error>();
  const killer = new Killer({
    clock,
    events,
    log: silent,
    journal: new Journal({ clock }),
    groups: { processesOf: () => Promise.resolve([]), killProcesses: () => Promise.resolve([]) },
    runtime: {
      async stopContainer(id, grace) {
        did.push(`stop ${id} ${grace}s at ${clock.now()}`);
        const error = fail.get(id);
        if (error) throw error;
        await clock.sleep(options.stopMs?.(id) ?? 0);
        did.push(`stopped ${id}`);
      },
    },
    hooks: {
      run: async ({ containerName, signal }) => {
        did.push(`hook ${containerName}`);
        await options.hook?.(signal);
      },
    },
  });
  const kill = async (pod: BoundPod, names: string[], graceSeconds?: number) => {
    const killing = killer.kill({
      pod,
      containers: names.map((name) => ({ id: `id-${name}`, name })),
      why,
      podIP: undefined,
      signal: new AbortController().signal,
      ...(graceSeconds === undefined ? {} : { graceSeconds }),
    });
    const settled = killing.then(() => undefined, (e) => e as Error);
    await clock.advance(120_000);
    return await settled;
  };
  return { clock, did, events, fail, kill };
}

const c = (name: string, more: Partial<Container> = {}): Container => ({ name, resources: {}, ...more });

Deno.test("regular containers are stopped at the same time with the pod's grace", async () => {
  const t = setUp({ stopMs: () => 1000 });
  assert.equal(await t.kill(makePod([c("a"), c("b")]), ["a", "b"]), undefined);
  assert.deepEqual(t.did, ["stop id-a 30s at 0", "stop id-b 30s at 0", "stopped id-a", "stopped id-b"]);
  assert.deepEqual(t.events.events.map((e) => [e.reason, e.message, e.fieldPath]), [
    ["Killing", "Stopping container a", "spec.containers{a}"],
    ["Killing", "Stopping container b", "spec.containers{b}"],
  ]);
});

Deno.test("preStop runs first and its seconds are taken off the grace", async () => {
  const t: ReturnType<typeof setUp> = setUp({ hook: () => t.clock.sleep(4000) });
  await t.kill(makePod([c("a", { lifecycle: { preStop } })]), ["a"]);
  assert.deepEqual(t.did.slice(0, 2), ["hook a", "stop id-a 26s at 4000"]);
});

Deno.test("a preStop that does not end goes on while its container is stopped with the minimum, and no longer", async () => {
  const t: ReturnType<typeof setUp> = setUp({
    stopMs: () => 2000,
    hook: (signal) =>
      new Promise((_, reject) =>
        signal.addEventListener("abort", () => {
          t.did.push(`hook ends at ${t.clock.now()}`);
          reject(new KubeletError("Aborted", "cut off"));
        }, { once: true })
      ),
  });
  await t.kill(makePod([c("a", { lifecycle: { preStop } })], [], 10), ["a"]);
  assert.deepEqual(t.did, ["hook a", "stop id-a 2s at 10000", "stopped id-a", "hook ends at 12000"]);
  assert.deepEqual(t.events.events.map((e) => e.reason), ["Killing", "FailedPreStopHook"]);
});

Deno.test("sidecars stop after the containers they serve, the last started first", async () => {
  const t = setUp({ stopMs: () => 1000 });
  const sidecar = (name: string) => c(name, { restartPolicy: "Always" });
  await t.kill(makePod([c("a")], [sidecar("s1"), sidecar("s2")]), ["s1", "s2", "a"]);
  assert.deepEqual(t.did.filter((d) => d.startsWith("stopped")), ["stopped id-a", "stopped id-s2", "stopped id-s1"]);
});

Deno.test("a sidecar waits no longer than the grace", async () => {
  const t = setUp({ stopMs: (id) => id === "id-a" ? 60_000 : 0 });
  await t.kill(makePod([c("a")], [c("s", { restartPolicy: "Always" })], 5), ["s", "a"]);
  assert.ok(t.did.includes("stop id-s 2s at 5000"));
});

Deno.test("one that fails does not keep the others, and its error is the answer", async () => {
  const t = setUp();
  t.fail.set("id-a", new RuntimeError("StopContainer", grpcCode.Unknown, "stuck"));
  const error = await t.kill(makePod([c("a"), c("b")]), ["a", "b"]);
  assert.match(error!.message, /stuck/);
  assert.ok(t.did.includes("stopped id-b"));
});

Deno.test("a container that is gone counts as stopped", async () => {
  const t = setUp();
  t.fail.set("id-a", new RuntimeError("StopContainer", grpcCode.NotFound, "no such container"));
  assert.equal(await t.kill(makePod([c("a")]), ["a"]), undefined);
});

Deno.test("an override replaces the grace, never under the runtime's minimum", async () => {
  const t = setUp();
  await t.kill(makePod([c("a")]), ["a"], 1);
  await turn();
  assert.equal(t.did[0], "stop id-a 2s at 0");
});
