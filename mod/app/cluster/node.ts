import { lookup } from "node:dns/promises";
import type { InterfaceAddress } from "../../../managers/node/addresses.ts";
import { ensureCsiNode } from "../../../managers/node/csi_node.ts";
import { keepIptables } from "../../../managers/node/iptables.ts";
import { NodeLease } from "../../../managers/node/lease.ts";
import { PodCidr } from "../../../managers/node/pod_cidr.ts";
import { registerNode } from "../../../managers/node/registrar.ts";
import { NameResolver } from "../../../managers/node/resolver.ts";
import { NodeWatcher } from "../../../managers/node/situation.ts";
import {
  type AddressResult,
  hostIPs,
  needsResolver,
  statusAddresses,
} from "../../../managers/node/status_addresses.ts";
import { NodeStatusKeeper } from "../../../managers/node/status_keeper.ts";
import type { NodeProfile } from "../../../managers/node/types.ts";
import { NodeRecord } from "../../../managers/node/view.ts";
import { messageOf } from "../../base/errors.ts";
import { createInformer } from "../../kube/api/informer.ts";
import { resources } from "../../kube/api/resources.ts";
import { isApiNotFound } from "../../kube/api/types.ts";
import type { Node } from "../../kube/types.ts";
import type { ServedAgent } from "../agent_types.ts";
import { nodeProfile } from "./node_profile.ts";
import type { ClusterContext, ClusterPart, ClusterParts } from "./types.ts";

/** What the node's addresses are found out by. */
export interface NodeNetwork {
  /** The addresses of the machine's interfaces. */
  readonly interfaces: () => readonly InterfaceAddress[];
  /** The addresses of a name, as the machine resolves it. */
  readonly lookup: (name: string) => Promise<readonly string[]>;
}

/** The machine's. */
export const systemNetwork: NodeNetwork = {
  interfaces: () => Deno.networkInterfaces(),
  lookup: async (name) => (await lookup(name, { all: true })).map(({ address }) => address),
};

/** The node as the API server sees it: registered, its status kept, its lease renewed, its object watched. */
export function clusterNode(context: ClusterContext, network: NodeNetwork = systemNetwork): ClusterPart {
  const { clients, nodeName, clock, random, log, scope, facts, flags } = context;
  const record = new NodeRecord();
  const informer = createInformer({
    client: clients.main,
    resource: resources.nodes,
    fieldSelector: `metadata.name=${nodeName}`,
    clock,
    random,
    log,
    onChange: (change) => record.change(change),
    onList: () => record.answered(),
  });
  return {
    node: () => record.node,
    nodeRead: () => record.synced,
    hostIPs: () => {
      if (record.node) return hostIPs(record.node.status?.addresses ?? []);
      // Until the object is read, pods keep the address that they most likely have.
      return flags.cloudProvider === "external" ? [] : facts.ips;
    },
    start(agent, cluster): void {
      context.events.node({ type: "Normal", reason: "Starting", message: "Starting kubelet." });
      scope.spawn("node object", (signal) => informer.run(signal));
      scope.spawn("node status", (signal) => keepNode(context, { network, record, agent, cluster }, signal));
      scope.spawn("node lease", async (signal) => {
        // It belongs to the node's object; begun before that is there, it would come a period late.
        await record.whenKnown(signal);
        await nodeLease(context, record).run(signal);
      });
      const csi = { client: clients.main, node: (signal: AbortSignal) => record.whenKnown(signal), clock, log };
      scope.spawn("CSINode", (signal) => ensureCsiNode(csi, signal));
      if (context.config.makeIPTablesUtilChains) {
        scope.spawn("iptables", (signal) => keepIptables({ host: context.host, clock, log }, signal));
      }
      const cidr = new PodCidr({ runtime: context.runtime, view: record, clock, log });
      scope.spawn("pod range", (signal) => cidr.run(signal));
    },
  };
}

/** The longest wait before what the node is is read once more, in milliseconds. */
const profileRetryMs = 10_000;

/** What the node's status is made of besides the context. */
interface NodeParts {
  readonly network: NodeNetwork;
  readonly record: NodeRecord;
  readonly agent: ServedAgent;
  readonly cluster: ClusterParts;
}

/** Registers the node, unless others do, and keeps its status. */
async function keepNode(
  context: ClusterContext,
  parts: NodeParts,
  signal: AbortSignal,
): Promise<void> {
  const { record } = parts;
  const { clients, config, clock, random, log, events, startup } = context;
  const profile = await profileWhenReadable(context, signal);
  const watcher = nodeWatcher(context, profile, parts);
  const situation = (s: AbortSignal) => watcher.situation(s);
  if (config.registerNode) {
    const meter = startup ? { meter: startup } : {};
    record.note(await registerNode({ client: clients.main, profile, situation, clock, log, events, ...meter }, signal));
  } else await record.whenKnown(signal);
  const keeper = new NodeStatusKeeper({
    client: clients.heartbeat,
    profile,
    record,
    situation,
    urgency: () => watcher.urgency(),
    lookMs: config.nodeStatusUpdateFrequencyMs,
    reportMs: config.nodeStatusReportFrequencyMs,
    clock,
    random,
    log,
    events,
    onKnown: (node) => {
      if (isReady(node)) startup?.ready();
    },
  });
  await keeper.run(signal);
}

/** A disk that does not answer for a while must not cost the node its status. */
async function profileWhenReadable(context: ClusterContext, signal: AbortSignal): Promise<NodeProfile> {
  const { clock, log } = context;
  for (let ms = 1000;; ms = Math.min(ms * 2, profileRetryMs)) {
    try {
      return await nodeProfile(context);
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      log.error("what the node is cannot be read; it is not told yet", { error: messageOf(thrown) });
      await clock.sleep(ms, signal);
    }
  }
}

function isReady({ status }: Node): boolean {
  return status?.conditions?.some((one) => one.type === "Ready" && one.status === "True") ?? false;
}

function nodeWatcher(context: ClusterContext, profile: NodeProfile, parts: NodeParts): NodeWatcher {
  const { network, agent, cluster } = parts;
  const { config, runtime, images, runtimeName, clock, log, host } = context;
  const resolver = new NameResolver({ name: profile.name, lookup: network.lookup, clock, log });
  return new NodeWatcher({
    runtime,
    images,
    runtimeName,
    maxImages: config.nodeStatusMaxImages,
    troubles: () => [...agent.readiness.troubles, ...cluster.nodeTroubles?.() ?? []],
    volumesInUse: () => cluster.volumesInUse?.(),
    devices: () => context.devices?.resources(),
    pressure: () => agent.pressure,
    handlers: () => agent.readiness.handlers,
    features: () => agent.readiness.features,
    addresses: async (signal): Promise<AddressResult> => {
      const { nodeIPs, externalCloud, name: hostname } = profile;
      const asked = { nodeIPs, externalCloud, hostname };
      return statusAddresses({
        ...asked,
        interfaces: network.interfaces(),
        // A node without IPv4 routes has no such table.
        routes: await host.readText(`${host.procRoot}/net/route`).catch(() => ""),
        resolved: needsResolver(asked) ? await resolver.addresses(signal) : [],
      });
    },
    clock,
    log,
  });
}

function nodeLease(context: ClusterContext, record: NodeRecord): NodeLease {
  const { clients, config, nodeName, clock, random, log } = context;
  return new NodeLease({
    client: clients.heartbeat,
    nodeName,
    durationSeconds: config.nodeLeaseDurationSeconds,
    nodeUid: async (signal) => {
      if (record.node) return record.node.metadata?.uid;
      try {
        return (await clients.main.get(resources.nodes, { name: nodeName }, { signal })).metadata?.uid;
      } catch (thrown) {
        if (isApiNotFound(thrown)) return undefined;
        throw thrown;
      }
    },
    clock,
    random,
    log,
  });
}
