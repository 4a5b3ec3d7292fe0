import { optionsOf, runScript, UsageError } from "../../scripts/lib/script.ts";
import { type RunResult, runSeed } from "./run.ts";

const out = (text: string) => void Deno.stdout.writeSync(new TextEncoder().encode(text));

/** What a failing seed tells. */
export function report(result: RunResult, steps: number | undefined): string {
  const { seed, broken, trace } = result;
  if (!broken) return "";
  return [
    "",
    `seed ${seed} breaks "${broken.invariant}"`,
    ...trace.slice(-60),
    `  ${broken.invariant}: ${broken.what}`,
    `replay: deno run --allow-all tests/simulation/main.ts --seed ${seed}${
      steps === undefined ? "" : ` --steps ${steps}`
    }`,
    "",
  ].join("\n");
}

const usage = `deno task sim [OPTIONS]
Runs the agent in a simulated world with faults, by seeds, and checks the invariants.

  --seeds N    how many seeds (default: 300)
  --first N    the first of them (default: 1)
  --seed S     this one only, and shows all that happens
  --steps N    random steps of each
  --brief      one line for each failure
  --stop       ends at the first failure
  --cluster    the node is a member of a cluster`;

function options(args: readonly string[]) {
  const values = optionsOf(args, {
    seeds: { type: "string", default: "300" },
    first: { type: "string", default: "1" },
    seed: { type: "string" },
    steps: { type: "string" },
    stop: { type: "boolean", default: false },
    brief: { type: "boolean", default: false },
    cluster: { type: "boolean", default: false },
  });
  for (const name of ["seeds", "first", "seed", "steps"] as const) {
    const value = values[name];
    if (value !== undefined && !/^\d{1,10}$/.test(value)) {
      throw new UsageError(`--${name} ${value}: must be a whole number`);
    }
  }
  return values;
}

async function main(args: readonly string[]): Promise<number> {
  const values = options(args);
  const steps = values.steps === undefined ? undefined : Number(values.steps);
  const first = Number(values.seed ?? values.first);
  const count = values.seed === undefined ? Number(values.seeds) : 1;
  const started = performance.now();
  const total = { simulatedMs: 0, turns: 0, criCalls: 0, faults: 0, lives: 0, pods: 0 };
  const kinds = new Map<string, number[]>();
  let passed = 0;
  for (let seed = first; seed < first + count; seed++) {
    const result = await runSeed({
      seed,
      cluster: values.cluster,
      ...(steps === undefined ? {} : { steps }),
      ...(values.seed === undefined ? {} : { echo: (line) => out(`${line}\n`) }),
    });
    for (const key of Object.keys(total) as (keyof typeof total)[]) total[key] += result.figures[key];
    if (!result.broken) passed++;
    else {
      const seeds = kinds.get(result.broken.invariant) ?? [];
      kinds.set(result.broken.invariant, [...seeds, seed]);
      out(values.brief ? `seed ${seed}: ${result.broken.message.slice(0, 400)}\n` : report(result, steps));
      if (values.stop) break;
    }
    if (count > 1 && (seed - first + 1) % 100 === 0) out(`${seed - first + 1} seeds, ${passed} passed\n`);
  }
  const wall = (performance.now() - started) / 1000;
  for (const [kind, seeds] of kinds) out(`${kind}: ${seeds.length} (${seeds.slice(0, 12).join(", ")})\n`);
  out(
    `${(total.simulatedMs / 3_600_000).toFixed(1)} simulated hours, ${total.pods} pods, ${total.lives} lives, ` +
      `${total.criCalls} CRI calls, ${total.faults} faults, ${total.turns} turns, ${wall.toFixed(1)} s, ` +
      `${(count / wall).toFixed(1)} seeds/s\n`,
  );
  const failed = [...kinds.values()].reduce((sum, seeds) => sum + seeds.length, 0);
  out(`${passed} passed, ${failed} failed\n`);
  return failed > 0 || passed === 0 ? 1 : 0;
}

if (import.meta.main) await runScript({ name: "sim", usage, main });
