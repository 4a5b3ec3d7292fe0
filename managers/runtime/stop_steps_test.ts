import assert from "@assert";
import { journaledRuntime } from "../../cri/journaled.ts";
import { grpcCode, RuntimeError, type RuntimeService } from "../../cri/api.ts";
import { abortedBy } from "../../mod/base/errors.ts";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { Journal } from "../../mod/base/journal.ts";
import { silent } from "../../mod/base/log.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { Killer } from "./kill.ts";

const pod: BoundPod = {
  metadata: { name: "web", namespace: "default", uid: "u1" },
  spec: {
    containers: [
      { name: "a", resources: {}, lifecycle: { preStop: { exec: { command: ["bye"] } } } },
      { name: "b", resources: {} },
    ],
    terminationGracePeriodSeconds: 20,
  },
};
const why = { reason: "SourceRemoved", message: "its manifest is gone" };

/** What the runtime does with a stop: `hang` heeds its caller's leaving, `deaf` does not even that. */
type Answer = "ok" | "hang" | "deaf" | Error;

function setUp(answer: (id: string, grace: number) => Answer, processes: Record<string, number[] | undefined> = {}) {
  const clock = new FakeClock(0);
  const journal = new Journal({ clock });
  const events = new RecordingEvents();
  const did: string[] = [];
  const survive = new Set<string>();
  const bare: Pick<RuntimeService, "stopContainer"> = {
    stopContainer(id, grace, { signal }) {
      did.push(`${clock.now() / 1000} stop ${id} ${grace}`);
      const said = answer(id, grace);
      if (said === "ok") return Promise.resolve();
      if (said instanceof Error) return Promise.reject(said);
      return new Promise((_, reject) => {
        if (said === "deaf" || !signal) return;
        signal.addEventListener("abort", () => reject(abortedBy(signal)), { once: true });
      });
    },
  };
  const killer = new Killer({
    clock,
    journal,
    events,
    log: silent,
    runtime: journaledRuntime(bare as RuntimeService, journal),
    hooks: {
      run: ({ containerName }) => {
        did.push(`${clock.now() / 1000} hook ${containerName}`);
        return Promise.resolve();
      },
    },
    groups: {
      processesOf: (uid, id = "") => Promise.resolve(uid === "u1" ? processes[id] : undefined),
      killProcesses: (_uid, id = "") => {
        did.push(`${clock.now() / 1000} kill ${id}`);
        if (survive.has(id)) return Promise.reject(new Error("processes 5 survived"));
        const killed = processes[id] ?? [];
        processes[id] = [];
        return Promise.resolve(killed);
      },
    },
  });
  const kill = async (names = ["a"], signal = new AbortController().signal, graceSeconds?: number, ms = 200_000) => {
    const containers = names.map((name) => ({ id: `id-${name}`, name }));
    const request = { pod, containers, why, podIP: undefined, signal };
    const killing = killer.kill({ ...request, ...(graceSeconds === undefined ? {} : { graceSeconds }) })
      .then(() => undefined, (error: Error) => error);
    await clock.advance(ms);
    return await killing;
  };
  return { clock, journal, events, did, survive, killer, kill };
}

for (const how of ["hang", "deaf"] as const) {
  Deno.test(`a stop that hangs (${how}): no grace, then the container's group; each step told`, async () => {
    const t = setUp(() => how, { "id-a": [11, 12] });
    assert.equal(await t.kill(), undefined);
    assert.deepEqual(t.did, ["0 hook a", "0 stop id-a 20", "51 stop id-a 0", "82 kill id-a"]);
    const records = t.journal.records("u1");
    assert.deepEqual(
      records.map((r) => [r.action, r.at, r.reason, r.container]),
      [
        ...(how === "hang" ? [["StopContainer", 0, "SourceRemoved", "a"]] : []),
        ...(how === "hang" ? [["StopContainer", 51_000, "SourceRemoved", "a"]] : []),
        ["CgroupKill", 82_000, "SourceRemoved", "a"],
      ],
    );
    assert.equal(
      records.at(-1)?.message,
      "its manifest is gone; the 2 processes of its control group killed, as StopContainer without grace did not end it in 31 s",
    );
  });
}

Deno.test("a stop that fails within the grace is the caller's to try again; beyond it and the bound it is forced", async () => {
  const t = setUp(() => new RuntimeError("StopContainer", grpcCode.Unknown, "no"), { "id-a": [11] });
  const request = { pod, containers: [{ id: "id-a", name: "a" }], why, podIP: undefined };
  const { signal } = new AbortController();
  await assert.rejects(t.killer.kill({ ...request, signal }), /StopContainer: no/);
  await t.clock.advance(15_000);
  await assert.rejects(t.killer.kill({ ...request, signal }), /StopContainer: no/);
  await t.clock.advance(37_000);
  await t.killer.kill({ ...request, signal });
  // The hook ran once, and the grace did not begin anew.
  assert.deepEqual(t.did, [
    "0 hook a",
    "0 stop id-a 20",
    "15 stop id-a 5",
    "52 stop id-a 2",
    "52 stop id-a 0",
    "52 kill id-a",
  ]);
});

Deno.test("a container that lived on after a failed stop has all its grace the next time", async () => {
  let broken = true;
  const t = setUp(() => broken ? new RuntimeError("StopContainer", grpcCode.Unavailable, "away") : "ok");
  assert.match(String(await t.kill()), /away/);
  broken = false;
  assert.equal(await t.kill(), undefined);
  assert.deepEqual(t.did.slice(2), ["200 hook a", "200 stop id-a 20"]);
});

Deno.test("after a forced end another try gives no grace, and kills only what is there", async () => {
  const t = setUp(() => "hang", { "id-a": [11] });
  await t.kill(["a"], undefined, undefined, 100_000);
  t.did.length = 0;
  assert.equal(await t.kill(), undefined);
  assert.deepEqual(t.did, ["100 stop id-a 0"]);
  assert.equal(t.journal.records().filter((r) => r.action === "CgroupKill").length, 1);
});

Deno.test("one container that hangs holds up no other", async () => {
  const t = setUp((id) => id === "id-a" ? "hang" : "ok", { "id-a": [11] });
  await t.kill(["a", "b"]);
  assert.ok(t.did.includes("0 stop id-b 20"));
  assert.deepEqual(t.did.filter((d) => d.includes("kill")), ["82 kill id-a"]);
});

Deno.test("a container without a group of its own, and processes that survive, are told", async () => {
  const none = setUp(() => "hang");
  assert.match(String(await none.kill()), /NotStopped: container a does not end \(.*has no control group of its own/);
  const stuck = setUp(() => "hang", { "id-a": [5] });
  stuck.survive.add("id-a");
  assert.match(String(await stuck.kill()), /NotStopped: container a does not end: processes 5 survived/);
  assert.equal(stuck.journal.records().at(-1)?.error, "processes 5 survived");
});

Deno.test("a shorter grace counts from its own request, and calling off ends the wait at once", async () => {
  const t = setUp((_id, grace) => grace === 2 ? "ok" : "hang", { "id-a": [5] });
  const controller = new AbortController();
  const killing = t.killer.kill({
    pod,
    containers: [{ id: "id-a", name: "a" }],
    why,
    podIP: undefined,
    signal: controller.signal,
  });
  const failed = assert.rejects(killing, { code: "Aborted" });
  await turn();
  controller.abort();
  await failed;
  assert.equal(await t.kill(["a"], new AbortController().signal, 1), undefined);
  assert.deepEqual(t.did, ["0 hook a", "0 stop id-a 20", "0 stop id-a 2"]);
});
