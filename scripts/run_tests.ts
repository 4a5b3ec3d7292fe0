import { messageOf } from "../mod/base/errors.ts";
import { namesIn, repository } from "./lib/files.ts";
import { print } from "./lib/print.ts";
import { runScript, UsageError } from "./lib/script.ts";
import { type Outcome, runTests, simulationTests, sum, unitTests } from "./lib/suites.ts";
import { ensureControlPlane, ensureMetricsServer } from "./cluster/programs.ts";
import { ensureContainerd2 } from "./node/containerd2.ts";
import { ensureInstalled, InstallError } from "./node/install.ts";
import { down } from "../tests/vm/machine.ts";

/** Tests on real components: one file after another, each in a process of its own, once `prepare` has what they need. */
async function realTests(directory: string, prepare: () => Promise<void>): Promise<Outcome> {
  try {
    await ensureInstalled({ log: print });
    if (Deno.uid() !== 0) throw new InstallError("these tests need root: they run real containers");
    await prepare();
  } catch (thrown) {
    return { passed: 0, failed: 1, problems: [`${directory}: ${messageOf(thrown)}`] };
  }
  const files = (await namesIn(`${repository}/${directory}`)).filter((name) => name.endsWith("_test.ts"));
  const outcomes: Outcome[] = [];
  for (const file of files) {
    const path = `${directory}/${file}`;
    outcomes.push(await runTests({ name: path, paths: [path], within: 900_000 }));
  }
  if (files.length === 0) outcomes.push({ passed: 0, failed: 1, problems: [`${directory}: no test file`] });
  return sum(outcomes);
}

async function nodeTests(): Promise<Outcome> {
  return await realTests("tests/node", async () => void await ensureContainerd2({ log: print }));
}

/** With a real control plane and metrics-server; building them takes minutes, once (scripts/cluster/programs.ts). */
async function clusterTests(): Promise<Outcome> {
  return await realTests("tests/cluster", async () => {
    await ensureControlPlane({ log: print });
    await ensureMetricsServer({ log: print });
  });
}

/** A real node in a virtual machine; minutes, and only when it is asked for by name. */
async function vmTests(): Promise<Outcome> {
  try {
    return await runTests({ name: "tests/vm", paths: ["tests/vm"], tell: true, within: 3_600_000 });
  } finally {
    await down();
  }
}

const suites = {
  unit: unitTests,
  sim: () => simulationTests({ all: true }),
  node: nodeTests,
  cluster: clusterTests,
  vm: vmTests,
};
/** What runs when no suite is named. */
const usual = ["unit", "sim", "node", "cluster"];

const usage = `deno task test [SUITE...]
Runs the suites of tests that are named: ${Object.keys(suites).join(", ")}. Without a name: ${usual.join(", ")}.`;

function isSuite(name: string): name is keyof typeof suites {
  return Object.hasOwn(suites, name);
}

async function main(args: readonly string[]): Promise<number> {
  const names = args.length > 0 ? args : usual;
  const known = names.filter(isSuite);
  const unknown = names.filter((name) => !isSuite(name));
  if (unknown.length > 0) throw new UsageError(`no suite ${unknown.join(", ")}`);
  const outcomes: Outcome[] = [];
  for (const name of known) outcomes.push(await suites[name]());
  const { passed, failed, problems } = sum(outcomes);
  for (const problem of problems) print(`problem: ${problem}`);
  const nothing = passed + failed === 0;
  if (nothing) print("problem: no test was executed");
  print(`${passed} passed, ${nothing ? 1 : failed} failed`);
  return nothing || failed > 0 ? 1 : 0;
}

if (import.meta.main) await runScript({ name: "test", usage, main });
