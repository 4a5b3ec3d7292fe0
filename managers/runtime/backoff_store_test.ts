import assert from "@assert";
import { Backoff } from "../../mod/base/backoff.ts";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { errno, FakeHost } from "../../mod/base/fake_host.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import { BackoffStore } from "./backoff_store.ts";

const path = "/root/restart_backoff.json";

function setUp() {
  const clock = new FakeClock();
  const host = new FakeHost({ clock, files: { "/root/keep": "" } });
  const log = new RecordingLogger();
  const scope = new Scope("test");
  const make = () => {
    const backoff = new Backoff({ clock, initial: 10_000, max: 300_000 });
    return { backoff, store: new BackoffStore({ backoff, host, path, log, scope }) };
  };
  return { clock, host, log, scope, make };
}

Deno.test("delays go on after the agent was killed", async () => {
  const t = setUp();
  const first = t.make();
  await first.store.load();
  for (let i = 0; i < 3; i++) first.backoff.step("k");
  await Promise.all([first.store.save(), first.store.save()]);
  const second = t.make();
  await second.store.load();
  assert.equal(second.backoff.remaining("k"), 40_000);
  await t.scope.close();
});

Deno.test("a key that has been quiet for long is not kept", async () => {
  const t = setUp();
  const first = t.make();
  first.backoff.step("k");
  await t.clock.advance(600_001);
  await first.store.save();
  assert.equal(await t.host.readText(path), "{}");
  await t.scope.close();
});

Deno.test("who asks while a write is under way waits for the next one; a disk that refuses keeps nobody waiting", async () => {
  const t = setUp();
  const { backoff, store } = t.make();
  backoff.begin("a", t.clock.now());
  const first = store.save();
  backoff.begin("b", t.clock.now());
  await Promise.all([first, store.save()]);
  assert.deepEqual(Object.keys(JSON.parse(await t.host.readText(path))), ["a", "b"]);
  t.host.fault((operation) => operation === "write" ? errno("EIO") : undefined);
  await store.save();
  assert.equal(t.log.lines.length, 1);
  await t.scope.close();
});

for (
  const [name, text] of [["cut off", '{"k":'], ["a list", "[]"], ["of another shape", '{"k":{"delay":"x"}}'], [
    "half right",
    '{"k":{"delay":1,"last":1,"under":{"at":1}}}',
  ]]
) {
  Deno.test(`a file that is ${name} is told and ignored`, async () => {
    const t = setUp();
    await t.host.write(path, text!);
    const { backoff, store } = t.make();
    await store.load();
    assert.deepEqual([backoff.delay("k"), t.log.lines.length], [0, 1]);
    await t.scope.close();
  });
}
