import { systemClock } from "../mod/base/clock.ts";
import { messageOf } from "../mod/base/errors.ts";
import { featureProblems } from "./features.ts";
import { attempt } from "./lib/command.ts";
import { exists, repository } from "./lib/files.ts";
import { print } from "./lib/print.ts";
import { noArguments, runScript } from "./lib/script.ts";
import { type Outcome, simulationTests, sum, unitTests } from "./lib/suites.ts";
import { cyclesOf, importGraph } from "./lint/cycles.ts";
import { layerOf } from "./lint/layers.ts";

/** Says what is wrong; nothing when all is well. */
type Check = () => Promise<readonly string[]>;

function deno(...args: string[]): Check {
  return async () => {
    const { code, stdout, stderr } = await attempt([Deno.execPath(), ...args], {
      cwd: repository,
      env: { NO_COLOR: "1" },
    });
    return code === 0 ? [] : [`deno ${args.join(" ")}: exit code ${code}\n${stdout}${stderr}`];
  };
}

async function sources(directory: string): Promise<string[]> {
  const files: string[] = [];
  for await (const { name, isDirectory, isFile } of Deno.readDir(`${repository}/${directory}`)) {
    if (isDirectory) files.push(...await sources(`${directory}/${name}`));
    else if (isFile && name.endsWith(".ts")) files.push(`${directory}/${name}`);
  }
  return files.sort();
}

async function cycles(): Promise<string[]> {
  const texts = new Map<string, string>();
  for (const directory of ["mod", "cri", "managers"]) {
    for (const file of await sources(directory)) {
      if (layerOf(file) !== "outside") texts.set(file, await Deno.readTextFile(`${repository}/${file}`));
    }
  }
  return cyclesOf(importGraph(texts)).map((cycle) => `import cycle: ${cycle.join(" → ")}`);
}

async function step(name: string, check: Check): Promise<Outcome> {
  const started = systemClock.now();
  let problems: readonly string[];
  try {
    problems = await check();
  } catch (thrown) {
    problems = [messageOf(thrown)];
  }
  const seconds = ((systemClock.now() - started) / 1000).toFixed(1);
  print(`${problems.length === 0 ? "ok  " : "FAIL"} ${name} ${seconds} s`);
  for (const problem of problems) print(problem);
  return problems.length === 0
    ? { passed: 1, failed: 0, problems }
    : { passed: 0, failed: 1, problems: [`${name} failed`] };
}

const usage = `deno task ok
Format, lint, types, layers, unit tests, simulation. It takes no arguments.`;

async function main(args: readonly string[]): Promise<number> {
  noArguments(args);
  const started = systemClock.now();
  const checked: string[] = [];
  for (const path of ["main.ts", "mod", "cri", "managers", "scripts", "tests"]) {
    if (await exists(`${repository}/${path}`)) checked.push(path);
  }
  const outcomes = [
    await step("format", deno("fmt", "--check")),
    await step("lint", deno("lint", "--quiet")),
    await step("types", deno("check", "--quiet", ...checked)),
    await step("import cycles", cycles),
    await step("features", () => featureProblems(repository)),
    await unitTests(),
    await simulationTests(),
  ];
  const { passed, failed, problems } = sum(outcomes);
  for (const problem of problems) print(`problem: ${problem}`);
  print(`${((systemClock.now() - started) / 1000).toFixed(1)} s in all`);
  print(`${passed} passed, ${failed} failed`);
  return failed > 0 ? 1 : 0;
}

if (import.meta.main) await runScript({ name: "ok", usage, main });
