import assert from "@assert";
import { gunzipSync } from "node:zlib";
import { grpcCode, type MutatingOptions, RuntimeError } from "../../cri/api.ts";
import { abortedBy, isAborted } from "../../mod/base/errors.ts";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { FakeHost } from "../../mod/base/fake_host.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import type { ObservedContainer, ObservedPod } from "../../mod/pod/observed.ts";
import { LogRotation, type LogRotationOptions } from "./rotation.ts";
import { rotationStamp } from "./rotation_plan.ts";

const dir = "/var/log/pods/n_p_u/c";
const signal = new AbortController().signal;

function container(id: string, more: Partial<ObservedContainer> = {}): ObservedContainer {
  return {
    id,
    name: id,
    restartCount: 0,
    sandboxId: "s",
    state: "running",
    createdAt: 1,
    startedAt: 2,
    finishedAt: 0,
    exitCode: 0,
    reason: "",
    message: "",
    image: "",
    imageRef: "",
    hash: undefined,
    annotations: {},
    logPath: `${dir}/0.log`,
    mounts: [],
    ...more,
  };
}

/** A runtime that makes a new log file, as a real one does. */
function rig(options: Partial<LogRotationOptions> = {}, containers: ObservedContainer[] = [container("c")]) {
  const clock = new FakeClock();
  const host = new FakeHost({ clock });
  const log = new RecordingLogger();
  const reopened: { id: string; reason: string; message: string }[] = [];
  const hooks: { reopen?: (id: string, options: MutatingOptions) => Promise<void> } = {};
  const pod: ObservedPod = { uid: "u", name: "p", namespace: "n", sandboxes: [], containers, readAt: 0 };
  const scope = new Scope("test");
  const rotation = new LogRotation({
    host,
    clock,
    log,
    scope,
    podLogsDir: "/var/log/pods",
    pods: () => [pod],
    maxSizeBytes: 10,
    maxFiles: 5,
    maxWorkers: 1,
    intervalMs: 10_000,
    runtime: {
      async reopenContainerLog(id, call) {
        reopened.push({ id, reason: call.because.reason, message: call.because.message });
        await hooks.reopen?.(id, call);
        const path = containers.find((one) => one.id === id)?.logPath ?? "";
        if (!host.exists(path)) host.put(path, "", 0o640);
      },
    },
    ...options,
  });
  const names = async (at = dir) => (await host.readDir(at)).map((one) => one.name).sort();
  const later = async (seconds = 10) => {
    await clock.advance(seconds * 1000);
    await rotation.sweep(signal);
  };
  return { clock, host, log, rotation, reopened, hooks, names, later, scope };
}

const failed = () => Promise.reject(new RuntimeError("ReopenContainerLog", grpcCode.Unknown, "no"));

Deno.test("log rotation: sizes, and what is looked at", async (t) => {
  const cases: [string, number, string, Partial<ObservedContainer>, boolean][] = [
    ["smaller than the limit", 10, "123456789", {}, false],
    ["as large as the limit", 10, "1234567890", {}, true],
    ["a limit of 0, something written", 0, "1", {}, true],
    ["a limit of 0, nothing written", 0, "", {}, false],
    ["exited", 10, "1234567890", { state: "exited" }, false],
    ["created", 10, "1234567890", { state: "created" }, false],
    ["unknown", 10, "1234567890", { state: "unknown" }, false],
    ["outside of our directory", 10, "1234567890", { logPath: "/var/log/podsx/0.log" }, false],
    ["leading out of our directory", 10, "1234567890", { logPath: "/var/log/pods/../x/0.log" }, false],
    ["without a log", 10, "1234567890", { logPath: "" }, false],
  ];
  for (const [what, maxSizeBytes, text, more, rotates] of cases) {
    await t.step(what, async () => {
      const one = container("c", more);
      const { host, rotation, reopened } = rig({ maxSizeBytes }, [one]);
      if (one.logPath !== "") host.put(one.logPath, text);
      await rotation.sweep(signal);
      assert.equal(reopened.length, rotates ? 1 : 0);
    });
  }
  await t.step("a link in the place of the log is not followed", async () => {
    const { host, rotation, reopened } = rig();
    host.put("/etc/shadow", "1234567890");
    host.putDir(dir);
    host.putNode(`${dir}/0.log`, "symlink", "/etc/shadow");
    await rotation.sweep(signal);
    assert.deepEqual(reopened, []);
  });
});

Deno.test("log rotation: renamed, opened anew with its reason, compressed at the next, five files in all", async () => {
  const { host, clock, reopened, names, later } = rig();
  const stamps: string[] = [];
  for (let round = 0; round < 7; round++) {
    host.put(`${dir}/0.log`, `round ${round}: 1234567890`, 0o640);
    await later();
    stamps.push(`0.log.${rotationStamp(clock.now())}`);
  }
  const kept = stamps.slice(-4);
  assert.deepEqual(await names(), ["0.log", ...kept.slice(0, 3).map((name) => `${name}.gz`), kept[3]]);
  for (const [at, name] of kept.entries()) {
    const bytes = await host.readBytes(`${dir}/${name}${at < 3 ? ".gz" : ""}`);
    assert.equal(new TextDecoder().decode(at < 3 ? gunzipSync(bytes) : bytes), `round ${at + 3}: 1234567890`);
  }
  assert.equal((await host.stat(`${dir}/${kept[0]}.gz`))?.mode, 0o640);
  assert.deepEqual(reopened[0], {
    id: "c",
    reason: "LogRotation",
    message: "its log has 19 bytes, and containerLogMaxSize is 10",
  });
});

Deno.test("log rotation: the log gets its name back when it is not opened anew, and is tried again later", async () => {
  const { host, hooks, names, later, log, reopened } = rig();
  host.put(`${dir}/0.log`, "1234567890");
  hooks.reopen = failed;
  await later();
  assert.deepEqual(await names(), ["0.log"]);
  assert.equal(await host.readText(`${dir}/0.log`), "1234567890");
  assert.match(String(log.lines[0]?.fields.error), /ReopenContainerLog: no/);
  assert.equal(log.lines[0]?.fields.path, `${dir}/0.log`);
  await later(9);
  assert.equal(reopened.length, 1, "it is held for an interval");
  delete hooks.reopen;
  await later(1);
  assert.equal((await names()).length, 2);
  assert.equal(await host.readText(`${dir}/0.log`), "");
});

Deno.test("log rotation: a log that was opened anew although the call failed is not overwritten", async () => {
  const { host, hooks, names, later } = rig();
  host.put(`${dir}/0.log`, "1234567890");
  hooks.reopen = () => {
    host.put(`${dir}/0.log`, "new");
    return failed();
  };
  await later();
  assert.equal(await host.readText(`${dir}/0.log`), "new");
  assert.equal((await names()).length, 2);
});

Deno.test("log rotation: a log that is not there is opened anew; when that does not help, not at every look", async () => {
  const { host, rotation, reopened, later, hooks, log } = rig();
  host.put(`${dir}/0.log.20260101-000000`, "what the container writes until then");
  await rotation.sweep(signal);
  assert.equal(reopened[0]?.reason, "LogMissing");
  assert(host.exists(`${dir}/0.log`));
  await host.remove(`${dir}/0.log`);
  hooks.reopen = failed;
  for (let look = 0; look < 60; look++) await later();
  assert(reopened.length < 10, `${reopened.length} calls`);
  assert(log.lines.every((line) => line.fields.container === "c"));
});

Deno.test("log rotation: a full disk stops no rotation, and the number of files is kept", async () => {
  const { host, names, later, log } = rig({ maxFiles: 3 });
  host.put(`${dir}/0.log`, "first: 1234567890");
  await later();
  using _full = host.full("/var/log");
  for (let round = 0; round < 4; round++) {
    host.put(`${dir}/0.log`, `round ${round}: 1234567890`);
    await later();
  }
  const left = await names();
  assert.equal(left.length, 3);
  assert(left.every((name) => !/gz|tmp/.test(name)), left.join());
  assert.match(String(log.lines.find((line) => line.level === "warn")?.message), /cannot be compressed/);
});

Deno.test("log rotation: nothing is renamed when old files cannot be removed", async () => {
  const { host, later, names, reopened } = rig({ maxFiles: 2 });
  host.put(`${dir}/0.log`, "1234567890");
  host.put(`${dir}/0.log.20251231-000000`, "old");
  using _readOnly = host.readOnly("/var/log");
  await later();
  assert.deepEqual(reopened, []);
  assert.deepEqual(await names(), ["0.log", "0.log.20251231-000000"]);
});

Deno.test("log rotation: what an agent that was killed left behind goes at the next rotation", async () => {
  const { host, later, names, clock } = rig();
  host.put(`${dir}/0.log`, "1234567890");
  host.put(`${dir}/0.log.20251231-000001`, "whole");
  host.put(`${dir}/0.log.20251231-000001.tmp`, "ha");
  await later();
  assert.deepEqual(await names(), [
    "0.log",
    "0.log.20251231-000001.gz",
    `0.log.${rotationStamp(clock.now())}`,
  ]);
});

Deno.test("log rotation: no copy stays of a log that was removed while it was compressed", async () => {
  const { host, later, names } = rig();
  host.put(`${dir}/0.log`, "1234567890");
  host.put(`${dir}/0.log.20251231-000001`, "old");
  using _removed = host.fault((operation, path) => {
    if (operation !== "rename" || !path.endsWith(".tmp")) return undefined;
    const before = path.slice(0, -".tmp".length);
    if (host.exists(before)) void host.remove(before);
    return undefined;
  });
  await later();
  assert(!(await names()).some((name) => name.startsWith("0.log.20251231")), (await names()).join());
});

Deno.test("log rotation: one stat for each container that is idle, no listing, no call", async () => {
  const many = Array.from({ length: 50 }, (_, at) => container(`c${at}`, { logPath: `${dir}/${at}.log` }));
  const { host, rotation, reopened } = rig({}, many);
  for (const one of many) host.put(one.logPath, "small");
  host.operations.length = 0;
  await rotation.sweep(signal);
  assert.deepEqual(host.operations.map((one) => one.operation), Array(50).fill("lstat"));
  assert.deepEqual(reopened, []);
});

Deno.test("log rotation: a runtime that hangs on one container holds up no other; work in lanes of its own", async () => {
  const many = ["a", "b", "c"].map((id) => container(id, { logPath: `/var/log/pods/n_p_u/${id}/0.log` }));
  const { host, clock, rotation, hooks, reopened, scope } = rig({}, many);
  for (const one of many) host.put(one.logPath, "1234567890");
  const { promise, resolve } = Promise.withResolvers<void>();
  hooks.reopen = (id) => id === "a" ? promise : Promise.resolve();
  scope.spawn("rotation", (signal) => rotation.run(signal));
  await clock.advance(0);
  assert.deepEqual(reopened.map((one) => one.id), ["a", "b", "c"]);
  host.put("/var/log/pods/n_p_u/b/0.log", "1234567890");
  await clock.advance(10_000);
  assert.deepEqual(reopened.map((one) => one.id), ["a", "b", "c", "b"], "and it is not begun twice");
  resolve();
  await scope.close();
});

Deno.test("log rotation: no more at once than there are workers", async () => {
  for (const maxWorkers of [1, 2]) {
    const many = ["a", "b", "c"].map((id) => container(id, { logPath: `/var/log/pods/n_p_u/${id}/0.log` }));
    let [now, most] = [0, 0];
    const fake = new FakeHost();
    const { rotation } = rig({
      maxWorkers,
      host: {
        lstat: (path) => fake.lstat(path),
        rename: (from, to) => fake.rename(from, to),
        remove: (path) => fake.remove(path),
        gzip: (from, to) => fake.gzip(from, to),
        async readDir(path) {
          most = Math.max(most, ++now);
          await new Promise((done) => setTimeout(done, 0));
          now--;
          return fake.readDir(path);
        },
      },
    }, many);
    for (const one of many) fake.put(one.logPath, "1234567890");
    await rotation.sweep(signal);
    assert.equal(most, maxWorkers);
  }
});

Deno.test("log rotation: a negative size turns it off; it ends with its scope", async () => {
  const off = rig({ maxSizeBytes: -1 });
  off.host.put(`${dir}/0.log`, "1234567890");
  await off.rotation.run(signal);
  assert.deepEqual(off.host.operations, []);

  const on = rig();
  on.host.put(`${dir}/0.log`, "1234567890");
  on.hooks.reopen = (_id, { signal }) =>
    new Promise((_, reject) => signal?.addEventListener("abort", () => reject(abortedBy(signal))));
  const stop = new AbortController();
  const under = on.rotation.sweep(stop.signal);
  await on.clock.advance(0);
  stop.abort();
  await assert.rejects(under, isAborted);
  assert.equal(await on.host.readText(`${dir}/0.log`), "1234567890", "the log has its name back");
  assert.deepEqual(on.log.lines, []);
});

Deno.test("log rotation: at start, the log of a container that ended in the middle of one gets its name back", async () => {
  const exited = (id: string) => container(id, { state: "exited", logPath: `/var/log/pods/n_p_u/${id}/0.log` });
  const { host, rotation, scope, clock, log, reopened } = rig({}, ["cut", "whole", "none", "gone"].map(exited));
  const at = (id: string, name: string) => `/var/log/pods/n_p_u/${id}/${name}`;
  host.put(at("cut", "0.log.20251231-000000.gz"), "older");
  host.put(at("cut", "0.log.20251231-000001"), "last words");
  host.put(at("whole", "0.log"), "last words");
  host.put(at("whole", "0.log.20251231-000001"), "before");
  host.put(at("none", "0.log.20251231-000001.gz"), "before");
  scope.spawn("rotation", (signal) => rotation.run(signal));
  await clock.advance(0);
  assert.equal(await host.readText(at("cut", "0.log")), "last words");
  assert.equal(await host.readText(at("whole", "0.log")), "last words");
  assert(!host.exists(at("none", "0.log")));
  assert.deepEqual(log.lines.map((one) => one.fields.path), [at("cut", "0.log")]);
  assert.deepEqual(reopened, []);
  await scope.close();
});

Deno.test("log budget: looked at each second, rotated in shares, the oldest goes, told once of each container", async () => {
  const { clock, host, log, rotation, names, scope } = rig({ maxSizeBytes: 1_000, maxFiles: 5, budgetBytes: 100 });
  const stop = new AbortController();
  const path = `${dir}/0.log`;
  host.put(path, "x".repeat(19));
  const running = rotation.run(stop.signal).catch(() => {});
  const settle = async () => {
    for (let i = 0; i < 300; i++) await turn();
  };
  await settle();
  assert.deepEqual(await names(), ["0.log"]);
  const total = async () => {
    let sum = 0;
    for (const name of await names()) sum += host.text(`${dir}/${name}`)?.length ?? 0;
    return sum;
  };
  for (let i = 0; i < 8; i++) {
    host.put(path, "y".repeat(60 + i));
    await clock.advance(1_000);
    await settle();
    assert.ok(await total() <= 100, `${await total()}`);
  }
  assert.ok((await names()).length > 1);
  host.put(path, "z".repeat(500));
  await clock.advance(1_000);
  await settle();
  assert.deepEqual([await names(), await total()], [["0.log"], 0]);
  const told = log.lines.filter(({ level, message }) => level === "warn" && /log's budget/.test(message));
  assert.equal(told.length, 1);
  assert.equal(told[0]?.fields.container, "c");
  stop.abort();
  await running;
  await scope.close();
});

Deno.test("log budget: it holds where rotation by size is turned off", async () => {
  const { host, later, names } = rig({ maxSizeBytes: -1, maxFiles: 2, budgetBytes: 100 });
  host.put(`${dir}/0.log`, "x".repeat(49));
  await later();
  assert.deepEqual(await names(), ["0.log"]);
  host.put(`${dir}/0.log`, "x".repeat(50));
  await later();
  assert.equal((await names()).length, 2);
});
