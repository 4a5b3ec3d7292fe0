import { create } from "@bufbuild/protobuf";
import { RuntimeFeaturesSchema, RuntimeHandlerSchema } from "../../../cri/gen/runtime_pb.ts";
import { FakeRuntime } from "../../../cri/fake/runtime.ts";
import { FakeClock } from "../../base/fake_clock.ts";
import { FakeHost } from "../../base/fake_host.ts";
import { RecordingLogger, silent } from "../../base/log.ts";
import { type Random, seeded } from "../../base/random.ts";
import { Scope } from "../../base/scope.ts";
import { FakeApi } from "../../kube/api/fake/fake_api.ts";
import { resources } from "../../kube/api/resources.ts";
import type { Lease, Node } from "../../kube/types.ts";
import type { AgentReadiness } from "../agent_readiness.ts";
import type { ServedAgent } from "../agent_types.ts";
import { loadConfig } from "../config/load.ts";
import type { NodeFacts } from "../node_facts.ts";
import { clusterEvents } from "./events.ts";
import { clusterNode } from "./node.ts";
import type { ClusterContext, ClusterPart } from "./types.ts";

const facts: NodeFacts = {
  name: "n1",
  ips: ["10.0.0.9"],
  memory: 8 * 2 ** 30,
  swap: 2 ** 30,
  cpus: 4,
  capacity: { cpu: "4", memory: "8Gi", "ephemeral-storage": "100Gi", pods: "110" },
  allocatable: { cpu: "4", memory: "8Gi", "ephemeral-storage": "100Gi", pods: "110" },
  hugePageSizes: [],
  arch: "amd64",
  kernelVersion: "6.1.0",
  appArmor: false,
  swapController: false,
};

/** What tests have of a node. */
export interface NodeWorld extends AsyncDisposable {
  readonly clock: FakeClock;
  readonly random: Random;
  readonly log: RecordingLogger;
  readonly api: FakeApi;
  readonly part: ClusterPart;
  readonly runtime: FakeRuntime;
  /** What the agent says of itself. */
  readonly agent: { readiness: AgentReadiness; readonly pressure: string[] };
  /** What other parts say of the node. */
  readonly others: { readonly troubles: string[]; volumes: string[] | undefined };
  /** What the metrics were told of the start. */
  readonly startup: readonly string[];
  start(): void;
  node(): Node | undefined;
  lease(): Lease | undefined;
  /** Reasons of the events that were written. */
  reasons(): (string | undefined)[];
}

/** A node with its agent's readiness made up, at an API server in memory. */
export async function nodeWorld(argv: string[] = [], seed = 1): Promise<NodeWorld> {
  const clock = new FakeClock();
  const random = seeded(seed);
  const api = new FakeApi({ clock });
  for (const name of ["default", "kube-node-lease"]) api.create(resources.namespaces, { metadata: { name } });
  const host = new FakeHost();
  for (const [path, text] of [["/etc/machine-id", "m\n"], ["/proc/sys/kernel/random/boot_id", "b\n"]] as const) {
    await host.mkdir(path.replace(/\/[^/]*$/, ""));
    await host.write(path, text);
  }
  const { config, flags } = await loadConfig({
    argv: ["--kubeconfig=/k", "--hostname-override=n1", ...argv],
    host,
    log: silent,
  });
  const scope = new Scope("test");
  const log = new RecordingLogger();
  const runtime = new FakeRuntime({ clock, random });
  const client = (name: string) => api.client(name, { node: "n1", timeoutMs: 10_000 });
  const clients = { main: client("main"), heartbeat: client("heartbeat"), events: client("events") };
  const startup: string[] = [];
  const context: ClusterContext = {
    clients,
    config,
    flags,
    facts,
    nodeName: "n1",
    host,
    clock,
    random,
    log,
    events: clusterEvents({
      client: clients.events,
      nodeName: "n1",
      log: { pod: () => {}, node: () => {} },
      logger: log,
      clock,
      random,
      scope,
    }),
    runtime,
    images: runtime,
    runtimeName: "containerd",
    runtimeVersion: "v2.1.4",
    scope,
    startup: {
      attempted: () => void startup.push("attempted"),
      created: () => void startup.push("created"),
      ready: () => void startup.push("ready"),
    },
  };
  const part = clusterNode(context, {
    interfaces: () => [{ name: "eth0", address: "10.0.0.5" }],
    lookup: () => Promise.resolve(["10.0.0.5"]),
  });
  const readiness: AgentReadiness = {
    troubles: [],
    handlers: [create(RuntimeHandlerSchema, { name: "" })],
    features: create(RuntimeFeaturesSchema, { supplementalGroupsPolicy: true }),
  };
  const agent = { readiness, pressure: [] as string[] };
  const others: { troubles: string[]; volumes: string[] | undefined } = { troubles: [], volumes: undefined };
  return {
    clock,
    random,
    log,
    api,
    part,
    agent,
    runtime,
    others,
    startup,
    start: () =>
      part.start?.(agent as unknown as ServedAgent, {
        nodeTroubles: () => others.troubles,
        volumesInUse: () => others.volumes,
      }),
    node: () => api.get(resources.nodes, { name: "n1" }),
    lease: () => api.get(resources.leases, { namespace: "kube-node-lease", name: "n1" }),
    reasons: () => api.list(resources.events).map(({ reason }) => reason),
    [Symbol.asyncDispose]: () => scope.close(),
  };
}
