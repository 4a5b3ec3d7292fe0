import { systemClock } from "../../mod/base/clock.ts";
import { messageOf } from "../../mod/base/errors.ts";
import { attempt } from "./command.ts";
import { exists, remove, repository } from "./files.ts";
import { countJunit, type Counts } from "./junit.ts";
import { print } from "./print.ts";

/** Counts, and what went wrong beside failed tests. */
export interface Outcome extends Counts {
  readonly problems: readonly string[];
}

/** Adds outcomes up. */
export function sum(outcomes: readonly Outcome[]): Outcome {
  return {
    passed: outcomes.reduce((all, one) => all + one.passed, 0),
    failed: outcomes.reduce((all, one) => all + one.failed, 0),
    problems: outcomes.flatMap((one) => one.problems),
  };
}

/** Judges a run of `deno test`: `report` is its JUnit text if it wrote one. A run that executed nothing has failed. */
export function judge(name: string, code: number, report: string | undefined): Outcome {
  const failure = (why: string, counts: Counts = { passed: 0, failed: 0 }): Outcome => ({
    passed: counts.passed,
    failed: counts.failed + 1,
    problems: [`${name}: ${why}`],
  });
  if (report === undefined) {
    return failure(`the test runner ended with code ${code} and left no report; what it said is above`);
  }
  try {
    const counts = countJunit(report);
    if (code !== 0 && counts.failed === 0) return failure(`the test runner ended with code ${code}`, counts);
    if (counts.passed + counts.failed === 0) return failure("no test was executed");
    const { passed, failed, failures } = counts;
    return { passed, failed, problems: failed > 0 ? [[`${name}: ${failed} failed`, ...failures].join("\n")] : [] };
  } catch (thrown) {
    return failure(`the test runner ended with code ${code}: ${messageOf(thrown)}`);
  }
}

/** Runs `deno test` on files or directories, shows its output, and counts. `within`: milliseconds. */
export async function runTests(options: {
  name: string;
  paths: readonly string[];
  parallel?: boolean;
  /** Shows every test and step as it ends, not a dot. */
  tell?: boolean;
  /** More variables of the tests' environment. */
  env?: Record<string, string>;
  within: number;
}): Promise<Outcome> {
  const { name, paths, within } = options;
  const report = await Deno.makeTempFile({ prefix: "denolet-junit-", suffix: ".xml" });
  await remove(report);
  const started = systemClock.now();
  try {
    const timeout = AbortSignal.timeout(within);
    const { code } = await attempt([
      Deno.execPath(),
      "test",
      "--allow-all",
      "--no-prompt",
      "--quiet",
      ...(options.parallel ? ["--parallel"] : []),
      `--reporter=${options.tell ? "pretty" : "dot"}`,
      `--junit-path=${report}`,
      ...paths,
    ], { cwd: repository, show: true, signal: timeout, ...(options.env ? { env: options.env } : {}) });
    const outcome = timeout.aborted
      ? { passed: 0, failed: 1, problems: [`${name}: not done within ${within / 1000} s`] }
      : judge(name, code, await exists(report) ? await Deno.readTextFile(report) : undefined);
    const seconds = ((systemClock.now() - started) / 1000).toFixed(1);
    print(
      `${
        outcome.failed === 0 ? "ok  " : "FAIL"
      } ${name} ${seconds} s: ${outcome.passed} passed, ${outcome.failed} failed`,
    );
    return outcome;
  } finally {
    await remove(report);
  }
}

/**
 * Unit tests: those beside the code. Those of the CRI are a process of their own: Deno 2.9.3 closes the descriptor of
 * a node:net unix socket twice, and what another test opened in between would be closed in its place.
 */
export async function unitTests(): Promise<Outcome> {
  return sum([
    await runTests({ name: "unit", paths: ["mod", "managers", "scripts"], parallel: true, within: 600_000 }),
    await runTests({ name: "unit tests of the CRI", paths: ["cri"], within: 600_000 }),
  ]);
}

/** The simulation, if there is one; with `all` the agent is killed at every boundary of its calls, which takes minutes. */
export async function simulationTests(options: { all?: boolean } = {}): Promise<Outcome> {
  const path = "tests/simulation";
  if (!await exists(`${repository}/${path}`)) return { passed: 0, failed: 0, problems: [] };
  return await runTests({
    name: "simulation",
    paths: [path],
    parallel: true,
    within: options.all ? 1_800_000 : 600_000,
    ...(options.all ? { env: { DENOLET_KILL_POINTS: "all" } } : {}),
  });
}
