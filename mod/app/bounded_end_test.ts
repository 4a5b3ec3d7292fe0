import assert from "@assert";
import { FakeClock } from "../base/fake_clock.ts";
import { RecordingLogger } from "../base/log.ts";
import { boundedEnd } from "./bounded_end.ts";

function make() {
  const clock = new FakeClock();
  const log = new RecordingLogger();
  const ended = new AbortController();
  const t = { exits: 0 };
  const bound = boundedEnd({ clock, log, signal: ended.signal, exit: () => t.exits++ });
  return { clock, log, ended, t, bound };
}

Deno.test("an end that does not come is brought about after 30 s, and told", async () => {
  const { clock, log, ended, t } = make();
  await clock.advance(600_000);
  assert.equal(t.exits, 0, "as long as nobody ends the agent it runs");
  ended.abort();
  await clock.advance(29_999);
  assert.equal(t.exits, 0);
  await clock.advance(1);
  assert.deepEqual([t.exits, log.lines.map((l) => l.level)], [1, ["error"]]);
});

Deno.test("an agent that ends by itself is left to", async () => {
  const { clock, ended, t, bound } = make();
  ended.abort();
  await clock.advance(1000);
  bound[Symbol.dispose]();
  await clock.advance(600_000);
  assert.deepEqual([t.exits, clock.pending], [0, 0]);
});
