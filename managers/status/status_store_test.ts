import assert from "@assert";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { FakeHost } from "../../mod/base/fake_host.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import { StatusStore } from "./status_store.ts";

const dir = "/root/pod_status";

function setUp() {
  const host = new FakeHost({ clock: new FakeClock() });
  const log = new RecordingLogger();
  const scope = new Scope("test");
  const make = () => new StatusStore({ host, dir, log, scope });
  return { host, log, scope, make };
}

Deno.test("what was kept is there for the next life, and what was removed is not", async () => {
  const t = setUp();
  const store = t.make();
  assert.deepEqual(await store.load(), new Map());
  store.save("a", { phase: "Pending" });
  store.save("a", { phase: "Running" });
  store.save("b", { phase: "Succeeded" });
  store.remove("b");
  await t.scope.settled();
  assert.deepEqual([...await t.make().load()], [["a", { phase: "Running" }]]);
  await t.scope.close();
});

Deno.test("a damaged file is told and dropped, a strange one left alone", async () => {
  const t = setUp();
  await t.host.mkdir(dir);
  await t.host.write(`${dir}/bad.json`, "{");
  await t.host.write(`${dir}/list.json`, "[]");
  await t.host.write(`${dir}/notes.txt`, "mine");
  assert.equal((await t.make().load()).size, 0);
  assert.equal(t.log.lines.length, 2);
  assert.deepEqual((await t.host.readDir(dir)).map((e) => e.name), ["notes.txt"]);
  await t.scope.close();
});

Deno.test("a UID that is no file name is never written", async () => {
  const t = setUp();
  const store = t.make();
  await store.load();
  store.save("../../etc/passwd", { phase: "Running" });
  await t.scope.settled();
  assert.deepEqual(await t.host.readDir(dir), []);
  await t.scope.close();
});

Deno.test("a full disk is told once and costs no pod", async () => {
  const t = setUp();
  const store = t.make();
  await store.load();
  using _fault = t.host.fault((operation) => operation === "write" ? new Error("no space left on device") : undefined);
  store.save("a", { phase: "Running" });
  await turn();
  store.save("a", { phase: "Failed" });
  await t.scope.settled();
  assert.equal(t.log.lines.filter((l) => l.level === "error").length, 1);
  await t.scope.close();
});

Deno.test("a directory that cannot be made is told, and the agent goes on without what was kept", async () => {
  const t = setUp();
  using _fault = t.host.fault((operation) => operation === "mkdir" ? new Error("no space left on device") : undefined);
  assert.equal((await t.make().load()).size, 0);
  assert.equal(t.log.lines[0]?.level, "error");
  await t.scope.close();
});

Deno.test("what a full disk did not take is written when there is room, but nothing older than the newest", async () => {
  const t = setUp();
  const store = t.make();
  await store.load();
  {
    using _fault = t.host.fault((operation) =>
      operation === "write" ? new Error("no space left on device") : undefined
    );
    store.save("a", { phase: "Pending" });
    store.save("b", { phase: "Running" });
    await t.scope.settled();
    store.retry();
    await t.scope.settled();
  }
  store.remove("b");
  store.retry();
  await t.scope.settled();
  assert.deepEqual([...await t.make().load()], [["a", { phase: "Pending" }]]);
  await t.scope.close();
});
