import { messageOf } from "../mod/base/errors.ts";
import { systemClock } from "../mod/base/clock.ts";
import { type DevOptions, devOptions, usage } from "./dev_options.ts";
import { exists, namesIn, remove, repository } from "./lib/files.ts";
import { complain, print, printRaw } from "./lib/print.ts";
import { Refusal, runScript } from "./lib/script.ts";
import { table } from "./lib/table.ts";
import { followLines, worthSaying } from "./node/agent_log.ts";
import { AgentNode, agentPaths, cleanAgent, endAgent } from "./node/agent_node.ts";
import { Containerd, layoutOf, startContainerd } from "./node/containerd.ts";
import { assertUnused } from "./node/containerd_clean.ts";
import { ensureContainerd2 } from "./node/containerd2.ts";
import { ensureInstalled } from "./node/install.ts";
import { podHeader, podRows } from "./node/pods.ts";

/** Where the examples' hostPath volumes lie; ours to remove, unlike what other manifests name. */
const exampleLeavings = ["/tmp/denolet-example", "/tmp/denolet-example-file"];

const step = (line: string) => print(`dev: ${line}`);

/** Undone in reverse order, each whatever became of the others. */
async function undo(steps: readonly (() => Promise<void>)[]): Promise<boolean> {
  let good = true;
  for (const one of [...steps].reverse()) {
    try {
      await one();
    } catch (thrown) {
      good = false;
      complain(`dev: ${messageOf(thrown)}`);
    }
  }
  return good;
}

/** Runs the dev node until the signal aborts, or, with `once`, until the pods are done. Returns the exit code. */
async function dev(options: DevOptions, signal: AbortSignal): Promise<number> {
  const { name, root } = options;
  await ensureInstalled({ log: step });
  if (Deno.uid() !== 0) throw new Refusal("containers, mounts and control groups need root: run this as root");
  if (!await exists(options.manifests)) throw new Refusal(`--manifests ${options.manifests}: no such directory`);
  const binDir = options.containerd === "v2" ? await ensureContainerd2({ log: step }) : "/usr/bin";
  const steps: (() => Promise<void>)[] = [];
  let code = 0;
  let failure: unknown;
  try {
    await refuseForeign(root);
    await assertUnused(layoutOf({ name }));
    // an agent that an earlier run left would fight for the pods; its directories go when its containers have gone
    await endAgent(agentPaths(name, `${root}/agent`));
    steps.push(() => removeOwn(root));
    const containerd = await startContainerd({
      name,
      version: options.containerd,
      binDir,
      root: `${root}/containerd`,
      masquerade: true,
      log: step,
    });
    steps.push(() => cleanAgent(agentPaths(name, `${root}/agent`)));
    steps.push(() => containerd.stop());
    if (signal.aborted) return 130;
    step(`imported ${(await containerd.importImages()).join(", ")}`);
    const agent = await AgentNode.prepare({
      name,
      containerd,
      manifests: options.manifests,
      root: `${root}/agent`,
      flags: options.flags,
      log: step,
    });
    steps.push(async () => {
      if (!await agent.stop()) throw new Error("the agent did not end all pods in time; they are ended without it");
    });
    if (signal.aborted) return 130;
    agent.start(options.once ? ["--runonce"] : [], { show: options.once });
    code = options.once ? await once(agent, options.timeout, signal) : await watch(agent, containerd, signal);
  } catch (thrown) {
    failure = thrown;
    code = 1;
  } finally {
    if (failure !== undefined) complain(`dev: ${messageOf(failure)}`);
    if (options.keep && failure === undefined) {
      step(`kept: ${root}; run again with --name ${name} to replace it`);
    } else if (steps.length > 0) {
      step("ending the pods and removing everything");
      if (!await undo(steps)) code ||= 1;
      else step("nothing left");
    }
  }
  return code;
}

async function refuseForeign(root: string): Promise<void> {
  const known = new Set(["agent", "containerd"]);
  const foreign = (await namesIn(root)).filter((name) => !known.has(name));
  if (foreign.length > 0) {
    throw new Refusal(`--root ${root}: holds ${foreign[0]}, which is not ours; choose another`);
  }
}

async function removeOwn(root: string): Promise<void> {
  if ((await namesIn(root)).length === 0) await remove(root);
}

/** The agent ends by itself and has printed its table; its pods go on running. */
async function once(agent: AgentNode, timeout: number, signal: AbortSignal): Promise<number> {
  const over = new AbortController();
  const stop = () => over.abort();
  signal.addEventListener("abort", stop, { once: true });
  const ended = agent.exited().then((code) => ({ code }));
  try {
    const first = await Promise.race([
      ended,
      systemClock.sleep(timeout, over.signal).then(() => undefined, () => undefined),
    ]);
    if (signal.aborted) return 130;
    if (first === undefined) complain(`dev: the agent did not end within ${timeout / 1000} s`);
    else if (first.code === 0) return 0;
    else complain(`dev: the agent ended with exit code ${first.code}`);
    complain(`dev: end of its log:\n${await agent.logEnd(25)}`);
    return first?.code ?? 1;
  } finally {
    signal.removeEventListener("abort", stop);
    over.abort();
    await agent.kill();
    await ended;
  }
}

/** Shows the pods until the signal aborts or the agent ends. */
async function watch(agent: AgentNode, containerd: Containerd, signal: AbortSignal): Promise<number> {
  await agent.healthy(60_000);
  step(`the node is up; runtime ${containerd.endpoint}`);
  step(`add, edit or remove pods in ${agent.paths.manifests}; Ctrl-C ends everything`);
  const ended = agent.exited().then((code) => ({ code }));
  const live = Deno.stdout.isTerminal();
  const newLines = followLines(agent.paths.log);
  let shown = "";
  let lines = 0;
  let rows: string[][] = [];
  while (!signal.aborted) {
    try {
      const pods = await agent.pods();
      rows = podRows(pods, systemClock.now(), { statuses: await agent.statuses(), leaving: await agent.leaving() });
    } catch (thrown) {
      if (!await containerd.alive()) throw new Error(`containerd ended:\n${await containerd.logEnd()}`);
      complain(`dev: ${messageOf(thrown)}`);
      lines = 0;
    }
    const text = table(podHeader, rows, live ? Deno.consoleSize().columns - 1 : Infinity);
    // off a terminal only what changed is worth a line, and age always changes
    const key = live ? text : JSON.stringify(rows.map((row) => row.toSpliced(4, 1)));
    const said = (await newLines()).map(worthSaying).filter((line) => line !== undefined);
    if (key !== shown || said.length > 0) {
      const above = said.map((line) => `dev: ${line}\n`).join("");
      printRaw(`${live && lines > 0 ? `\x1b[${lines}A\x1b[J` : ""}${above}${text}\n${live ? "" : "\n"}`);
      lines = text.split("\n").length;
    }
    shown = key;
    const over = await Promise.race([ended, systemClock.sleep(1000, signal).then(() => undefined, () => undefined)]);
    if (over && !signal.aborted) {
      complain(`dev: the agent ended by itself (exit code ${over.code}); end of its log:\n${await agent.logEnd(25)}`);
      return over.code || 1;
    }
  }
  return 0;
}

async function main(args: readonly string[]): Promise<number> {
  const controller = new AbortController();
  for (const name of ["SIGINT", "SIGTERM", "SIGHUP"] as const) {
    Deno.addSignalListener(name, () => {
      if (!controller.signal.aborted) print("");
      controller.abort();
    });
  }
  const options = devOptions(args, Deno.cwd());
  if (options.help) {
    print(usage);
    return 0;
  }
  const before = await Promise.all(exampleLeavings.map(exists));
  const code = await dev(options, controller.signal);
  if (!options.keep && options.manifests === `${repository}/examples/pods`) {
    for (const [i, path] of exampleLeavings.entries()) if (!before[i]) await remove(path);
  }
  return code;
}

if (import.meta.main) await runScript({ name: "dev", usage, main });
