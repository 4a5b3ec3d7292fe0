import type { ImageService, RuntimeService } from "../../cri/api.ts";
import type { Hierarchies } from "../../managers/cgroups/hierarchies.ts";
import type { Clock } from "../base/clock.ts";
import type { Host } from "../base/host.ts";
import type { Logger } from "../base/log.ts";
import type { Random } from "../base/random.ts";
import type { Scope } from "../base/scope.ts";
import type { ApiClient } from "../kube/api/types.ts";
import { containerLogsRoutes } from "../server/container_logs.ts";
import type { AgentMetrics } from "../server/metrics/agent_metrics.ts";
import type { KubeletPageOptions } from "../server/metrics/kubelet_page.ts";
import type { NodePages } from "../server/metrics/pages.ts";
import { pagePaths } from "../server/metrics/paths.ts";
import { createServer, type KubeletServer, type ServerOptions } from "../server/server.ts";
import { streamingRoutes } from "../server/streaming/routes.ts";
import type { ServerBackend } from "../server/types.ts";
import { accessWebhook, tokenWebhook } from "../server/webhooks.ts";
import type { ServedAgent } from "./agent_types.ts";
import { allFlags } from "./config/flags.ts";
import { getPath, type Json } from "./config/json.ts";
import type { LoadedConfig } from "./config/load.ts";
import { countedReviews } from "./counted_reviews.ts";
import { kubernetesVersion } from "./version.ts";

/** The node's HTTP API over a running agent (http.md); what else it serves is registered on it before it runs. */
export function createNodeApi(options: {
  loaded: LoadedConfig;
  agent: ServedAgent;
  nodeName: string;
  /** Journaled: requests of clients are decisions too. */
  runtime: RuntimeService;
  images: Pick<ImageService, "imageFsInfo">;
  hierarchies: Hierarchies;
  cgroupDriver: "cgroupfs" | "systemd";
  metrics: AgentMetrics;
  /** What a cluster adds: who is asked about tokens and rights, and the certificate that is signed there. */
  cluster?: { readonly reviews: Pick<ApiClient, "create">; readonly random: Random; readonly signedPair?: string };
  /** Owns the work that goes on behind an answer. */
  scope: Scope;
  host: Host;
  clock: Clock;
  log: Logger;
  setVerbosity: (level: number) => void;
}): KubeletServer {
  const { loaded, agent, nodeName, runtime, host, clock, log, setVerbosity, metrics } = options;
  const { view } = agent;
  metrics.podByUid = (uid) => view.podByUid(uid);
  metrics.starts.observed = (uid) => view.observed(uid);
  const flags = flagValues(loaded);
  const backend: ServerBackend = {
    ...view,
    nodeName,
    configz: () => loaded.v1beta1,
    flagz: () => flags,
    setVerbosity,
    runtime,
    host,
    clock,
    log,
  };
  const server = createServer({
    config: loaded.config,
    flags: loaded.flags,
    backend,
    version: kubernetesVersion,
    healthChecks: () => agent.healthChecks,
    metrics,
    ...(options.cluster ? clusterAccess(options.cluster, loaded, clock, metrics) : {}),
  });
  server.register(streamingRoutes(backend));
  server.register(containerLogsRoutes(backend));
  // Loaded by the first request: a node that nobody asks for statistics does without their code.
  let pages: ReturnType<typeof loadPages> | undefined;
  const own: KubeletPageOptions = {
    metrics,
    backend,
    healthChecks: () => agent.healthChecks,
    cgroupVersion: options.hierarchies.version,
    version: kubernetesVersion,
    arch: Deno.build.arch === "aarch64" ? "arm64" : "amd64",
    gates: () => loaded.gates.all(),
    leaving: () => agent.leaving(),
    mirrors: () => agent.mirrorPods,
    process: {
      heap: () => Deno.memoryUsage(),
      tasks: () => options.scope.size + agent.pods().length + agent.leaving().length,
      runtime: `deno${Deno.version.deno}`,
    },
  };
  for (const path of pagePaths) {
    server.registerText(
      path,
      async (context) => (await (pages ??= loadPages(options, own)))[path](context),
    );
  }
  return server;
}

/** How requests are judged on a node of a cluster (http.md section 2). */
function clusterAccess(
  { reviews, random, signedPair }: NonNullable<Parameters<typeof createNodeApi>[0]["cluster"]>,
  { config: { authentication, authorization } }: LoadedConfig,
  clock: Clock,
  metrics: AgentMetrics,
): Pick<ServerOptions, "tokens" | "authorizer" | "signedPair"> {
  const ask = { client: countedReviews(reviews, metrics.auth, clock), clock, random };
  const { cacheAuthorizedTTLMs, cacheUnauthorizedTTLMs } = authorization.webhook;
  return {
    tokens: tokenWebhook({ ...ask, ttlMs: authentication.webhook.cacheTTLMs }),
    authorizer: accessWebhook({ ...ask, allowedTtlMs: cacheAuthorizedTTLMs, deniedTtlMs: cacheUnauthorizedTTLMs }),
    ...(signedPair === undefined ? {} : { signedPair }),
  };
}

async function loadPages(
  { agent, host, clock, log }: Pick<Parameters<typeof createNodeApi>[0], "agent" | "host" | "clock" | "log">,
  own: KubeletPageOptions,
): Promise<NodePages> {
  const [{ machineFacts }, { nodePages }] = await Promise.all([
    import("./node_pages.ts"),
    import("../server/metrics/pages.ts"),
  ]);
  return nodePages({ stats: agent.stats, machine: () => machineFacts(host), own, clock, log });
}

/** Header values may be credentials. */
const classified = new Set(["manifest-url-header"]);

function textOf(value: unknown): string {
  if (Array.isArray(value)) return `[${value.join(",")}]`;
  if (typeof value === "object" && value !== null) {
    return Object.entries(value).map(([key, each]) => `${key}=${textOf(each)}`).join(",");
  }
  return String(value);
}

/** Every flag with the value in force: the configuration's where it stands for a field, else its own. */
export function flagValues(loaded: Pick<LoadedConfig, "flags" | "v1beta1">): Record<string, string> {
  const own: Readonly<Record<string, unknown>> = { ...loaded.flags };
  const values: Record<string, string> = {};
  for (const { name, field, initial = "", kind } of allFlags) {
    if (kind === "version" || name === "help") continue;
    const key = name.replace(/-([a-z])/g, (_, letter: string) => letter.toUpperCase());
    const value = field === undefined
      ? own[key] ?? own[key.replace(/Ip$/, "IP")]
      : getPath(loaded.v1beta1, field) as Json | undefined;
    values[name] = classified.has(name) && value !== undefined ? "CLASSIFIED" : textOf(value ?? initial);
  }
  return values;
}
