import assert from "@assert";
import { FakeClock } from "../base/fake_clock.ts";
import { silent } from "../base/log.ts";
import { keepSystemdInformed, systemdNotify, systemdRequest } from "./systemd.ts";

const requests: readonly [string, Record<string, string>, { socket: string | undefined; watchdogMs: number }][] = [
  ["nothing", {}, { socket: undefined, watchdogMs: 0 }],
  ["a socket", { NOTIFY_SOCKET: "/run/n" }, { socket: "/run/n", watchdogMs: 0 }],
  ["an abstract socket", { NOTIFY_SOCKET: "@n" }, { socket: undefined, watchdogMs: 0 }],
  ["a watchdog", { NOTIFY_SOCKET: "/n", WATCHDOG_USEC: "30000000", WATCHDOG_PID: "7" }, {
    socket: "/n",
    watchdogMs: 30_000,
  }],
  ["a watchdog without a process", { WATCHDOG_USEC: "2000" }, { socket: undefined, watchdogMs: 2 }],
  ["another's watchdog", { WATCHDOG_USEC: "2000", WATCHDOG_PID: "8" }, { socket: undefined, watchdogMs: 0 }],
  ["no number", { WATCHDOG_USEC: "soon" }, { socket: undefined, watchdogMs: 0 }],
  ["a negative number", { WATCHDOG_USEC: "-5" }, { socket: undefined, watchdogMs: 0 }],
];
for (const [what, env, expected] of requests) {
  Deno.test(`systemd's request: ${what}`, () => assert.deepEqual(systemdRequest((name) => env[name], 7), expected));
}

Deno.test("systemd hears READY, then of health at half the interval, and of the end", async () => {
  const clock = new FakeClock();
  const sent: [number, string][] = [];
  const began = clock.now();
  let reason: string | undefined;
  const ended = new AbortController();
  const running = keepSystemdInformed({
    request: { socket: "/n", watchdogMs: 10_000 },
    notify: (message) => (sent.push([clock.now() - began, message]), Promise.resolve()),
    unhealthy: () => reason,
    clock,
    log: silent,
    signal: ended.signal,
  });
  await clock.advance(5000);
  reason = "the sync loop is stuck";
  await clock.advance(10_000);
  reason = undefined;
  await clock.advance(5000);
  ended.abort();
  await running;
  assert.deepEqual(sent, [
    [0, "READY=1"],
    [0, "WATCHDOG=1"],
    [5000, "WATCHDOG=1"],
    [20_000, "WATCHDOG=1"],
    [20_000, "STOPPING=1"],
  ]);
});

Deno.test("systemd that can't be reached is no reason to fail, and is told of once", async () => {
  const clock = new FakeClock();
  const warned: string[] = [];
  const ended = new AbortController();
  const running = keepSystemdInformed({
    request: { socket: "/n", watchdogMs: 1000 },
    notify: () => Promise.reject(new Error("no such socket")),
    unhealthy: () => undefined,
    clock,
    log: { ...silent, warn: (text) => void warned.push(text) },
    signal: ended.signal,
  });
  await clock.advance(3000);
  ended.abort();
  await running;
  assert.equal(warned.length, 1);
});

Deno.test("a message to systemd is one datagram, and leaves no socket behind", async () => {
  const dir = await Deno.makeTempDir();
  try {
    const manager = Deno.listenDatagram({ transport: "unixpacket", path: `${dir}/manager` });
    await Deno.writeTextFile(`${dir}/own`, "left by a run that was killed");
    const received = manager.receive();
    await systemdNotify(`${dir}/manager`, `${dir}/own`)("READY=1");
    assert.equal(new TextDecoder().decode((await received)[0]), "READY=1");
    manager.close();
    await assert.rejects(systemdNotify(`${dir}/none`, `${dir}/own`)("READY=1"));
    assert.deepEqual([...Deno.readDirSync(dir)].map(({ name }) => name), ["manager"]);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
