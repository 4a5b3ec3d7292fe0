import assert from "@assert";
import { FakeClock, turn } from "../../base/fake_clock.ts";
import { RateLimiter } from "./rate_limiter.ts";

const { signal } = new AbortController();

Deno.test("a burst goes at once, the rest one after another, in order", async () => {
  const clock = new FakeClock();
  const limiter = new RateLimiter({ clock, qps: 10, burst: 2 });
  const gone: number[] = [];
  const waits: Promise<unknown>[] = [];
  for (let i = 0; i < 5; i++) waits.push(limiter.take(signal).then(() => gone.push(i)));
  await turn();
  assert.deepEqual(gone, [0, 1]);
  await clock.advance(100);
  assert.deepEqual(gone, [0, 1, 2]);
  await clock.advance(200);
  assert.deepEqual(gone, [0, 1, 2, 3, 4]);
  await Promise.all(waits);
  await clock.advance(60_000);
  assert.deepEqual(await Promise.all([limiter.take(signal), limiter.take(signal)]), [0, 0]);
  const third = limiter.take(signal);
  await clock.advance(100);
  assert.equal(await third, 100, "a pause gives no more than the burst");
});

Deno.test("a request that is called off gives its place back", async () => {
  const clock = new FakeClock();
  const limiter = new RateLimiter({ clock, qps: 1, burst: 1 });
  await limiter.take(signal);
  const control = new AbortController();
  const off = assert.rejects(limiter.take(control.signal), { code: "Aborted" });
  control.abort();
  await off;
  const next = limiter.take(signal);
  await clock.advance(1000);
  assert.equal(await next, 1000);
});
