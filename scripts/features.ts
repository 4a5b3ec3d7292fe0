import { type Feature, featureList } from "./feature_list.ts";
import { exists, repository, unlessMissing, writeWhole } from "./lib/files.ts";
import { complain, print } from "./lib/print.ts";
import { noArguments, runScript, UsageError } from "./lib/script.ts";

/** How far a feature is. */
export const states = ["works", "partly", "not yet"] as const;

/** A row of docs/features.md. */
export interface Row {
  readonly id: string;
  readonly name: string;
  readonly tier: string;
  readonly state: string;
  /** The last column: `path/to/file_test.ts` "name of the test", several with ';' between. */
  readonly shown: string;
}

const page = "docs/features.md";

/** The rows of the page, in order. */
export function rowsOf(text: string): Row[] {
  return text.split("\n").filter((line) => /^\| *[A-Z]+\d+ *\|/.test(line)).map((line) => {
    const cells = line.replace(/^\|/, "").replace(/\|\s*$/, "").split(/(?<!\\)\|/);
    const [id = "", name = "", tier = "", state = "", shown = ""] = cells.map((cell) =>
      cell.trim().replaceAll("\\|", "|")
    );
    return { id, name, tier, state, shown };
  });
}

/** The tests that the last column names; undefined when it is not written as it should be. */
export function testsOf(shown: string): { file: string; test: string }[] | undefined {
  const tests: { file: string; test: string }[] = [];
  const one = /\s*`([^`]+)` "((?:[^"\\]|\\.)+)"\s*(?:;|$)/y;
  while (one.lastIndex < shown.length) {
    const [, file, test] = one.exec(shown) ?? [];
    if (file === undefined || test === undefined) return undefined;
    tests.push({ file, test });
  }
  return tests;
}

/** What is wrong with the rows; `read` gives a file's text, or undefined when there is none. */
export async function rowProblems(
  rows: readonly Row[],
  features: readonly Feature[],
  read: (path: string) => Promise<string | undefined>,
): Promise<string[]> {
  const problems: string[] = [];
  const known = new Map(features.map((one) => [one.id, one]));
  const seen = new Set<string>();
  for (const row of rows) {
    const bad = (why: string) => problems.push(`${page}: ${row.id}: ${why}`);
    const feature = known.get(row.id);
    if (!feature) bad("no such feature in scripts/feature_list.ts");
    else if (feature.name !== row.name || feature.tier !== row.tier) {
      bad(`must read "${feature.name}", ${feature.tier}`);
    }
    if (seen.has(row.id)) bad("listed twice");
    seen.add(row.id);
    if (!(states as readonly string[]).includes(row.state)) bad(`state "${row.state}" is none of ${states.join(", ")}`);
    const tests = testsOf(row.shown);
    if (tests === undefined) bad(`tests must be written \`file_test.ts\` "name"; ...: ${row.shown}`);
    else if (tests.length === 0 && ["works", "partly"].includes(row.state)) {
      bad(`${row.state}, but names no test that shows it`);
    }
    for (const { file, test } of tests ?? []) {
      const text = await read(file);
      if (text === undefined) bad(`there is no ${file}`);
      else if (!text.includes(test)) bad(`${file} has no test "${test}"`);
    }
  }
  for (const id of known.keys()) if (!seen.has(id)) problems.push(`${page}: ${id} is missing`);
  return problems;
}

/** What is wrong with the page of a repository. */
export async function featureProblems(root: string): Promise<string[]> {
  const text = await unlessMissing(Deno.readTextFile(`${root}/${page}`));
  if (text === undefined) return [`there is no ${page}`];
  const read = async (path: string) => {
    if (path.startsWith("/") || path.split("/").includes("..") || !path.endsWith("_test.ts")) return undefined;
    return await unlessMissing(Deno.readTextFile(`${root}/${path}`));
  };
  return await rowProblems(rowsOf(text), featureList.flatMap((section) => section.features), read);
}

/** The page with the states and tests of the rows; features without a row are "not yet". */
export function render(rows: readonly Row[]): string {
  const known = new Map(rows.map((row) => [row.id, row]));
  const cell = (text: string) => text.replaceAll("|", "\\|");
  const lines = [
    "# What works",
    "",
    "Every feature of the kubelet (v1.36, Linux) and how far this agent is with it. P0: needed by any usable node; P1:",
    "needed by conformance, kubeadm, kubectl, metrics-server and CSI users; P2: rarer; P3: alpha or legacy.",
    "A row that works or works partly names the tests that show it. `deno run -A scripts/features.ts` checks this page",
    "and counts; with `write` it puts the rows in order and keeps what they say.",
  ];
  for (const { title, features } of featureList) {
    lines.push("", `## ${title}`, "", "| Id | Feature | Tier | State | Shown by |", "|---|---|---|---|---|");
    for (const { id, name, tier } of features) {
      const { state = "not yet", shown = "" } = known.get(id) ?? {};
      lines.push(`| ${id} | ${cell(name)} | ${tier} | ${state} | ${cell(shown)} |`.replace(/ {2}\|$/, " |"));
    }
  }
  return `${lines.join("\n")}\n`;
}

const usage = `deno run -A scripts/features.ts [write]
Checks docs/features.md and counts; with write it puts the rows in order and keeps what they say.`;

async function main(args: readonly string[]): Promise<number> {
  const [word, ...more] = args;
  if (word !== undefined && word !== "write") throw new UsageError(`unknown argument ${word}`);
  noArguments(more);
  const path = `${repository}/${page}`;
  if (word === "write") {
    const old = await exists(path) ? rowsOf(await Deno.readTextFile(path)) : [];
    await writeWhole(path, render(old));
  }
  const problems = await featureProblems(repository);
  for (const problem of problems) complain(problem);
  const rows = rowsOf(await Deno.readTextFile(path));
  for (const tier of ["P0", "P1", "P2", "P3"]) {
    const own = rows.filter((row) => row.tier === tier);
    const counts = states.map((state) => `${own.filter((row) => row.state === state).length} ${state}`);
    print(`${tier}: ${own.length} features, ${counts.join(", ")}`);
  }
  return problems.length > 0 ? 1 : 0;
}

if (import.meta.main) await runScript({ name: "features", usage, main });
