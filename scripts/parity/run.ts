import { systemClock } from "../../mod/base/clock.ts";
import { messageOf } from "../../mod/base/errors.ts";
import { Scope } from "../../mod/base/scope.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import { type ApiClient, isApiNotFound } from "../../mod/kube/api/types.ts";
import type { Event, Pod } from "../../mod/kube/types.ts";
import type { ControlPlane } from "../cluster/control_plane.ts";
import { waitFor } from "../lib/wait.ts";
import type { AgentNode } from "../node/agent_node.ts";
import { eventTree } from "./events.ts";
import { families } from "./pages.ts";
import { type Json, plain } from "./plain.ts";
import type { Hands, Scenario } from "./scenario.ts";
import { PodWatch } from "./watch.ts";

/** Where and how the pods are run. */
export interface RunOptions {
  readonly plane: ControlPlane;
  readonly admin: ApiClient;
  /** An agent, either one, that was started. */
  readonly agent: AgentNode;
  readonly nodeName: string;
  readonly scenarios: readonly Scenario[];
  /** Milliseconds that each step has. */
  readonly withinMs: number;
  readonly log: (line: string) => void;
}

const signal = new AbortController().signal;
const restMs = 2500;
const podsPath = "/api/v1/namespaces/default/pods";

/** Runs the pods on whichever agent serves the node; what was seen of them, of the node, and on its pages. */
export async function runPods(options: RunOptions): Promise<Json> {
  const { plane, admin, nodeName, log, withinMs } = options;
  const scope = new Scope("parity");
  try {
    const watch = new PodWatch(admin, scope, log);
    await waitFor("the node to be ready", async () => {
      const { status, spec } = await admin.get(resources.nodes, { name: nodeName }, { signal });
      const ready = status?.conditions?.some(({ type, status }) => type === "Ready" && status === "True");
      return ready && !spec?.taints?.length;
    }, { within: withinMs });
    const pods = await compared(options, watch);
    log("pages and objects of the node");
    await measured(plane, nodeName);
    const pages = await nodePages(plane, nodeName);
    const tree: Json = {
      pods,
      node: plain(await admin.get(resources.nodes, { name: nodeName }, { signal }), { addresses: true }),
      lease: plain(await admin.get(resources.leases, { namespace: "kube-node-lease", name: nodeName }, { signal })),
      events: eventTree(await nodeEvents(admin)),
      pages,
    };
    await drained(options, watch);
    return tree;
  } finally {
    await scope.close();
  }
}

/** Creates the pods one by one, takes them through their steps side by side, and tells how each looked. */
async function compared(options: RunOptions, watch: PodWatch): Promise<Json> {
  const { agent, admin, scenarios, nodeName, log, withinMs } = options;
  const out: { [key: string]: Json } = {};
  const lives: Promise<void>[] = [];
  for (const { name, pod, steps, static: manifest } of scenarios) {
    if (manifest) await agent.putManifest(`${name}.json`, pod);
    else await create(admin, pod);
    const full = manifest ? `${name}-${nodeName}` : name;
    const live = async () => {
      for (const step of steps) {
        try {
          await step.act?.(hands(options, `${podsPath}/${full}`));
        } catch (thrown) {
          out[`${name}@${step.name}`] = { refused: plain(messageOf(thrown)) };
          log(`${name}: ${step.name}: ${messageOf(thrown)}`);
          return;
        }
        const { reached, seen } = await watch.until(full, step.until, { withinMs, restMs });
        if (!reached) log(`${name}: not ${step.name}: ${JSON.stringify(seen?.pod.status)}`);
        out[`${name}@${step.name}`] = { reached, ...plain(seen?.pod) as { [key: string]: Json } };
        if (!reached) return;
      }
      log(`${name} is done`);
    };
    lives.push(live());
  }
  const ends = await Promise.allSettled(lives);
  for (const end of ends) if (end.status === "rejected") throw end.reason;
  return out;
}

async function create(admin: ApiClient, pod: Pod): Promise<void> {
  // its account comes from the controller manager, a moment after the namespace
  await waitFor(
    `pod ${pod.metadata?.name} to be taken by the API server`,
    () => admin.create(resources.pods, pod, { signal }),
    { within: 30_000 },
  );
}

function hands({ plane }: RunOptions, path: string): Hands {
  return {
    path,
    async call(method, path, body, type = "application/json"): Promise<void> {
      const { status, text } = await plane.raw(path, {
        method,
        headers: { "content-type": type },
        ...(body === undefined ? {} : { body: JSON.stringify(body) }),
      });
      if (status >= 300) throw new Error(`${method} ${path}: ${status} ${text}`);
    },
  };
}

async function nodeEvents(admin: ApiClient): Promise<Event[]> {
  const { items } = await admin.list(resources.events, { signal });
  return items.filter(({ source, reportingComponent }) =>
    source?.component === "kubelet" || reportingComponent === "kubelet"
  );
}

/** How long the summary must look alike, and the longest that is waited for it, milliseconds. */
const steadyMs = 25_000, unsteadyMs = 120_000;

/**
 * Waits until the summary has the same fields for a while: the reference measures behind its answers, and tells of a
 * young container in parts.
 */
async function measured(plane: ControlPlane, nodeName: string): Promise<void> {
  let last = "", since = systemClock.now();
  const until = since + unsteadyMs;
  while (systemClock.now() < until && systemClock.now() - since < steadyMs) {
    const { status, text } = await plane.raw(`/api/v1/nodes/${nodeName}/proxy/stats/summary`);
    const fields = status === 200 ? JSON.stringify(summaryOf(text)) : "";
    if (fields !== last || fields === "") [last, since] = [fields, systemClock.now()];
    await systemClock.sleep(2000);
  }
}

async function nodePages(plane: ControlPlane, nodeName: string): Promise<Json> {
  const page = async (path: string, read: (text: string) => Json): Promise<Json> => {
    try {
      const { status, text } = await plane.raw(`/api/v1/nodes/${nodeName}/proxy${path}`);
      return status === 200 ? read(text) : { status, text: text.slice(0, 300) };
    } catch (thrown) {
      return { error: messageOf(thrown) };
    }
  };
  return {
    configz: await page("/configz", (text) => plain(JSON.parse(text), { addresses: true })),
    pods: await page("/pods", podsOf),
    summary: await page("/stats/summary", summaryOf),
    metrics: await page("/metrics", families),
    cadvisor: await page("/metrics/cadvisor", families),
    resource: await page("/metrics/resource", families),
    probes: await page("/metrics/probes", families),
    slis: await page("/metrics/slis", families),
    healthz: await page("/healthz?verbose", (text) => text),
  };
}

/** The page /pods by name, without the statuses: those of pods that come and go are compared with the API's objects. */
function podsOf(text: string): Json {
  const list = JSON.parse(text) as { readonly items?: readonly Pod[] };
  const { items = [], ...rest } = list;
  const out: { [key: string]: Json } = { list: plain(rest) };
  for (const { metadata, spec, status, ...more } of items) {
    const { managedFields: _, ...meta } = metadata ?? {};
    out[metadata?.name ?? ""] = plain({
      metadata: meta,
      spec,
      status: { fields: Object.keys(status ?? {}).sort().join(" "), phase: status?.phase },
      ...more,
    });
  }
  return out;
}

/** The shape of /stats/summary. The host's interfaces are those of other tests too, whose order is anybody's. */
function summaryOf(text: string): Json {
  const summary = JSON.parse(text) as { node: Measured; pods: (Measured & { podRef: { name: string } })[] };
  for (const one of [summary.node, ...summary.pods.filter(({ podRef }) => podRef.name === "host-network")]) {
    if (one.network?.interfaces) one.network.interfaces = one.network.interfaces.filter(({ name }) => name === "eth0");
  }
  summary.pods.sort((a, b) => a.podRef.name < b.podRef.name ? -1 : 1);
  for (const { containers } of summary.pods) containers?.sort((a, b) => a.name < b.name ? -1 : 1);
  return plain(summary, { measured: true });
}

interface Measured {
  network?: { interfaces?: { name: string }[] };
  containers?: { name: string }[];
}

/** Deletes all pods and waits until the agent has ended them. */
async function drained({ agent, admin, scenarios, nodeName, log }: RunOptions, watch: PodWatch): Promise<void> {
  log("the pods end");
  for (const { name, static: manifest } of scenarios) {
    if (manifest) await agent.removeManifest(`${name}.json`);
    else await unlessGone(admin.delete(resources.pods, { namespace: "default", name }, { signal }));
  }
  const names = scenarios.map(({ name, static: manifest }) => manifest ? `${name}-${nodeName}` : name);
  const deadline = systemClock.now() + 90_000;
  const left = () => names.filter((name) => watch.seen(name)?.deleted === false);
  while (left().length > 0 && systemClock.now() < deadline) await systemClock.sleep(500);
  if (left().length > 0) log(`not gone: ${left().join(", ")}`);
}

async function unlessGone(answer: Promise<void>): Promise<void> {
  try {
    await answer;
  } catch (thrown) {
    if (!isApiNotFound(thrown)) throw thrown;
  }
}
