import assert from "@assert";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { FakeHost } from "../../mod/base/fake_host.ts";
import { Scope } from "../../mod/base/scope.ts";
import { KeptFiles } from "./kept_files.ts";

function setUp(openFiles: number) {
  const clock = new FakeClock();
  const files = Object.fromEntries(["a", "b", "c"].map((name) => [`/groups/${name}`, name]));
  const limits = `Max open files            ${openFiles}                 4096                 files\n`;
  const host = new FakeHost({ clock, files: { ...files, "/proc/self/limits": limits } });
  const scope = new Scope("test");
  return { clock, host, scope, kept: new KeptFiles({ host, clock, scope }) };
}

Deno.test("files stay open up to a quarter of what the process may have; more are read all the same", async () => {
  const { host, scope, kept } = setUp(8);
  await using _scope = scope;
  assert.deepEqual(["a", "b", "c", "none"].map((name) => kept.read(`/groups/${name}`)), ["a", "b", "c", undefined]);
  assert.equal(kept.size, 2);
  host.put("/groups/a", "A");
  host.put("/groups/c", "C");
  assert.deepEqual(["a", "c"].map((name) => kept.read(`/groups/${name}`)), ["A", "C"]);
});

Deno.test("a group that was made again under its name is read anew; one that is gone is let go", async () => {
  const { host, scope, kept } = setUp(4000);
  await using _scope = scope;
  kept.read("/groups/a");
  kept.read("/groups/b");
  await host.removeTree("/groups");
  host.put("/groups/a", "new");
  assert.equal(kept.read("/groups/a"), "new");
  assert.equal(kept.read("/groups/b"), undefined);
  assert.equal(kept.size, 0);
});

Deno.test("what nobody reads for a while is closed, then nothing runs any more", async () => {
  const { clock, scope, kept } = setUp(4000);
  await using _scope = scope;
  kept.read("/groups/a");
  kept.read("/groups/b");
  await clock.advance(20_000);
  kept.read("/groups/b");
  await clock.advance(21_000);
  assert.equal(kept.size, 1);
  await clock.advance(80_000);
  assert.equal(kept.size, 0);
  assert.equal(clock.pending, 0);
  assert.equal(kept.read("/groups/a"), "a");
  assert.equal(kept.size, 1);
});

Deno.test("a process that may open few files, or whose limit is not known, keeps none", async () => {
  const { host, scope, kept } = setUp(3);
  await using _scope = scope;
  assert.equal(kept.read("/groups/a"), "a");
  await host.remove("/proc/self/limits");
  const other = new KeptFiles({ host, clock: new FakeClock(), scope });
  assert.equal(other.read("/groups/a"), "a");
  assert.deepEqual([kept.size, other.size], [0, 0]);
});
