import assert from "@assert";
import { Backoff } from "./backoff.ts";
import { FakeClock } from "./fake_clock.ts";

const make = () => {
  const clock = new FakeClock();
  return { clock, backoff: new Backoff({ clock, initial: 10_000, max: 300_000 }) };
};

Deno.test("delays double up to the limit (section 9)", () => {
  const { backoff } = make();
  const delays = [];
  for (let i = 0; i < 7; i++) {
    backoff.step("k");
    delays.push(backoff.delay("k"));
  }
  assert.deepEqual(delays, [10_000, 20_000, 40_000, 80_000, 160_000, 300_000, 300_000]);
});

Deno.test("the wait is counted from the event", async () => {
  const { clock, backoff } = make();
  assert.equal(backoff.remaining("k"), 0);
  backoff.step("k");
  await clock.advance(4000);
  assert.equal(backoff.remaining("k"), 6000);
  assert.equal(backoff.remaining("k", clock.now()), 10_000);
  await clock.advance(6000);
  assert.equal(backoff.remaining("k"), 0);
});

Deno.test("an exit long after the last step starts anew", async () => {
  const { clock, backoff } = make();
  for (let i = 0; i < 3; i++) backoff.step("k");
  await clock.advance(600_001);
  assert.equal(backoff.remaining("k", clock.now()), 0);
  backoff.step("k", clock.now());
  assert.equal(backoff.delay("k"), 10_000);
});

Deno.test("keys do not disturb one another, and prune keeps the young", async () => {
  const { clock, backoff } = make();
  backoff.step("old");
  await clock.advance(600_001);
  backoff.step("young");
  backoff.prune();
  assert.deepEqual([backoff.delay("old"), backoff.delay("young")], [0, 10_000]);
  backoff.reset("young");
  assert.equal(backoff.delay("young"), 0);
});

Deno.test("a snapshot restores delays across a restart", () => {
  const { clock, backoff } = make();
  backoff.step("k");
  backoff.step("k");
  const other = new Backoff({ clock, initial: 10_000, max: 300_000 });
  other.restore(backoff.snapshot());
  assert.equal(other.remaining("k"), 20_000);
});

Deno.test("a try that never came to an end has served its delay once, and is counted once", async () => {
  const { clock, backoff } = make();
  const at = clock.now();
  backoff.begin("k", at);
  backoff.settle("k");
  assert.equal(backoff.remaining("k", at), 10_000, "the try failed: the next one waits");
  await clock.advance(10_000);
  backoff.begin("k", at);
  const next = new Backoff({ clock, initial: 10_000, max: 300_000 });
  next.restore(JSON.parse(JSON.stringify(backoff.snapshot())));
  assert.equal(next.remaining("k", at), 0, "the agent was killed meanwhile: the try is due still");
  next.begin("k", at);
  assert.equal(next.delay("k"), 20_000);
  assert.equal(next.remaining("k", clock.now()), 20_000, "another failure has its own delay");
  next.settle("k");
  assert.equal(next.remaining("k", at), 10_000);
});

Deno.test("a first delay above the limit is the limit", () => {
  const backoff = new Backoff({ clock: new FakeClock(), initial: 10_000, max: 1000 });
  backoff.step("k");
  assert.equal(backoff.delay("k"), 1000);
});
