import assert from "@assert";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { KubeletError } from "../../mod/base/errors.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { renewExpired } from "./renewal.ts";

const second = 1_000, minute = 60 * second, hour = 60 * minute;

/** A node whose certificate lasts for so long; `tries` says what comes of each bootstrap. */
async function scene(o: { lifeMs: number | undefined; bootstrap?: boolean }) {
  const clock = new FakeClock();
  const log = new RecordingLogger();
  const world = {
    notAfter: o.lifeMs === undefined ? undefined : clock.now() + o.lifeMs,
    refusedSince: undefined as number | undefined,
  };
  const asked: { at: number; signal: AbortSignal; end: PromiseWithResolvers<void> }[] = [];
  const stop = new AbortController();
  const began = clock.now();
  const running = renewExpired({
    shown: () => Promise.resolve({ path: "/pki/current.pem", notAfter: world.notAfter }),
    refusedSince: () => world.refusedSince,
    ...(o.bootstrap ?? true
      ? {
        bootstrap: (signal: AbortSignal) => {
          const end = Promise.withResolvers<void>();
          signal.addEventListener("abort", () => end.reject(signal.reason), { once: true });
          asked.push({ at: clock.now() - began, signal, end });
          return end.promise;
        },
      }
      : {}),
    clock,
    random: () => 0,
    log,
  }, stop.signal).catch((thrown: unknown) => thrown);
  /** Passes time in the small steps of the tasks that are under way. */
  const pass = async (ms: number) => {
    for (let left = ms; left > 0; left -= second) await clock.advance(Math.min(second, left));
  };
  const settle = async () => {
    for (let i = 0; i < 20; i++) await turn();
  };
  await settle();
  return {
    clock,
    world,
    asked,
    pass,
    settle,
    lines: (level: string) => log.lines.filter((line) => line.level === level).map((line) => JSON.stringify(line)),
    async end() {
      stop.abort();
      assert((await running as KubeletError).code === "Aborted");
      assert.equal(clock.pending, 0);
    },
  };
}

Deno.test("a certificate that expires while the agent runs is replaced by the bootstrap identity, each time", async () => {
  const { world, asked, pass, settle, clock, lines, end } = await scene({ lifeMs: hour });
  await pass(hour - second);
  assert.equal(asked.length, 0);
  await pass(11 * second);
  assert.equal(asked.length, 1);
  assert.match(
    lines("warn")[0] ?? "",
    /has expired; a new one is asked for with --bootstrap-kubeconfig.*\/pki\/current.pem/,
  );
  world.notAfter = clock.now() + hour;
  asked[0]?.end.resolve();
  await settle();
  await pass(hour - minute);
  assert.equal(asked.length, 1);
  await pass(2 * minute);
  assert.equal(asked.length, 2);
  await end();
  assert(asked[1]?.signal.aborted);
});

Deno.test("what is missing is asked for at once, and again with the contract's back-off while it fails", async () => {
  const { asked, pass, settle, lines, end } = await scene({ lifeMs: undefined });
  for (const wait of [2, 4, 8, 16, 32, 32]) {
    const { length } = asked;
    asked.at(-1)?.end.reject(new KubeletError("Api", "the request was denied"));
    await settle();
    await pass(wait * second - second);
    assert.equal(asked.length, length);
    await pass(second);
    assert.equal(asked.length, length + 1);
  }
  assert.match(lines("error")[0] ?? "", /it is asked for again.*denied.*"inMs":2000/);
  await end();
});

Deno.test("what goes on failing in one way is said every ten minutes, a new failure at once", async () => {
  const { asked, pass, settle, lines, end } = await scene({ lifeMs: undefined });
  const fail = async (text: string, times: number) => {
    for (let i = 0; i < times; i++) {
      asked.at(-1)?.end.reject(new KubeletError("Network", text));
      await settle();
      await pass(32 * second);
    }
  };
  await fail("unreachable", 15);
  assert.equal(lines("error").length, 1);
  await fail("unreachable", 10);
  assert.equal(lines("error").length, 2);
  await fail("denied", 3);
  assert.equal(lines("error").length, 3);
  await end();
});

Deno.test("a certificate that comes in another way ends the asking", async () => {
  const { world, asked, pass, clock, end } = await scene({ lifeMs: -1 });
  assert.equal(asked.length, 1);
  world.notAfter = clock.now() + hour;
  await pass(11 * second);
  assert(asked[0]?.signal.aborted);
  await pass(minute);
  assert.equal(asked.length, 1);
  await end();
});

Deno.test("a refusal of a while counts as an end; a moment's does not; a server that refuses all is asked ever less", async () => {
  const { world, asked, pass, clock, settle, end } = await scene({ lifeMs: 1000 * hour });
  world.refusedSince = clock.now();
  await pass(9 * second);
  world.refusedSince = undefined;
  await pass(minute);
  assert.equal(asked.length, 0);
  world.refusedSince = clock.now();
  await pass(20 * second);
  assert.equal(asked.length, 1);
  const waits: number[] = [];
  for (let i = 0; i < 3; i++) {
    const { length } = asked, from = clock.now();
    asked.at(-1)?.end.resolve();
    await settle();
    while (asked.length === length) await pass(second);
    waits.push(clock.now() - from);
  }
  // looked at every ten seconds: after 20, 40 and 80 seconds of refusals
  assert.deepEqual(waits.map((ms) => Math.round(ms / (10 * second))), [2, 4, 8]);
  await end();
});

Deno.test("without a bootstrap identity the file and the remedy are named, at once and every ten minutes", async () => {
  const { world, pass, clock, lines, end } = await scene({ lifeMs: minute, bootstrap: false });
  await pass(minute + 10 * second);
  assert.match(
    lines("error")[0] ?? "",
    /client certificate has expired.*put a valid certificate with its key into \/pki\/current\.pem.*--bootstrap-kubeconfig/,
  );
  await pass(9 * minute);
  assert.equal(lines("error").length, 1);
  await pass(2 * minute);
  assert.equal(lines("error").length, 2);
  world.notAfter = clock.now() + hour;
  await pass(30 * minute);
  assert.equal(lines("error").length, 2);
  world.refusedSince = clock.now();
  await pass(minute);
  assert.match(lines("error")[2] ?? "", /refuses the client certificate \(401\).*compare the clocks/);
  await end();
});
