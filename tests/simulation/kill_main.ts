import { optionsOf, runScript, UsageError } from "../../scripts/lib/script.ts";
import { type Blow, blowsOf, strike, words } from "./kill_points.ts";
import { type KillPoint, play } from "./kill_run.ts";
import { scenarios } from "./kill_scenarios.ts";

const out = (text: string) => void Deno.stdout.writeSync(new TextEncoder().encode(`${text}\n`));

function parsePoint(text: string): KillPoint {
  const [when, call] = text.split(":");
  if (when !== "before" && when !== "after" && when !== "late") {
    throw new UsageError(`${text}: before:N, after:N or late:N`);
  }
  return { call: Number(call), when };
}

const usage = `deno run -A tests/simulation/kill_main.ts [OPTIONS]
Kills the agent of the simulation at the boundaries of its calls to the runtime.

  --scenario N              plays that one only
  --seed S                  chooses the machine and the runtime (default: 1)
  --some                    tries fewer boundaries
  --at before|after|late:N  shows one run with this kill; may be given several times
  --fuse N                  the same, after so many steps of the agent
  --meanwhile WHAT          removed or edited: what becomes of the pod while the agent is away
  --quiet                   shows the run without a kill`;

async function main(args: readonly string[]): Promise<number> {
  const values = optionsOf(args, {
    seed: { type: "string", default: "1" },
    scenario: { type: "string" },
    at: { type: "string", multiple: true },
    fuse: { type: "string" },
    meanwhile: { type: "string" },
    quiet: { type: "boolean", default: false },
    some: { type: "boolean", default: false },
  });
  const seed = Number(values.seed);
  const { meanwhile } = values;
  if (meanwhile !== undefined && meanwhile !== "removed" && meanwhile !== "edited") {
    throw new UsageError(`--meanwhile ${meanwhile}: removed or edited`);
  }
  const one: Blow | undefined = values.at || values.fuse !== undefined
    ? {
      kills: (values.at ?? []).map(parsePoint),
      ...(values.fuse === undefined ? {} : { fuse: Number(values.fuse) }),
      ...(meanwhile === undefined ? {} : { meanwhile }),
    }
    : undefined;
  const started = performance.now();
  let passed = 0, failed = 0;
  for (const [number, scenario] of scenarios.entries()) {
    if (values.scenario !== undefined && Number(values.scenario) !== number) continue;
    const quiet = await play(scenario, { seed });
    out(`${number} ${scenario.name}: ${quiet.calls.length} calls, ${quiet.steps} steps`);
    if (values.quiet) out(quiet.trace.join("\n"));
    for (const problem of quiet.problems) out(`  without a kill: ${problem}`);
    if (quiet.problems.length > 0) failed++;
    else passed++;
    const found = new Map<string, string[]>();
    for (const blow of values.quiet ? [] : one ? [one] : blowsOf(quiet, !values.some)) {
      const { problems: [first], trace } = await strike(scenario, quiet, { seed, blow });
      if (one) out(trace.join("\n"));
      if (first === undefined) passed++;
      else {
        failed++;
        const kind = first.replace(/[0-9a-f]{8,}/g, "*").replace(/\d+ ms/g, "n ms");
        found.set(kind, [...found.get(kind) ?? [], words(blow)]);
      }
    }
    for (const [kind, blows] of found) out(`  ${kind}\n    ${blows.length}: ${blows.slice(0, 6).join(", ")}`);
  }
  out(`${((performance.now() - started) / 1000).toFixed(1)} s`);
  out(`${passed} passed, ${failed} failed`);
  return failed > 0 || passed === 0 ? 1 : 0;
}

if (import.meta.main) await runScript({ name: "kill_main", usage, main });
