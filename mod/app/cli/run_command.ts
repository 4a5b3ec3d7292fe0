import { posix } from "node:path";
import { createRuntimeClient } from "../../../cri/grpc.ts";
import { systemClock } from "../../base/clock.ts";
import { createDenoHost } from "../../base/deno_host.ts";
import { messageOf } from "../../base/errors.ts";
import { type Logger, silent } from "../../base/log.ts";
import { explainConfig } from "../config/explain.ts";
import { loadConfig } from "../config/load.ts";
import { privateMounts } from "../private_mounts.ts";
import { askAgent, NoAgent } from "./ask_agent.ts";
import { checkText, judgeMachine } from "./check/checks.ts";
import { checkConfig } from "./check/configuration.ts";
import { gatherFacts } from "./check/facts.ts";
import { type Command, exitCodes } from "./command.ts";
import { completionScript } from "./completion.ts";
import { explainPodNamed } from "./explain/command.ts";
import { explainImage } from "./explain/image.ts";
import { printLogs } from "./logs.ts";
import { podList, podTable } from "./ps.ts";

/** A command that looks at an agent, instead of being one. */
export type LookingCommand = Exclude<Command, { command: "run" | "help" | "version" }>;

/** Where a command prints. */
export interface Printer {
  out(bytes: Uint8Array): void;
  print(stream: "stdout" | "stderr", text: string): void;
}

const defaultEndpoint = "unix:///run/containerd/containerd.sock";
const defaultPodLogsDir = "/var/log/pods";

/** Carries a command out; the answer is the exit code. Rejects with an error for people. */
export async function runCommand(command: LookingCommand, printer: Printer): Promise<number> {
  const rootDir = posix.resolve(Deno.cwd(), command.parsed.flags.rootDir);
  const agent = askAgent(rootDir);
  switch (command.command) {
    case "ps": {
      const pods = await agent.pods();
      const state = await agent.state();
      printer.print("stdout", command.json ? podList(pods) : podTable(pods, Date.now()));
      if (state.waitingFor !== undefined) printer.print("stderr", `the agent waits for ${state.waitingFor}\n`);
      for (const { where, problem } of state.manifestProblems) printer.print("stderr", `${where}: ${problem}\n`);
      return exitCodes.ok;
    }
    case "explain":
      printer.print("stdout", `${await explain(command, rootDir, warnings(printer))}\n`);
      return exitCodes.ok;
    case "logs":
      await logs(command, rootDir, printer);
      return exitCodes.ok;
    case "check":
      return await check(command, rootDir, printer);
    case "completion":
      printer.print("stdout", completionScript(command.shell));
      return exitCodes.ok;
  }
}

/** A log of which only the warnings are told: that a field of the configuration is not known, say. */
function warnings(printer: Printer): Logger {
  return { ...silent, warn: (message) => printer.print("stderr", `warning: ${message}\n`) };
}

async function explain(
  command: LookingCommand & { command: "explain" },
  rootDir: string,
  log: Logger,
): Promise<string> {
  const { subject, rest, argv } = command;
  const [name = ""] = rest;
  const agent = askAgent(rootDir);
  const host = createDenoHost();
  switch (subject) {
    case "config": {
      const loaded = argv.length > 0 ? await loadConfig({ argv, host, log, cwd: Deno.cwd() }) : undefined;
      return explainConfig({ ...(name ? { field: name } : {}), ...(loaded ? { loaded } : {}) });
    }
    case "image":
      // A runtime that does not answer leaves what the pods tell.
      return explainImage(name, (await agent.pods()).pods, await agent.images().catch(messageOf));
    default:
      return await explainPodNamed({
        word: subject === "pod" ? name : subject,
        rootDir,
        agent,
        host,
        clock: systemClock,
      });
  }
}

async function logs(command: LookingCommand & { command: "logs" }, rootDir: string, printer: Printer): Promise<void> {
  const { argv, request } = command;
  const host = createDenoHost();
  const given = argv.some((word) => /^--(config|pod-logs-dir)/.test(word));
  const podLogsDir = given
    ? (await loadConfig({ argv, host, log: warnings(printer), cwd: Deno.cwd() })).config.podLogsDir
    : defaultPodLogsDir;
  await printLogs({
    request,
    rootDir,
    podLogsDir,
    agent: askAgent(rootDir),
    host,
    clock: systemClock,
    log: silent,
    out: (bytes) => Promise.resolve(printer.out(bytes)),
    note: (text) => printer.print("stderr", `${text}\n`),
    signal: new AbortController().signal,
  });
}

async function check(
  command: LookingCommand & { command: "check" },
  rootDir: string,
  printer: Printer,
): Promise<number> {
  const { argv, parsed } = command;
  const host = createDenoHost(await privateMounts());
  const checked = await checkConfig(argv, host, Deno.cwd());
  const { config } = checked;
  const flag = parsed.values.get("container-runtime-endpoint");
  const endpoint = config?.containerRuntimeEndpoint ?? (typeof flag === "string" ? flag : defaultEndpoint);
  using runtime = createRuntimeClient({ endpoint, timeoutMs: 5000, log: silent });
  const results = judgeMachine(
    await gatherFacts({
      ...checked,
      endpoint,
      rootDir,
      agentRuns: await answers(rootDir),
      isRoot: Deno.uid() === 0,
      runtime,
      host,
      clock: systemClock,
      portProblem,
      signal: AbortSignal.timeout(60_000),
    }),
  );
  printer.print("stdout", checkText(results));
  return results.some(({ level }) => level === "fail") ? exitCodes.failed : exitCodes.ok;
}

async function answers(rootDir: string): Promise<boolean> {
  try {
    await askAgent(rootDir).state();
    return true;
  } catch (thrown) {
    if (thrown instanceof NoAgent) return false;
    throw thrown;
  }
}

/** Listens for a moment, which is the one way to know. */
function portProblem(address: string, port: number): string | undefined {
  try {
    Deno.listen({ hostname: address || "0.0.0.0", port }).close();
    return undefined;
  } catch (thrown) {
    return messageOf(thrown);
  }
}
