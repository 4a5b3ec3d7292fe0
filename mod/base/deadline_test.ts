import assert from "@assert";
import { Deadline } from "./deadline.ts";
import { FakeClock, turn } from "./fake_clock.ts";
import { waitAtMost, within } from "./within.ts";

Deno.test("a deadline aborts when its time is over, and says of what", async () => {
  const clock = new FakeClock();
  using deadline = new Deadline({ clock, ms: 1500, what: "no answer" });
  await clock.advance(1499);
  assert.deepEqual([deadline.signal.aborted, deadline.over, deadline.left], [false, false, 1]);
  await clock.advance(1);
  assert(deadline.over);
  assert.equal(deadline.signal.reason.message, "no answer within 1.5 s");
  assert.equal(deadline.signal.reason.code, "Timeout");
});

Deno.test("it aborts with its caller's signal, or when told to; its time is not over then", async () => {
  const clock = new FakeClock();
  const caller = new AbortController();
  using one = new Deadline({ clock, signal: caller.signal, ms: 1000, what: "x" });
  using other = new Deadline({ clock, signal: caller.signal });
  other.end();
  assert(other.signal.aborted && !other.over && !one.signal.aborted);
  caller.abort();
  assert.equal(one.signal.reason.code, "Aborted");
  await clock.advance(5000);
  assert.equal(one.over, false);
  using late = new Deadline({ clock, signal: caller.signal, ms: 1000, what: "x" });
  assert(late.signal.aborted);
});

Deno.test("another time counts from now on; nothing is left behind when it is disposed of", async () => {
  const clock = new FakeClock();
  const caller = new AbortController();
  {
    using deadline = new Deadline({ clock, signal: caller.signal, ms: 1000, what: "no answer" });
    await clock.advance(900);
    deadline.extend(1000, "not ended");
    await clock.advance(900);
    assert.equal(deadline.over, false);
    assert.equal(clock.pending, 1);
  }
  assert.equal(clock.pending, 0);
});

Deno.test("work that heeds nothing is left when its time and the slack are over; its signal has aborted", async () => {
  const clock = new FakeClock();
  let seen: AbortSignal | undefined;
  const waiting = within({ clock, ms: 1000, slackMs: 500, what: "work: no end" }, (signal) => {
    seen = signal;
    return new Promise<never>(() => {});
  });
  const left = assert.rejects(waiting, { code: "Timeout", message: "work: no end within 1.5 s" });
  await clock.advance(1499);
  assert.equal(seen?.aborted, false);
  await clock.advance(1);
  await left;
  assert(seen?.aborted);
});

Deno.test("work that ends in time is told, and a caller that calls it off is not kept waiting", async () => {
  const clock = new FakeClock();
  assert.equal(await within({ clock, ms: 1000, what: "x" }, () => Promise.resolve(7)), 7);
  const caller = new AbortController();
  const { signal } = caller;
  const off = assert.rejects(within({ clock, ms: 1000, signal, what: "x" }, () => new Promise<never>(() => {})), {
    code: "Aborted",
  });
  await turn();
  caller.abort();
  await off;
  let begun = false;
  await assert.rejects(
    within({ clock, ms: 1000, signal, what: "x" }, () => {
      begun = true;
      return Promise.resolve();
    }),
    { code: "Aborted" },
  );
  assert.equal(begun, false);
  assert.equal(clock.pending, 0);
});

Deno.test("who waits for a while goes on when the work ends, the time is over, or it is called off", async () => {
  const clock = new FakeClock();
  await waitAtMost({ clock, ms: 1000 }, Promise.resolve());
  await assert.rejects(waitAtMost({ clock, ms: 1000 }, Promise.reject(new Error("no"))), /no/);
  const never = new Promise<never>(() => {});
  const late = waitAtMost({ clock, ms: 1000 }, never);
  await clock.advance(1000);
  await late;
  const caller = new AbortController();
  const { signal } = caller;
  const off = waitAtMost({ clock, ms: 1000, signal }, never);
  caller.abort();
  await off;
  await waitAtMost({ clock, ms: 1000, signal }, never);
  assert.equal(clock.pending, 0);
});
