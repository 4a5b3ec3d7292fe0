import assert from "@assert";
import type { Pod } from "../../mod/kube/types.ts";
import { differences } from "./kill_check.ts";
import { type KillPoint, play, type Scenario, type SeenCall, type Stage } from "./kill_run.ts";
import { Broken } from "./trace.ts";

/** How a run differs from the one in which nothing happens to the agent. */
export interface Blow {
  readonly kills?: readonly KillPoint[];
  /** The first agent is killed after so many steps of any kind. */
  readonly fuse?: number;
  /** What happens to every manifest while no agent is there. */
  readonly meanwhile?: "removed" | "edited";
}

const kinds = ["after", "late", "before"] as const;

/** Every boundary of every call: before it, after its effect, and where it changes something also while it is under way. */
function everyPoint(calls: readonly SeenCall[]): Blow[] {
  return calls.flatMap(({ mutating }, call) =>
    kinds.filter((when) => mutating || when !== "late").map((when) => ({ kills: [{ call, when }] }))
  );
}

/** Of each call that changes something one boundary, and of the others now and then one. */
function somePoints(calls: readonly SeenCall[]): Blow[] {
  let seen = 0;
  return calls.flatMap(({ mutating }, call) => {
    const when = mutating ? kinds[seen++ % 3] ?? "after" : call % 100 === 0 ? "before" : "after";
    return mutating || call % 50 === 0 ? [{ kills: [{ call, when }] }] : [];
  });
}

/** At each n-th change: a kill and another soon after it; a kill while the manifests change. */
function combined(calls: readonly SeenCall[], n: number): Blow[] {
  const changes = calls.flatMap(({ mutating }, call) => mutating ? [call] : []).filter((_, i) => i % n === 0);
  return changes.flatMap((call, i): Blow[] => {
    const kills = [{ call, when: kinds[i % 3] ?? "after" }];
    const again = { call: call + 1 + (call * 7) % 23, when: i % 2 === 0 ? "before" as const : "after" as const };
    return [{ kills: [...kills, again] }, { kills, meanwhile: "removed" }, { kills, meanwhile: "edited" }];
  });
}

/** Between any two operations, those on files too: at each n-th step. */
function fuses(steps: number, n: number): Blow[] {
  return Array.from({ length: Math.floor(steps / n) }, (_, i) => ({ fuse: 1 + i * n }));
}

/** The blows that a scenario is to bear; without `all` what the gate can wait for. */
export function blowsOf({ calls, steps }: { calls: readonly SeenCall[]; steps: number }, all: boolean): Blow[] {
  return all
    ? [...everyPoint(calls), ...combined(calls, 1), ...fuses(steps, 7)]
    : [...somePoints(calls), ...combined(calls, 11), ...fuses(steps, 211)];
}

async function change(stage: Stage, how: "removed" | "edited"): Promise<void> {
  for (const [path, text] of [...stage.world.manifests]) {
    const name = path.slice(path.lastIndexOf("/") + 1, -".json".length);
    if (how === "removed") await stage.remove(name);
    else {
      const pod = JSON.parse(text) as Pod;
      for (const container of pod.spec?.containers ?? []) container.env = [{ name: "EDITED", value: "yes" }];
      stage.put(name, pod);
    }
  }
}

/** Plays a scenario with a blow; what is wrong then, and what happened. */
export async function strike(
  scenario: Scenario,
  quiet: Awaited<ReturnType<typeof play>>,
  { seed, blow: { meanwhile, ...how } }: { seed: number; blow: Blow },
): Promise<{ problems: readonly string[]; trace: readonly string[] }> {
  if (meanwhile === undefined) {
    const killed = await play(scenario, { seed, ...how });
    return { problems: differences(quiet, killed), trace: killed.trace };
  }
  // With other manifests the story comes out otherwise, and may wait for what never comes; nothing may be left.
  const otherwise: Scenario = {
    name: scenario.name,
    async play(stage) {
      try {
        await scenario.play(stage);
      } catch (thrown) {
        if (!(thrown instanceof Broken) || thrown.invariant !== "scenario") throw thrown;
      }
    },
  };
  return await play(otherwise, { seed, ...how, meanwhile: (stage) => change(stage, meanwhile) });
}

/** Whether every boundary is to be tried; `deno task test` wants that. */
const all = Deno.env.get("DENOLET_KILL_POINTS") === "all";

/** Plays a scenario once without a kill and once with each blow, as a test of its own. */
export function testScenario(scenario: Scenario, { number, seed }: { number: number; seed: number }): void {
  Deno.test(`killed between any two calls: ${scenario.name}`, async () => {
    const quiet = await play(scenario, { seed });
    assert.deepEqual(quiet.problems, []);
    const blows = blowsOf(quiet, all);
    assert.ok(blows.length > 10, `${blows.length} blows`);
    for (const blow of blows) {
      const { problems } = await strike(scenario, quiet, { seed, blow });
      const replay = `deno run --allow-all tests/simulation/kill_main.ts --scenario ${number} --seed ${seed} ${
        words(blow)
      }`;
      assert.deepEqual(problems, [], `${problems.join("\n")}\nreplay: ${replay}`);
    }
  });
}

/** A blow as kill_main.ts takes it. */
export function words({ kills = [], fuse, meanwhile }: Blow): string {
  return [
    ...kills.map(({ call, when }) => `--at ${when}:${call}`),
    ...fuse === undefined ? [] : [`--fuse ${fuse}`],
    ...meanwhile === undefined ? [] : [`--meanwhile ${meanwhile}`],
  ].join(" ");
}
