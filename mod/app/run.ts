import { type RuntimeService, silenceOf } from "../../cri/api.ts";
import { createImageClient, createRuntimeClient } from "../../cri/grpc.ts";
import { journaledRuntime } from "../../cri/journaled.ts";
import { detectCgroups, type Hierarchies } from "../../managers/cgroups/hierarchies.ts";
import { raiseOpenFiles } from "../../managers/node/open_files.ts";
import { bootTime } from "../../managers/stats/node_files.ts";
import { networkDialers } from "../../managers/probes/prober.ts";
import { type Clock, systemClock } from "../base/clock.ts";
import { asError, isAborted, KubeletError, messageOf } from "../base/errors.ts";
import type { Host } from "../base/host.ts";
import { Journal, type JournalRecord } from "../base/journal.ts";
import type { Logger } from "../base/log.ts";
import { systemRandom } from "../base/random.ts";
import { Scope } from "../base/scope.ts";
import { podFullName } from "../kube/pod.ts";
import { rootPaths } from "../pod/config/paths.ts";
import { AgentMetrics } from "../server/metrics/agent_metrics.ts";
import { meteredImages, meteredRuntime } from "../server/metrics/runtime_meter.ts";
import { type HealthCheck, serveHealthz } from "../server/healthz.ts";
import { serveLocal } from "../server/local/serve.ts";
import { createAgent } from "./agent.ts";
import { readCredentialProviders } from "./credential_providers.ts";
import { cgroupDriver } from "./cgroup_driver.ts";
import { boundedEnd } from "./bounded_end.ts";
import { exitCodes } from "./cli/command.ts";
import { apiAccess, apiObserver } from "./cluster/access.ts";
import { composeCluster } from "./cluster/cluster.ts";
import { joinCluster } from "./cluster/join.ts";
import { describeUnused } from "./config/explain.ts";
import type { LoadedConfig } from "./config/load.ts";
import { collectGarbage, HeapCare } from "./heap_care.ts";
import { JournalFile } from "./journal_file.ts";
import { LocalView } from "./local_view.ts";
import { LogEvents } from "./log_events.ts";
import { createDevices } from "./devices.ts";
import { createNodeApi } from "./node_api.ts";
import { nodeFacts, nodeName } from "./node_facts.ts";
import { RunOnce } from "./run_once_watch.ts";
import { shareRoot } from "./shared_root.ts";
import { checkMachine } from "./start_checks.ts";
import { keepSystemdInformed, systemdNotify, systemdRequest } from "./systemd.ts";
import { kubernetesVersion } from "./version.ts";

export interface RunOptions {
  loaded: LoadedConfig;
  host: Host;
  log: Logger;
  /** Prints what run-once has to tell to standard output. */
  print: (text: string) => void;
  /** Changes -v while the agent runs. */
  setVerbosity: (level: number) => void;
}

/** The signals that end the agent; containers go on (features.md A30). */
const endings = ["SIGTERM", "SIGINT"] as const;

/** Runs the agent until a signal ends it, or run-once is done. The answer is the exit code. */
export async function run(options: RunOptions): Promise<number> {
  const { loaded, log } = options;
  const { flags } = loaded;
  log.info("starting", { version: kubernetesVersion, pid: Deno.pid, deno: Deno.version.deno });
  for (const unused of describeUnused(loaded)) log.warn(unused);

  const ended = new AbortController();
  const onSignal = () => ended.abort(new KubeletError("Aborted", "a signal ended the agent"));
  for (const name of endings) Deno.addSignalListener(name, onSignal);
  const exit = () => Deno.exit(isAborted(ended.signal.reason) ? exitCodes.ok : exitCodes.failed);
  using _bound = boundedEnd({ clock: systemClock, signal: ended.signal, log, exit });
  try {
    await prepareRoot(options);
    using lock = await options.host.lock(`${flags.rootDir}/.denolet.lock`);
    if (!lock) {
      throw new KubeletError(
        "Locked",
        `another agent already uses the root directory ${flags.rootDir}; stop it, or give this one its own --root-dir`,
      );
    }
    return await runLocked(options, ended);
  } catch (thrown) {
    if (ended.signal.aborted && isAborted(thrown)) return exitCodes.ok;
    log.error("the agent ends", { error: messageOf(thrown) });
    return exitCodes.failed;
  } finally {
    for (const name of endings) Deno.removeSignalListener(name, onSignal);
    log.info("ended; containers keep running");
  }
}

/** Makes the root directory with the contract's modes (runtime-contract.md section 2). */
async function prepareRoot({ loaded, host }: RunOptions): Promise<void> {
  const { rootDir } = loaded.flags;
  await host.mkdir(rootDir, { mode: 0o750 });
  for (const dir of [rootPaths.pods(rootDir), rootPaths.plugins(rootDir), rootPaths.pluginRegistration(rootDir)]) {
    await host.mkdir(dir, { mode: 0o750 });
  }
  await host.mkdir(loaded.config.podLogsDir, { mode: 0o750 });
}

async function runLocked(options: RunOptions, ended: AbortController): Promise<number> {
  const { loaded, host, log } = options;
  const { config, flags } = loaded;
  const clock = systemClock;
  await shareRoot(host, flags.rootDir, log);
  await using scope = new Scope("process", {
    signal: ended.signal,
    onFailure: (error, task) => log.error("a task failed", { task, error: error.message }),
  });
  const health: HealthCheck[] = [{ name: "ping", check: () => undefined }];
  if (config.healthzPort > 0) {
    scope.spawn("healthz", (signal) =>
      serveHealthz({
        address: config.healthzBindAddress,
        port: config.healthzPort,
        checks: health,
        clock,
        log,
        signal,
      }));
  }
  const local = new LocalView({ loaded, clock, pid: Deno.pid });
  scope.spawn("local socket", (signal) => serveLocal({ rootDir: flags.rootDir, backend: local, host, log, signal }));
  await local.leaveTrail(host, log);
  const hierarchies = await detectCgroups(host);
  const metrics = new AgentMetrics({ clock });
  metrics.startup.bootedAt = () => bootTime(host);
  const logEvents = new LogEvents(log);
  const joined = config.runOnce ? undefined : await joinCluster({
    loaded,
    nodeName: nodeName(flags.hostnameOverride, host.hostname()),
    host,
    clock,
    random: systemRandom,
    log,
    logEvents,
    scope,
    observer: apiObserver(metrics.client),
  });
  const events = joined?.events ?? logEvents;
  await checkMachine({ config, host, hierarchies, events, log });
  scope.spawn(
    "open files",
    (signal) => raiseOpenFiles({ host, pid: Deno.pid, wanted: config.maxOpenFiles, log, signal }),
  );

  const credentialProviders = await readCredentialProviders(host, flags, loaded.gates);

  using runtimeClient = createRuntimeClient({
    endpoint: config.containerRuntimeEndpoint,
    timeoutMs: config.runtimeRequestTimeoutMs,
    log,
  });
  using imageClient = createImageClient({
    endpoint: config.imageServiceEndpoint,
    timeoutMs: config.runtimeRequestTimeoutMs,
    log,
  });
  const metered = { meter: metrics, now: () => clock.now() };
  const runtime = meteredRuntime(runtimeClient, metered);
  const images = meteredImages(imageClient, metered);
  const known = await meetRuntime({ runtime, clock, log, config, signal: scope.signal });
  const facts = await nodeFacts({
    host,
    log,
    config,
    rootDir: flags.rootDir,
    hostnameOverride: flags.hostnameOverride,
    nodeIp: flags.nodeIP,
    interfaces: () => Deno.networkInterfaces(),
    arch: Deno.build.arch,
    memoryV2: memoryOfV2(hierarchies),
    ignoreEviction: flags.experimentalAllocatableIgnoreEviction,
  });
  const journalFile = new JournalFile({ path: `${flags.rootDir}/journal.jsonl`, log, store: journalStore(host) });
  using care = new HeapCare({ clock, collect: collectGarbage });
  const sink = (record: JournalRecord) => {
    journalFile.sink(record);
    care.worked();
  };
  const journal = new Journal({ clock, sink, limit: 2000 });
  scope.spawn("journal", (signal) => journalFile.run(signal));
  const once = config.runOnce ? new RunOnce({ print: options.print, clock }) : undefined;
  const plugins = await createDevices({
    host,
    clock,
    log,
    scope,
    rootDir: flags.rootDir,
    showHealth: loaded.gates.enabled("ResourceHealthStatus"),
    meter: metrics.plugins,
  });
  const cluster = joined && composeCluster({
    devices: plugins.devices,
    clients: joined.clients,
    ...(joined.ownPair ? { ownPair: joined.ownPair } : {}),
    config,
    flags,
    gates: loaded.gates,
    facts,
    nodeName: facts.name,
    host,
    clock,
    random: systemRandom,
    log,
    events,
    runtime,
    images,
    runtimeName: known.name,
    runtimeVersion: known.version,
    scope,
    startup: metrics.startup,
    starts: metrics.starts,
    certificates: metrics.security,
    onStatusWritten: (ms) => metrics.statusSeconds.observe({}, ms / 1000),
  });
  const agent = createAgent({
    ...(cluster ? { cluster } : {}),
    devices: plugins.devices,
    healthChecks: plugins.healthChecks,
    config,
    credentialProviders,
    flags,
    facts,
    gates: loaded.gates,
    hierarchies,
    cgroupDriver: known.driver,
    host,
    clock,
    random: systemRandom,
    runtime,
    images,
    runtimeName: known.name,
    runtimeVersion: known.version,
    dial: networkDialers({ clock }),
    meter: metrics,
    journal,
    events,
    log,
    stdin: Deno.stdin.readable,
    fetch: (url, init) => fetch(url, init),
    onStatus: ({ pod, status, version }) => {
      once?.changed();
      metrics.status(pod, status);
      // The only way to read a status on a node without an API server.
      log.detail(4, "Pod status", { pod: podFullName(pod), podUid: pod.metadata.uid, version, status });
    },
  });
  health.splice(0, health.length, ...agent.healthChecks);
  local.agent = { agent, journal, nodeName: facts.name };
  if (!once) {
    const request = systemdRequest((name) => Deno.env.get(name), Deno.pid);
    if (request.socket !== undefined) {
      const notify = systemdNotify(request.socket, `${flags.rootDir}/.notify`);
      const unhealthy = () => health.map(({ check }) => check()).find((reason) => reason !== undefined);
      scope.spawn("systemd", (signal) => keepSystemdInformed({ request, notify, unhealthy, clock, log, signal }));
    }
    let fault: Error | undefined;
    if (config.enableServer) {
      const api = createNodeApi({
        loaded,
        agent,
        nodeName: facts.name,
        runtime: journaledRuntime(runtime, journal),
        images,
        hierarchies,
        cgroupDriver: known.driver,
        metrics,
        scope,
        host,
        clock,
        log,
        setVerbosity: options.setVerbosity,
        ...(joined ? { cluster: apiAccess(joined.clients, loaded) } : {}),
      });
      scope.spawn("node API", async (signal) => {
        try {
          await api.run(signal);
        } catch (thrown) {
          if (signal.aborted) throw thrown;
          // A node without its API is no node: the agent ends, and whoever keeps it starts it again (http.md section 1).
          fault = asError(thrown);
          ended.abort(fault);
        }
      });
    }
    cluster?.start(agent);
    plugins.start(agent);
    await agent.run(scope.signal);
    if (fault) throw fault;
    return exitCodes.ok;
  }
  scope.spawn("agent", (signal) => agent.run(signal));
  const ok = await once.watch(agent, scope.signal);
  return ok ? exitCodes.ok : exitCodes.failed;
}

/** Waits until the runtime answers, says so once, and takes its name and its cgroup driver (features.md A18, A19). */
async function meetRuntime(options: {
  runtime: RuntimeService;
  clock: Clock;
  log: Logger;
  config: LoadedConfig["config"];
  signal: AbortSignal;
}): Promise<{ name: string; version: string; driver: "cgroupfs" | "systemd" }> {
  const { runtime, clock, log, config, signal } = options;
  for (let delay = 100, said = false;; delay = Math.min(delay * 2, 5000)) {
    try {
      const version = await runtime.version({ signal, timeoutMs: 10_000 });
      log.info("container runtime", { name: version.runtimeName, version: version.runtimeVersion });
      return {
        name: version.runtimeName,
        version: version.runtimeVersion,
        driver: await cgroupDriver({ ...options, configured: config.cgroupDriver }),
      };
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      if (!said) {
        log.error("waiting for the container runtime", {
          endpoint: config.containerRuntimeEndpoint,
          error: silenceOf(thrown),
        });
      }
      said = true;
      await clock.sleep(delay, signal);
    }
  }
}

function memoryOfV2(hierarchies: Hierarchies): string | undefined {
  return hierarchies.version === 2 ? hierarchies.roots.get("memory") : undefined;
}

/** Appends to the journal's file; its size is asked once and counted from then on. */
function journalStore(host: Host) {
  let size: number | undefined;
  return {
    async append(path: string, text: string): Promise<number> {
      size ??= (await host.stat(path))?.size ?? 0;
      await Deno.writeTextFile(path, text, { append: true, mode: 0o600 });
      return size += text.length;
    },
    async rename(from: string, to: string): Promise<void> {
      await host.rename(from, to);
      size = 0;
    },
  };
}
