import { messageOf } from "../mod/base/errors.ts";
import {
  type Baked,
  bakedHeader,
  permissionFlags,
  planFlags,
  runFlags,
  type Tuning,
  tuningOf,
} from "./compile/flags.ts";
import { bundle } from "./lib/bundle.ts";
import { attempt, run } from "./lib/command.ts";
import { remove, repository } from "./lib/files.ts";
import { print } from "./lib/print.ts";
import { noArguments, runScript, UsageError } from "./lib/script.ts";

const dist = `${repository}/dist`;
const output = `${dist}/kubelet`;
/** deno compile fetches a run-time of some 40 MB; a network that swallows packets must not hold the task up for long. */
const compileWithinMs = 180_000;

/** Ways to make one file. */
type Way = "compile" | "launcher";

async function agentSet(): Promise<Record<string, boolean | string[]>> {
  const { permissions } = JSON.parse(await Deno.readTextFile(`${repository}/deno.json`));
  return permissions.agent;
}

async function tuning(): Promise<Tuning> {
  return tuningOf(await Deno.readTextFile(`${repository}/scripts/agent.sh`));
}

/** Makes dist/kubelet with `deno compile`; says why when it can't. */
async function compile(work: string): Promise<string | undefined> {
  const made = `${work}/kubelet`;
  const flags = ["--unstable-net", "--no-prompt", ...(await tuning()).flags, ...permissionFlags(await agentSet())];
  const ended = await attempt([
    Deno.execPath(),
    "compile",
    "--quiet",
    ...["--config", `${repository}/deno.json`],
    ...flags,
    ...["--output", made],
    `${repository}/main.ts`,
  ], { signal: AbortSignal.timeout(compileWithinMs), env: { NO_COLOR: "1" } });
  if (ended.code !== 0) {
    const lines = ended.stderr.split("\n").map((line) => line.trim());
    // the first line only says what was being done, a numbered one what went wrong
    return lines.find((line) => /^\d+: error/.test(line))?.replace(/^\d+: /, "") ??
      lines.find((line) => line.startsWith("error:")) ?? `exit code ${ended.code}`;
  }
  await place(made, ["deno compile: reading and writing is not narrowed to paths this way", ...flags]);
  return undefined;
}

/** Digest of the files' contents and of what they are run with: another one is unpacked to another place. */
async function digestOf(files: readonly string[], words: readonly string[]): Promise<string> {
  const parts: Uint8Array[] = [new TextEncoder().encode(JSON.stringify(words))];
  for (const file of files) {
    parts.push(new Uint8Array(await crypto.subtle.digest("SHA-256", await Deno.readFile(file))));
  }
  const all = new Uint8Array(await new Blob(parts as BlobPart[]).arrayBuffer());
  return new Uint8Array(await crypto.subtle.digest("SHA-256", all)).toHex().slice(0, 32);
}

/** Makes dist/kubelet out of our launcher, Deno and the bundles. */
async function launcher(work: string): Promise<void> {
  const names = ["kubelet", "kubelet.js", "plan.js"];
  const paths = [Deno.execPath(), `${work}/kubelet.js`, `${work}/plan.js`];
  await Promise.all([
    bundle("main.ts", `${work}/kubelet.js`),
    bundle("mod/app/access/plan.ts", `${work}/plan.js`),
  ]);
  const { flags, environment } = await tuning();
  const set = await agentSet();
  const flagsOfRun = runFlags(set, { flags, environment });
  const flagsOfPlan = planFlags(set, { flags, environment });
  const sizes = await Promise.all(paths.map(async (path) => (await Deno.stat(path)).size));
  const digest = await digestOf(paths, [...flagsOfPlan, ...flagsOfRun, JSON.stringify(environment)]);
  const baked: Baked = {
    digest,
    made: `launcher, Deno ${Deno.version.deno}, contents ${digest}`,
    files: names.map((name, at) => ({ name, size: sizes[at] ?? 0 })),
    planFlags: flagsOfPlan,
    runFlags: flagsOfRun,
    environment,
  };
  await Deno.writeTextFile(`${work}/baked.h`, bakedHeader(baked));
  const head = `${work}/head`;
  await run([
    "gcc",
    ...["-static", "-Os", "-s", "-std=gnu11", "-Wall", "-Wextra", "-Werror", "-D_FORTIFY_SOURCE=2"],
    ...["-I", work, "-o", head, `${repository}/scripts/compile/launcher.c`],
  ]);
  {
    using file = await Deno.open(head, { append: true });
    for (const path of paths) {
      const part = await Deno.open(path);
      await part.readable.pipeTo(file.writable, { preventClose: true });
    }
  }
  await place(head, [baked.made, ...flagsOfRun, "and --allow-read, --allow-write as the configuration asks for"]);
}

/** Moves what was made into place, with the list of what it may do beside it. */
async function place(made: string, permissions: readonly string[]): Promise<void> {
  await Deno.chmod(made, 0o755);
  await Deno.writeTextFile(`${output}.permissions`, `${permissions.join("\n")}\n`);
  // a rename: an agent that runs from the old file goes on
  await Deno.rename(made, output);
}

/** Makes dist/kubelet; the way that was used. */
export async function makeExecutable(wanted: Way | "any"): Promise<Way> {
  await Deno.mkdir(dist, { recursive: true });
  const work = await Deno.makeTempDir({ dir: dist, prefix: ".compile-" });
  try {
    if (wanted !== "launcher") {
      const refused = await compile(work);
      if (refused === undefined) return "compile";
      if (wanted === "compile") throw new Error(`deno compile: ${refused}`);
      print(`deno compile is not possible here (${refused}); making the launcher instead`);
    }
    await launcher(work);
    return "launcher";
  } finally {
    await remove(work);
  }
}

/**
 * Starts what was made once, so that it is unpacked here and its compiled code kept: an agent whose start has to compile
 * has 55 MiB more for as long as it runs (measured: 152 MiB against 97), and starts half a second later.
 */
async function startOnce(): Promise<void> {
  await run([output, "--version"], { cwd: "/" });
}

const usage = `deno task compile [compile|launcher]
Makes dist/kubelet, one file: by deno compile, or where that is not possible with a launcher of ours. A word chooses.`;

function isWay(word: string): word is Way | "any" {
  return ["any", "compile", "launcher"].includes(word);
}

async function main(args: readonly string[]): Promise<number> {
  const [way = "any", ...more] = args;
  if (!isWay(way)) throw new UsageError(`unknown argument ${way}`);
  noArguments(more);
  let used: Way;
  try {
    used = await makeExecutable(way);
  } catch (thrown) {
    if (!/^gcc: /.test(messageOf(thrown))) throw thrown;
    const remedy = "a C compiler is needed for this way: apt-get install gcc libc6-dev";
    throw new Error(`${messageOf(thrown)}\n${remedy}`, { cause: thrown });
  }
  const size = ((await Deno.stat(output)).size / 2 ** 20).toFixed(1);
  print(`${output}: ${size} MiB, made by ${used === "compile" ? "deno compile" : "the launcher way"}`);
  print(`what it may do: ${output}.permissions`);
  if (used === "launcher") {
    await startOnce();
    const removed = (await run([output, "--denolet-clean"], { cwd: "/" })).trim();
    if (removed !== "") print(removed);
  }
  return 0;
}

if (import.meta.main) await runScript({ name: "compile", usage, main });
