import { parseArgs } from "node:util";
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

/**
 * `--seeds N` runs so many from `--first` (1) on; `--seed S` replays one and shows all that happens. `--steps N` sets
 * the number of random steps, `--brief` shows one line for each failure, `--stop` ends at the first, `--cluster` makes the node a
 * member of a cluster.
 */
async function main(): Promise<number> {
  const { values } = parseArgs({
    options: {
      seeds: { type: "string", default: "300" },
      first: { type: "string", default: "1" },
      seed: { type: "string" },
      steps: { type: "string" },
      stop: { type: "boolean", default: false },
      brief: { type: "boolean", default: false },
      cluster: { type: "boolean", default: false },
    },
  });
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

if (import.meta.main) Deno.exit(await main());
