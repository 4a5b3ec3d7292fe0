import assert from "@assert";
import { Scope } from "../base/scope.ts";
import { KubeletError } from "../base/errors.ts";
import { FakeClock, turn } from "../base/fake_clock.ts";
import { RecordingLogger } from "../base/log.ts";
import type { BoundPod } from "../kube/types.ts";
import { configSource } from "../kube/pod.ts";
import type { PodSyncer, SyncOutcome, TerminateContext } from "./pod_worker.ts";
import { PodWorkers } from "./pod_workers.ts";

const pod = (uid: string, name = "web", grace = 30): BoundPod => ({
  metadata: { name, namespace: "default", uid, annotations: { [configSource]: "file" } },
  spec: { containers: [], terminationGracePeriodSeconds: grace },
});
const why = { reason: "SourceRemoved", message: "gone" };

/** A syncer whose every step can be held up, made to fail, or answered. */
class Script implements PodSyncer {
  readonly did: string[] = [];
  outcome: SyncOutcome = {};
  hold: Partial<Record<"sync" | "terminate" | "release" | "purge", Promise<void>>> = {};
  fail: Partial<Record<"sync" | "terminate" | "release" | "purge", number>> = {};
  graces: TerminateContext[] = [];

  async #step(step: "sync" | "terminate" | "release" | "purge", uid: string, signal: AbortSignal): Promise<void> {
    this.did.push(`${step} ${uid}`);
    const hold = this.hold[step];
    if (hold) {
      await Promise.race([
        hold,
        new Promise<never>((_, reject) =>
          signal.addEventListener("abort", () => reject(new KubeletError("Aborted", "called off")), { once: true })
        ),
      ]);
    }
    if ((this.fail[step] ?? 0) > 0) {
      this.fail[step]!--;
      throw new KubeletError("Runtime", `${step} failed`);
    }
  }
  async sync(p: BoundPod, { signal }: { signal: AbortSignal }): Promise<SyncOutcome> {
    await this.#step("sync", p.metadata.uid, signal);
    return this.outcome;
  }
  terminate(p: BoundPod, context: TerminateContext): Promise<void> {
    this.graces.push(context);
    return this.#step("terminate", p.metadata.uid, context.signal);
  }
  release(p: BoundPod, { signal }: { signal: AbortSignal }): Promise<void> {
    return this.#step("release", p.metadata.uid, signal);
  }
  purge(p: BoundPod, { signal }: { signal: AbortSignal }): Promise<void> {
    return this.#step("purge", p.metadata.uid, signal);
  }
}

function setUp() {
  const clock = new FakeClock(0);
  const syncer = new Script();
  const scope = new Scope("test");
  const log = new RecordingLogger();
  const freed: string[] = [];
  const told: string[] = [];
  const workers = new PodWorkers({
    scope,
    syncer,
    clock,
    random: () => 0,
    log,
    resyncMs: 60_000,
    onFreed: (p) => freed.push(p.metadata.uid),
    meter: {
      restartedPod: (isStatic) => told.push(`again ${isStatic}`),
      orphanedPod: () => told.push("orphan"),
    },
  });
  return { clock, syncer, scope, log, workers, freed, told };
}

Deno.test("a pod is synced at once, when poked, and after the resync period", async () => {
  await using t = await start();
  assert.deepEqual(t.syncer.did, ["sync 1"]);
  t.workers.poke("1");
  await turn();
  assert.equal(t.syncer.did.length, 2);
  await t.clock.advance(59_999);
  assert.equal(t.syncer.did.length, 2);
  await t.clock.advance(1);
  assert.equal(t.syncer.did.length, 3);
});

Deno.test("pokes that come during a pass are coalesced into one more pass", async () => {
  await using t = await start();
  const gate = Promise.withResolvers<void>();
  t.syncer.hold.sync = gate.promise;
  t.workers.poke("1");
  await turn();
  for (let i = 0; i < 5; i++) t.workers.poke("1");
  delete t.syncer.hold.sync;
  gate.resolve();
  await turn();
  assert.equal(t.syncer.did.length, 3);
});

Deno.test("removal calls the running pass off and goes through every state", async () => {
  await using t = await start();
  t.syncer.hold.sync = new Promise(() => {});
  t.workers.poke("1");
  await turn();
  t.workers.remove("1", { why });
  await turn();
  assert.deepEqual(t.syncer.did, ["sync 1", "sync 1", "terminate 1", "release 1", "purge 1"]);
  assert.equal(t.workers.has("1"), false);
  assert.deepEqual(t.syncer.graces.map((g) => g.graceSeconds), [30]);
});

Deno.test("a pod that ended by itself stays finished until it is removed", async () => {
  await using t = await start();
  t.syncer.outcome = { terminal: { reason: "Completed", message: "done" } };
  t.workers.poke("1");
  await turn();
  assert.equal(t.workers.get("1")?.state, "finished");
  await t.clock.advance(600_000);
  assert.deepEqual(t.syncer.did.slice(2), ["terminate 1", "release 1"]);
  t.workers.remove("1", { why });
  await turn();
  assert.deepEqual(t.syncer.did.slice(4), ["purge 1"]);
  assert.equal(t.workers.has("1"), false);
});

Deno.test("a failing step is told and tried again, sooner than a failing sync", async () => {
  await using t = await start();
  t.syncer.fail = { terminate: 2, purge: 1 };
  t.workers.remove("1", { why });
  await turn();
  assert.equal(t.workers.get("1")?.state, "terminating");
  assert.match(t.log.lines.at(-1)!.message, /could not be terminated/);
  await t.clock.advance(500 + 1000 + 500);
  assert.equal(t.workers.has("1"), false);
  assert.equal(t.syncer.did.filter((d) => d === "terminate 1").length, 3);
});

Deno.test("a sync that throws is tried again after the error back-off", async () => {
  const t = setUp();
  t.syncer.fail = { sync: 1 };
  t.workers.update(pod("1"));
  await t.clock.advance(9999);
  assert.equal(t.syncer.did.length, 1);
  await t.clock.advance(1);
  assert.equal(t.syncer.did.length, 2);
  await t.scope.close();
});

Deno.test("a shorter grace shortens a running termination, a longer one does not lengthen it", async () => {
  await using t = await start();
  t.syncer.hold.terminate = new Promise(() => {});
  t.workers.remove("1", { why });
  await turn();
  t.workers.get("1")!.kill({ why, graceSeconds: 5 });
  await turn();
  t.workers.get("1")!.kill({ why, graceSeconds: 20 });
  await turn();
  assert.deepEqual(t.syncer.graces.map((g) => g.graceSeconds), [30, 5]);
});

Deno.test("a grace below one second counts as one", async () => {
  await using t = await start();
  t.workers.get("1")!.kill({ why, graceSeconds: 0 });
  await turn();
  assert.equal(t.syncer.graces[0]?.graceSeconds, 1);
});

Deno.test("static pods of one full name run one after another", async () => {
  await using t = await start();
  const gate = Promise.withResolvers<void>();
  t.syncer.hold.terminate = gate.promise;
  t.workers.remove("1", { why });
  t.workers.update(pod("2"));
  t.workers.update(pod("3", "other"));
  await turn();
  assert.deepEqual([t.workers.waiting, t.workers.get("2")], [1, undefined]);
  assert.ok(t.syncer.did.includes("sync 3"));
  gate.resolve();
  await turn();
  assert.ok(t.syncer.did.indexOf("sync 2") > t.syncer.did.indexOf("purge 1"));
});

Deno.test("a pod that comes back under its old UID starts after its clean-up", async () => {
  await using t = await start();
  const gate = Promise.withResolvers<void>();
  t.syncer.hold.purge = gate.promise;
  t.workers.remove("1", { why });
  await turn();
  t.workers.update(pod("1"));
  await turn();
  assert.equal(t.syncer.did.filter((d) => d === "sync 1").length, 1);
  assert.deepEqual(t.told, []);
  gate.resolve();
  await turn();
  assert.equal(t.syncer.did.filter((d) => d === "sync 1").length, 2);
  assert.deepEqual(t.told, ["again true"]);
});

Deno.test("a pod waiting for its turn can be removed", async () => {
  await using t = await start();
  t.syncer.hold.terminate = new Promise(() => {});
  t.workers.remove("1", { why });
  t.workers.update(pod("2"));
  t.workers.remove("2", { why });
  assert.equal(t.workers.has("2"), false);
});

Deno.test("an orphan is ended with a grace of one second and leaves no worker", async () => {
  const t = setUp();
  t.workers.removeOrphan(pod("9", "stray", 30), why);
  await turn();
  assert.deepEqual(t.syncer.did, ["terminate 9", "release 9", "purge 9"]);
  assert.equal(t.syncer.graces[0]?.graceSeconds, 1);
  assert.equal(t.workers.has("9"), false);
  assert.deepEqual(t.told, ["orphan"]);
  const [said] = t.log.lines;
  assert.deepEqual([said?.level, said?.fields.pod, said?.fields.because], ["warn", "stray_default", why.message]);
  await t.scope.close();
});

Deno.test("closing the scope leaves pods as they are", async () => {
  const t = setUp();
  t.workers.update(pod("1"));
  await turn();
  await t.scope.close();
  assert.deepEqual(t.syncer.did, ["sync 1"]);
  assert.equal(t.clock.pending, 0);
});

async function start() {
  const t = setUp();
  t.workers.update(pod("1"));
  await turn();
  return { ...t, [Symbol.asyncDispose]: () => t.scope.close() };
}
