import assert from "@assert";
import { FakeClock } from "../base/fake_clock.ts";
import { loopHealth } from "./agent_health.ts";

Deno.test("the sync loop is stuck after five minutes, or twice the sync frequency where that is longer", async () => {
  const clock = new FakeClock(0);
  const loop = { lastActive: 0 };
  const stuck = (syncMs: number) => loopHealth(clock, loop, syncMs).find((c) => c.name === "syncloop")?.check();
  await clock.advance(300_000);
  assert.equal(stuck(60_000), undefined);
  await clock.advance(1);
  assert.match(stuck(60_000) ?? "", /longer than expected/);
  assert.equal(stuck(200_000), undefined);
  loop.lastActive = clock.now();
  assert.equal(stuck(60_000), undefined);
});
