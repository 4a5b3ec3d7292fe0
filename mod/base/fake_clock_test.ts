import assert from "@assert";
import { isAborted } from "./errors.ts";
import { FakeClock } from "./fake_clock.ts";

Deno.test("timers fire in order of time, then of making", async () => {
  const clock = new FakeClock(0);
  const fired: string[] = [];
  clock.after(20, () => fired.push("b"));
  clock.after(10, () => fired.push("a"));
  clock.after(20, () => fired.push("c"));
  await clock.advance(19);
  assert.deepEqual([fired, clock.now()], [["a"], 19]);
  await clock.advance(1);
  assert.deepEqual(fired, ["a", "b", "c"]);
});

Deno.test("what a timer wakes runs before the next timer", async () => {
  const clock = new FakeClock(0);
  const seen: number[] = [];
  void (async () => {
    await clock.sleep(5);
    seen.push(clock.now());
    await clock.sleep(5);
    seen.push(clock.now());
  })();
  clock.after(7, () => seen.push(clock.now()));
  await clock.advance(100);
  assert.deepEqual(seen, [5, 7, 10]);
});

Deno.test("a disposed timer does not fire, an aborted sleep rejects and leaves no timer", async () => {
  const clock = new FakeClock(0);
  let fired = false;
  clock.after(1, () => fired = true)[Symbol.dispose]();
  const abort = new AbortController();
  const slept = clock.sleep(1000, abort.signal);
  abort.abort();
  await assert.rejects(slept, (e: unknown) => isAborted(e));
  await assert.rejects(clock.sleep(1, AbortSignal.abort()), (e: unknown) => isAborted(e));
  await clock.advance(2000);
  assert.deepEqual([fired, clock.pending], [false, 0]);
});
