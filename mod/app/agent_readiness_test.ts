import assert from "@assert";
import { FakeClock } from "../base/fake_clock.ts";
import type { RuntimeTroubles } from "../sync/runtime_state.ts";
import { agentReadiness } from "./agent_readiness.ts";

const well: RuntimeTroubles = { down: undefined, notReady: undefined, network: undefined };

function troubles(runtime: Partial<RuntimeTroubles>, sinceRelistMs: number | undefined): readonly string[] {
  const clock = new FakeClock();
  const lastRelist = sinceRelistMs === undefined ? 0 : clock.now() - sinceRelistMs;
  return agentReadiness({
    clock,
    runtime: { troubles: { ...well, ...runtime }, handlers: [], features: undefined },
    pleg: { lastRelist },
  }).troubles;
}

Deno.test("an agent that sees its runtime and its pods is ready", () => {
  assert.deepEqual(troubles({}, 180_000), []);
});

Deno.test("what is wrong is told in the contract's order", () => {
  assert.deepEqual(troubles({ down: "a", notReady: "b", network: "c" }, undefined), [
    "a",
    "PLEG is not healthy: pleg has yet to be successful",
    "b",
    "c",
  ]);
});

Deno.test("a relist that is too long ago is told with its age", () => {
  assert.deepEqual(troubles({}, 181_500), [
    "PLEG is not healthy: pleg was last seen active 3m1.5s ago; threshold is 3m0s",
  ]);
});
