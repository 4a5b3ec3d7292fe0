import { parseArgs } from "node:util";
import { differences } from "./kill_check.ts";
import { everyPoint, somePoints } from "./kill_points.ts";
import { type KillPoint, play } from "./kill_run.ts";
import { scenarios } from "./kill_scenarios.ts";

const out = (text: string) => void Deno.stdout.writeSync(new TextEncoder().encode(`${text}\n`));

function parsePoint(text: string): KillPoint {
  const [when, call] = text.split(":");
  if (when !== "before" && when !== "after" && when !== "late") throw new Error(`${text}: before:N, after:N or late:N`);
  return { call: Number(call), when };
}

/**
 * Kills the agent of the simulation at the boundaries of its calls to the runtime. `--scenario N` plays that one only,
 * `--seed S` (1) chooses the machine and the runtime, `--some` tries fewer boundaries. With `--at WHEN:N`, once for
 * each kill, that one run is shown; `--at never` shows the run without a kill.
 */
async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seed: { type: "string", default: "1" },
      scenario: { type: "string" },
      at: { type: "string", multiple: true },
      some: { type: "boolean", default: false },
    },
  });
  const seed = Number(values.seed);
  const started = performance.now();
  let runs = 0, bad = 0;
  for (const [number, scenario] of scenarios.entries()) {
    if (values.scenario !== undefined && Number(values.scenario) !== number) continue;
    const quiet = await play(scenario, { seed });
    out(`${number} ${scenario.name}: ${quiet.calls.length} calls`);
    for (const problem of quiet.problems) out(`  without a kill: ${problem}`);
    if (quiet.problems.length > 0) bad++;
    if (values.at?.includes("never")) {
      out(quiet.trace.join("\n"));
      continue;
    }
    const points = values.at ? [values.at.map(parsePoint)] : (values.some ? somePoints : everyPoint)(quiet.calls);
    const kinds = new Map<string, string[]>();
    for (const kills of points) {
      runs++;
      const killed = await play(scenario, { seed, kills });
      const [first] = differences(quiet, killed);
      if (values.at) out(killed.trace.join("\n"));
      if (first === undefined) continue;
      bad++;
      const kind = first.replace(/[0-9a-f]{8,}/g, "*").replace(/\d+ ms/g, "n ms");
      const at = kills.map(({ call, when }) => `--at ${when}:${call} (${quiet.calls[call]?.name})`).join(" ");
      kinds.set(kind, [...kinds.get(kind) ?? [], at]);
    }
    for (const [kind, at] of kinds) out(`  ${kind}\n    ${at.length}: ${at.slice(0, 6).join(", ")}`);
  }
  out(`${runs} runs, ${((performance.now() - started) / 1000).toFixed(1)} s`);
  out(`${runs - bad} passed, ${bad} failed`);
  return bad > 0 || (runs === 0 && !values.at?.includes("never")) ? 1 : 0;
}

if (import.meta.main) Deno.exit(await main());
