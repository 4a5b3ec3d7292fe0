import assert from "@assert";
import { differences } from "./kill_check.ts";
import { type KillPoint, play, type SeenCall } from "./kill_run.ts";
import { type scenarios } from "./kill_scenarios.ts";

type Scenario = typeof scenarios[number];

/** Every boundary of every call: before it, after its effect, and where it changes something also while it is under way. */
export function everyPoint(calls: readonly SeenCall[]): KillPoint[][] {
  const points = calls.flatMap(({ mutating }, call) =>
    (mutating ? ["before", "after", "late"] as const : ["before", "after"] as const).map((when) => [{ call, when }])
  );
  return [
    ...points,
    ...calls.flatMap(({ mutating }, call) => mutating ? [twice(call, "before"), twice(call, "after")] : []),
  ];
}

/** A kill, and another when the next agent has made a few calls. */
function twice(call: number, when: KillPoint["when"]): KillPoint[] {
  return [{ call, when }, { call: call + 1 + (call * 7) % 23, when: call % 2 === 0 ? "before" : "after" }];
}

/** What the gate can wait for: of each call that changes something one boundary, and of the others now and then one. */
export function somePoints(calls: readonly SeenCall[]): KillPoint[][] {
  const kinds = ["after", "late", "before"] as const;
  let seen = 0;
  return calls.flatMap(({ mutating }, call) => {
    if (!mutating) return call % 50 === 0 ? [[{ call, when: call % 100 === 0 ? "before" : "after" } as const]] : [];
    return [[{ call, when: kinds[seen++ % 3] ?? "after" }]];
  });
}

/** Whether every boundary is to be tried; `deno task test` wants that. */
const all = Deno.env.get("DENOLET_KILL_POINTS") === "all";

/** Plays a scenario once without a kill and once for each of its kill points, as a test of its own. */
export function testScenario(scenario: Scenario, { number, seed }: { number: number; seed: number }): void {
  Deno.test(`killed between any two calls: ${scenario.name}`, async () => {
    const quiet = await play(scenario, { seed });
    assert.deepEqual(quiet.problems, []);
    const points = all ? everyPoint(quiet.calls) : somePoints(quiet.calls);
    assert.ok(points.length > 10, `${points.length} kill points`);
    for (const kills of points) {
      const killed = await play(scenario, { seed, kills });
      const found = differences(quiet, killed);
      assert.deepEqual(found, [], `${found.join("\n")}\nreplay: ${replay(number, seed, kills)}`);
    }
  });
}

function replay(number: number, seed: number, kills: readonly KillPoint[]): string {
  const at = kills.map(({ call, when }) => `--at ${when}:${call}`).join(" ");
  return `deno run --allow-all tests/simulation/kill_main.ts --scenario ${number} --seed ${seed} ${at}`;
}
