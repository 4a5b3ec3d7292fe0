import { readLogs } from "../../../managers/logs/reader.ts";
import type { LogOptions } from "../../../managers/logs/reader_types.ts";
import type { Clock } from "../../base/clock.ts";
import { KubeletError } from "../../base/errors.ts";
import type { Host } from "../../base/host.ts";
import type { Logger } from "../../base/log.ts";
import { podLogDir } from "../../pod/config/paths.ts";
import { podLogsDirOf } from "../trail.ts";
import { type AskAgent, NoAgent } from "./ask_agent.ts";
import type { LogsRequest } from "./command.ts";
import { onePodNamed } from "./find_pod.ts";
import { type ChosenLog, logOfFiles, logOfPod, podsOfLogDirs } from "./log_file.ts";

export interface LogsOptions {
  readonly request: LogsRequest;
  readonly rootDir: string;
  /** Where logs are when the agent has left no word of it. */
  readonly podLogsDir: string;
  readonly agent: AskAgent;
  readonly host: Pick<Host, "readText" | "readDir" | "realPath" | "open" | "stat" | "watch">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly out: (bytes: Uint8Array) => Promise<void>;
  /** Tells something beside the log. */
  readonly note: (text: string) => void;
  readonly signal: AbortSignal;
}

/** Prints the log of a container straight from its file: also when the agent does not run, which is told. */
export async function printLogs(options: LogsOptions): Promise<void> {
  const { request, host, clock, log, out, agent, signal } = options;
  const podLogsDir = await podLogsDirOf(host, options.rootDir) ?? options.podLogsDir;
  const chosen = await choose(options, podLogsDir);
  const now = clock.now();
  const since = request.sinceMs === undefined ? undefined : now - request.sinceMs;
  const asked: LogOptions = {
    follow: request.follow,
    timestamps: request.timestamps,
    ...(request.tailLines === undefined ? {} : { tailLines: request.tailLines }),
    ...(since === undefined ? {} : {
      since: {
        seconds: Math.floor(since / 1000),
        nanos: Math.floor(since - Math.floor(since / 1000) * 1000) * 1_000_000,
      },
    }),
  };
  if (!await host.stat(chosen.path)) {
    throw new KubeletError(
      "Host",
      `${chosen.path} is not there: the log was removed, or the runtime keeps it elsewhere`,
    );
  }
  await readLogs({
    path: chosen.path,
    options: asked,
    out,
    isRunning: () => isRunning(agent, chosen),
    host,
    clock,
    log,
    signal,
  });
}

async function choose(options: LogsOptions, podLogsDir: string): Promise<ChosenLog> {
  const { request, agent } = options;
  try {
    const [{ nodeName }, { pods }] = [await agent.state(), await agent.pods()];
    const known = pods.map((one) => ({ ...one, ...one.pod.metadata }));
    const { pod, ending } = onePodNamed(request.pod, known, nodeName);
    for (const { uid } of ending) {
      options.note(`another pod of this name is ending (uid ${uid}); for its log: kubelet logs ${uid}`);
    }
    return logOfPod(request, pod, podLogsDir);
  } catch (thrown) {
    if (!(thrown instanceof NoAgent)) throw thrown;
    options.note(`the agent does not answer (${thrown.message}); the newest file in ${podLogsDir} is read`);
    return await chooseFile(options, podLogsDir);
  }
}

async function chooseFile({ request, host }: LogsOptions, podLogsDir: string): Promise<ChosenLog> {
  const pods = podsOfLogDirs((await host.readDir(podLogsDir)).map(({ name }) => name));
  const { pod } = onePodNamed(request.pod, pods, "");
  const dir = podLogDir(podLogsDir, { metadata: pod });
  const containers = new Map<string, string[]>();
  for (const { name, kind } of await host.readDir(dir)) {
    if (kind === "directory") containers.set(name, (await host.readDir(`${dir}/${name}`)).map((file) => file.name));
  }
  return logOfFiles(request, pod, containers, podLogsDir);
}

/** Whether the instance still runs, as the agent knows it; an agent that is away does not end what it runs. */
async function isRunning(agent: AskAgent, { id }: ChosenLog): Promise<boolean> {
  try {
    const { pods } = await agent.pods();
    const statuses = pods.flatMap(({ status }) => [
      ...status?.initContainerStatuses ?? [],
      ...status?.containerStatuses ?? [],
      ...status?.ephemeralContainerStatuses ?? [],
    ]);
    return id === "" || statuses.some((one) => one.containerID === id && one.state?.running !== undefined);
  } catch (thrown) {
    if (thrown instanceof NoAgent) return true;
    throw thrown;
  }
}
