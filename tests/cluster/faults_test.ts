import assert from "@assert";
import { systemClock } from "../../mod/base/clock.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import type { Secret } from "../../mod/kube/types.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import type { SeenPod } from "../../scripts/node/pods.ts";
import { box, pod } from "../node/support.ts";
import { FaultProxy, type ProxiedCall, type ProxyFault } from "./fault_proxy.ts";
import { type ClusterNode, withClusterNode } from "./harness.ts";
import { ClusterView, patience } from "./support.ts";

const { signal } = new AbortController();
const namespace = "default";

/** A failure as API servers tell it. */
function failure(code: number, reason: string, headers: Record<string, string> = {}): ProxyFault {
  const body = { kind: "Status", apiVersion: "v1", status: "Failure", code, reason, message: `${reason}, as wished` };
  return { kind: "answer", status: code, body: JSON.stringify(body), headers };
}

const text = (status: number, body: string, type = "text/html"): ProxyFault => ({
  kind: "answer",
  status,
  body,
  headers: { "content-type": type },
});

/** The fault for each so-manieth request, each of them in turn. */
function each(count: number, ...faults: ProxyFault[]): (call: ProxiedCall) => ProxyFault | undefined {
  return ({ number }) => number % count === 0 ? faults[(number / count) % faults.length] : undefined;
}

const expired = failure(410, "Expired");
const expiredEvent: ProxyFault = {
  kind: "answer",
  status: 200,
  body: `${
    JSON.stringify({ type: "ERROR", object: { kind: "Status", status: "Failure", code: 410, reason: "Expired" } })
  }\n`,
};

/** Servers with which pods come and go all the same. */
const awkward: Readonly<Record<string, (call: ProxiedCall) => ProxyFault | undefined>> = {
  "each third request is put off": each(3, failure(429, "TooManyRequests", { "retry-after": "1" })),
  "each third request fails, in one way or another": each(
    3,
    failure(500, "InternalError"),
    failure(429, "TooManyRequests"),
    text(503, "<html>no backend</html>"),
    failure(504, "Timeout"),
    failure(410, "Gone"),
    failure(403, "Forbidden"),
  ),
  "each answer comes late": () => ({ kind: "slow", ms: 700 }),
  "watches end or break within their lines": (call) =>
    call.watch ? { kind: call.nth % 2 === 0 ? "short" : "broken", bytes: 12_345 } : undefined,
  "versions to watch from have expired": (call) =>
    call.watch && call.nth % 3 !== 0 ? call.nth % 3 === 1 ? expired : expiredEvent : undefined,
  "each second write is done and its answer lost": ({ method, number }) =>
    method !== "GET" && number % 2 === 0 ? { kind: "broken", bytes: 0 } : undefined,
  "each third answer is nonsense": each(
    3,
    text(200, "<html>log in first</html>"),
    text(200, "", "application/json"),
    text(200, "{}", "application/json"),
    text(200, '{"kind":"Status","status":"Failure","code":500}', "application/json"),
    text(
      200,
      '{"kind":"PodList","apiVersion":"v1","items":null,"metadata":{"resourceVersion":"1"}',
      "application/json",
    ),
    text(204, "", "application/json"),
  ),
};

/** Servers with which nothing works. */
const useless: Readonly<Record<string, (call: ProxiedCall) => ProxyFault | undefined>> = {
  "500 to everything": () => failure(500, "InternalError"),
  "401 to everything": () => failure(401, "Unauthorized"),
  "404 to everything": () => text(404, "404 page not found\n", "text/plain"),
};

Deno.test("a real API server in trouble", async (t) => {
  const config = { nodeStatusUpdateFrequency: "2s", nodeLeaseDurationSeconds: 8 };
  await withClusterNode({ name: "faults", config, start: false }, async (member) => {
    const { plane, agent, nodeName } = member;
    using proxy = await FaultProxy.start(plane, nodeName);
    await plane.nodeKubeconfig(nodeName, proxy.server);
    agent.start();
    await agent.healthy(patience);
    const scene = new Scene(member);
    await scene.view.nodeCondition("Ready", "True");
    await scene.begin();
    for (const [name, choose] of Object.entries(awkward)) {
      await t.step(name, async () => {
        proxy.set(choose);
        await waitFor("requests to be spoilt", () => proxy.spoilt >= 2, { within: patience });
        await scene.step();
        proxy.set(() => undefined);
      });
    }
    for (const [name, choose] of Object.entries(useless)) {
      await t.step(name, async () => {
        proxy.set(choose);
        await scene.change();
        await systemClock.sleep(3000);
        await scene.undisturbed();
        assert(proxy.spoilt > 0);
        proxy.set(() => undefined);
        await scene.settled();
      });
    }
  });
});

/** A node on which a pod of the API and a static one stay, and others come and go. */
class Scene {
  readonly view: ClusterView;
  readonly #member: ClusterNode;
  #before = new Map<string, SeenPod>();
  /** How many pods have come. */
  #count = 0;

  constructor(member: ClusterNode) {
    this.#member = member;
    this.view = new ClusterView(member);
  }

  async begin(): Promise<void> {
    const { admin, agent, nodeName } = this.#member;
    const secret: Secret = { metadata: { name: "s", namespace }, stringData: { word: "0" } };
    await admin.create(resources.secrets, secret, { signal });
    await this.view.createPod("steady", {
      volumes: [{ name: "s", secret: { secretName: "s" } }],
      containers: [box("main", { volumeMounts: [{ name: "s", mountPath: "/s" }] })],
    });
    await agent.putManifest("still.json", pod("still", { containers: [box("main")] }));
    await this.view.ready("steady");
    await this.view.ready(`still-${nodeName}`);
    for (const one of await agent.pods()) this.#before.set(one.name, one);
    await this.change();
    await this.settled();
  }

  async step(): Promise<void> {
    await this.change();
    await this.settled();
  }

  /** A pod is made, the one before it deleted; so with static pods; and the Secret is another. */
  async change(): Promise<void> {
    const { admin, agent, nodeName } = this.#member;
    const n = ++this.#count;
    const patch = { data: { word: btoa(`${n}`) } };
    await admin.patch(resources.secrets, { namespace, name: "s" }, patch, { type: "merge", signal });
    await this.view.createPod(`pod-${n}`, {
      nodeName,
      containers: [box("main", { env: [{ name: "W", valueFrom: { secretKeyRef: { name: "s", key: "word" } } }] })],
    });
    await agent.putManifest(`static-${n}.json`, pod(`static-${n}`, { containers: [box("main")] }));
    if (n === 1) return;
    await this.view.deletePod(`pod-${n - 1}`);
    await agent.removeManifest(`static-${n - 1}.json`);
  }

  /** All that was wished is so, on both sides, and nothing else is. */
  async settled(): Promise<void> {
    const { agent, admin, nodeName } = this.#member;
    const n = this.#count;
    const expected = [`pod-${n}`, `static-${n}-${nodeName}`, "steady", `still-${nodeName}`].sort();
    for (const name of expected) await this.view.ready(name);
    for (const name of [`pod-${n - 1}`, `static-${n - 1}-${nodeName}`]) await this.view.gone(name);
    await agent.until("the pods that are wanted, and no other", (pods) => {
      return pods.map(({ name }) => name).join() === expected.join();
    }, patience);
    const { items } = await admin.list(resources.pods, { namespace, signal });
    assert.deepEqual(items.map(({ metadata }) => metadata?.name).sort(), expected);
    const uid = this.#before.get("steady")?.uid;
    const file = `${agent.paths.kubelet}/pods/${uid}/volumes/kubernetes.io~secret/s/word`;
    await waitFor("the Secret in the pod", async () => await Deno.readTextFile(file) === `${n}`, { within: patience });
    await this.view.nodeCondition("Ready", "True");
    await this.undisturbed();
  }

  /** The pods that stay are as they were. */
  async undisturbed(): Promise<void> {
    const seen = await this.#member.agent.pods();
    for (const [name, before] of this.#before) {
      assert.deepEqual(seen.find((one) => one.name === name), before);
      const status = (await this.view.pod(name))?.status?.containerStatuses?.[0];
      assert.deepEqual([status?.restartCount, status?.ready], [0, true], name);
    }
  }
}
