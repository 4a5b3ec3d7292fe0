import assert from "@assert";
import { FakeClock, turn } from "../base/fake_clock.ts";
import { FakeHost } from "../base/fake_host.ts";
import { RecordingLogger } from "../base/log.ts";
import { Scope } from "../base/scope.ts";
import { Housekeeping } from "./housekeeping.ts";

/** A node with remainders of pods: each with a directory, `withVolumes` and `withGroups` with those too. */
function setUp(pods: readonly string[], more: { withVolumes?: string[]; withGroups?: string[] } = {}) {
  const clock = new FakeClock(0);
  const host = new FakeHost();
  const log = new RecordingLogger();
  const scope = new Scope("test");
  for (const uid of pods) host.putDir(`/r/pods/${uid}`);
  const did: string[] = [];
  const alive = new Set<string>();
  /** What hangs: `unmount u1`, `destroy u1`, `garbage`. */
  const hangs = new Set<string>();
  const fails = new Set<string>();
  const groups = new Set(more.withGroups ?? []);
  const orphans: string[] = [];
  const act = async (what: string): Promise<void> => {
    did.push(what);
    if (hangs.has(what)) await new Promise(() => {});
    if (fails.has(what)) throw new Error(`${what} failed`);
  };
  const housekeeping = new Housekeeping({
    scope,
    host,
    clock,
    log,
    workers: { has: (uid) => alive.has(uid) },
    podsDir: "/r/pods",
    onOrphans: (pods, failed) => orphans.push(`${pods} ${failed}`),
    collectGarbage: () => act("garbage"),
    volumes: {
      podsOnDisk: () => Promise.resolve(more.withVolumes ?? []),
      unmountPod: (uid) => act(`unmount ${uid}`),
    },
    cgroups: {
      podsWithGroups: () => Promise.resolve([...groups]),
      destroyPod: (uid) => act(`destroy ${uid}`).then(() => void groups.delete(uid)),
      minimiseCpu: (uid) => act(`minimise ${uid}`),
    },
  });
  const run = async (ms = 0) => {
    await clock.advance(ms);
    housekeeping.trigger();
    await turn();
    await turn();
  };
  return { clock, host, log, did, alive, hangs, fails, orphans, housekeeping, run };
}

Deno.test("what is left of a pod goes: volumes before the group, and the directory last", async () => {
  const t = setUp(["u1", "u2", "lost+found!"], { withVolumes: ["u1"], withGroups: ["u1", "u3"] });
  t.alive.add("u2");
  await t.run();
  assert.deepEqual(t.did, ["minimise u1", "destroy u3", "unmount u1", "destroy u1"]);
  assert.deepEqual(t.host.tree("/r/pods"), ["lost+found!/", "u2/"]);
});

Deno.test("an unmount or a group that hangs holds up neither other pods nor garbage collection", async () => {
  const t = setUp(["u1", "u2", "u3"], { withVolumes: ["u1", "u3"], withGroups: ["u2"] });
  t.hangs.add("unmount u1").add("destroy u2");
  await t.run();
  assert.deepEqual(t.host.tree("/r/pods"), ["u1/", "u2/"]);
  await t.run(60_000);
  assert.equal(t.did.filter((d) => d === "garbage").length, 1);
  // What hangs is not begun a second time beside it.
  assert.equal(t.did.filter((d) => d === "unmount u1").length, 1);
  t.host.putDir("/r/pods/u4");
  await t.run(60_000);
  assert.deepEqual(t.host.tree("/r/pods"), ["u1/", "u2/"]);
});

Deno.test("a garbage collection that hangs is not begun again, and the disk is cleaned all the same", async () => {
  const t = setUp(["u1"]);
  t.hangs.add("garbage");
  t.alive.add("u1");
  await t.run(60_000);
  t.alive.clear();
  await t.run(60_000);
  assert.deepEqual([t.did, t.host.tree("/r/pods")], [["garbage"], []]);
});

Deno.test("volumes that cannot be unmounted keep the group, which only loses its CPU, and are tried again", async () => {
  const t = setUp(["u1"], { withVolumes: ["u1"], withGroups: ["u1"] });
  t.fails.add("unmount u1");
  await t.run();
  assert.deepEqual(t.did, ["minimise u1", "unmount u1"]);
  assert.match(t.log.lines.at(-1)?.message ?? "", /the volumes of a pod that is gone cannot be removed yet/);
  assert.deepEqual(t.orphans, ["1 0", "1 1"]);
  t.fails.clear();
  await t.run();
  assert.deepEqual(t.did.slice(2), ["minimise u1", "unmount u1", "destroy u1"]);
  assert.deepEqual(t.orphans.slice(2), ["1 1", "1 0"]);
  await t.run(60_000);
  assert.deepEqual(t.orphans.slice(4), ["0 0"]);
});

Deno.test("a group whose CPU cannot be lowered holds up nothing", async () => {
  const t = setUp(["u1"], { withVolumes: ["u1"], withGroups: ["u1"] });
  t.fails.add("minimise u1");
  await t.run();
  assert.deepEqual([t.did, t.host.tree("/r/pods")], [["minimise u1", "unmount u1", "destroy u1"], []]);
});

Deno.test("a pod that comes back is left alone from then on", async () => {
  const t = setUp(["u1"], { withVolumes: ["u1"] });
  t.housekeeping.trigger();
  t.alive.add("u1");
  await turn();
  assert.deepEqual([t.did, t.host.tree("/r/pods")], [[], ["u1/"]]);
  assert.equal(t.orphans.at(-1)?.endsWith(" 0"), true, "it is no pod whose directory cannot be removed");
});
