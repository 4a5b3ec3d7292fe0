import assert from "@assert";
import { isAborted } from "./errors.ts";
import { FakeClock, turn } from "./fake_clock.ts";
import { Lanes } from "./lanes.ts";

const setUp = () => {
  const clock = new FakeClock(0);
  const lanes = new Lanes({ clock, lanes: 2, leaseMs: 1000 });
  const begun: string[] = [];
  const call = (name: string, ms: number, signal?: AbortSignal, first?: boolean) =>
    lanes.use(
      async () => {
        begun.push(name);
        await clock.sleep(ms);
      },
      signal,
      first,
    );
  return { clock, begun, call };
};

Deno.test("no more calls than lanes are in flight, and they go in order", async () => {
  const { clock, begun, call } = setUp();
  const all = Promise.all([call("a", 10), call("b", 20), call("c", 10), call("d", 10)]);
  await turn();
  assert.deepEqual(begun, ["a", "b"]);
  await clock.advance(10);
  assert.deepEqual(begun, ["a", "b", "c"]);
  await clock.advance(20);
  await all;
  assert.deepEqual([begun.length, clock.pending], [4, 0]);
});

Deno.test("calls that hang give their lanes up", async () => {
  const { clock, begun, call } = setUp();
  const hung = Promise.all([call("hung", 1e6), call("hung too", 1e6)]);
  const others = Promise.all([call("c", 10), call("d", 10), call("e", 10)]);
  await clock.advance(999);
  assert.equal(begun.length, 2);
  await clock.advance(30);
  await others;
  await clock.advance(1e6);
  await hung;
  // The lanes that were given up were not given back twice.
  const again = Promise.all([call("f", 10), call("g", 10), call("h", 10)]);
  await turn();
  assert.deepEqual(begun.slice(5), ["f", "g"]);
  await clock.advance(20);
  await again;
});

Deno.test("a caller that leaves the queue takes no lane", async () => {
  const { clock, begun, call } = setUp();
  const abort = new AbortController();
  const all = Promise.all([call("a", 10), call("b", 10)]);
  const left = call("c", 10, abort.signal);
  abort.abort();
  await assert.rejects(left, (e: unknown) => isAborted(e));
  await clock.advance(10);
  await all;
  assert.deepEqual(begun, ["a", "b"]);
});

Deno.test("those that ask to go first wait for a lane, but for nobody who has not asked", async () => {
  const { clock, begun, call } = setUp();
  const abort = new AbortController();
  const all = Promise.all([call("a", 10), call("b", 10), call("c", 10), call("d", 10)]);
  const ahead = Promise.all([call("x", 10, undefined, true), call("y", 10, undefined, true)]);
  const left = call("z", 10, abort.signal, true);
  abort.abort();
  await assert.rejects(left, (e: unknown) => isAborted(e));
  await clock.advance(10);
  assert.deepEqual(begun, ["a", "b", "x", "y"]);
  await clock.advance(20);
  await Promise.all([all, ahead]);
  assert.deepEqual(begun, ["a", "b", "x", "y", "c", "d"]);
});
