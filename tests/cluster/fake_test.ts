import assert from "@assert";
import { systemClock } from "../../mod/base/clock.ts";
import { FakeApi } from "../../mod/kube/api/fake/fake_api.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import { type ApiClient, ApiError, type PatchOptions } from "../../mod/kube/api/types.ts";
import type { Event, Lease, Node, Pod, PodSpec } from "../../mod/kube/types.ts";
import { withCluster } from "./harness.ts";

/** What both servers are asked: the answers must be the same. */
type Scene = (api: ApiClient, told: (what: string, answer: unknown) => void) => Promise<void>;

const { signal } = new AbortController();
const namespace = "default";
const at = (name: string) => ({ namespace, name });

const pod = (name: string, spec: Partial<PodSpec> = {}, metadata: Pod["metadata"] = {}): Pod => ({
  metadata: { name, namespace, ...metadata },
  spec: {
    automountServiceAccountToken: false,
    nodeName: "nowhere",
    containers: [{ name: "a", image: "i:1" }, { name: "b", image: "i:1" }],
    ...spec,
  },
});

/** The answer, or what the failure is known by. */
async function outcome<T>(call: Promise<T>): Promise<T | string> {
  try {
    return await call;
  } catch (thrown) {
    if (thrown instanceof ApiError) return `${thrown.status} ${thrown.reason}`;
    throw thrown;
  }
}

const patch = (
  api: ApiClient,
  name: string,
  body: unknown,
  more: Partial<Pick<PatchOptions, "type" | "subresource">> = {},
) => outcome(api.patch(resources.pods, at(name), body, { type: "strategic-merge", signal, ...more }));

/** Of a pod what does not differ from one server to the next. */
function essence(answer: Pod | string): unknown {
  if (typeof answer === "string") return answer;
  const { metadata, spec, status } = answer;
  const { labels, annotations, finalizers, generation, deletionGracePeriodSeconds } = metadata ?? {};
  return {
    labels,
    annotations,
    finalizers,
    generation,
    deletionGracePeriodSeconds,
    containers: spec?.containers.map(({ name, image }) => `${name} ${image}`),
    ephemeral: spec?.ephemeralContainers?.map(({ name }) => name),
    deadline: spec?.activeDeadlineSeconds,
    grace: spec?.terminationGracePeriodSeconds,
    restartPolicy: spec?.restartPolicy,
    phase: status?.phase,
    reason: status?.reason,
    conditions: status?.conditions?.map(({ type, status }) => `${type}=${status}`),
    podIPs: status?.podIPs?.map(({ ip }) => ip),
    containerStatuses: status?.containerStatuses?.map(({ name }) => name),
  };
}

/** Admission marks a new node as not ready, which is not part of the server in memory. */
const taints = (spec: Node["spec"]) =>
  (spec?.taints ?? []).map(({ key }) => key).filter((key) => key !== "node.kubernetes.io/not-ready");

const condition = (type: string, status: string) => ({ type, status });

const scenes: Record<string, Scene> = {
  "a pod is created: its status is the server's": async (api, told) => {
    const made = await outcome(
      api.create(resources.pods, { ...pod("made"), status: { phase: "Running", reason: "x" } }, { signal }),
    );
    told("created", essence(made));
    told("again", await outcome(api.create(resources.pods, pod("made"), { signal })));
    told(
      "without a name",
      await outcome(api.create(resources.pods, { metadata: { namespace }, spec: pod("x").spec! }, { signal })),
    );
  },
  "statuses: conditions and addresses by their keys, container statuses whole, orders": async (api, told) => {
    await api.create(resources.pods, pod("status"), { signal });
    const status = async (what: string, body: object) =>
      told(what, essence(await patch(api, "status", { status: body }, { subresource: "status" })));
    await status("first", {
      phase: "Running",
      conditions: [condition("A", "True"), condition("B", "True")],
      podIPs: [{ ip: "10.0.0.1" }],
    });
    await status("one of them", { conditions: [condition("B", "False"), condition("C", "True")], reason: "r" });
    await status("an order", {
      "$setElementOrder/conditions": [{ type: "C" }, { type: "B" }, { type: "A" }],
      conditions: [condition("A", "False")],
    });
    await status("removed", { conditions: [{ $patch: "delete", type: "B" }], reason: null });
    await status("another address", { podIPs: [{ ip: "10.0.0.2" }] });
    await status("addresses replaced", { podIPs: [{ $patch: "replace" }, { ip: "10.0.0.3" }] });
    const container = (name: string) => ({
      name,
      image: "i",
      imageID: "",
      ready: false,
      restartCount: 0,
      state: { waiting: { reason: "x" } },
    });
    await status("containers", { containerStatuses: [container("a"), container("b")] });
    await status("fewer", { containerStatuses: [container("b")] });
    told(
      "the spec through the status",
      essence(await patch(api, "status", { spec: { activeDeadlineSeconds: 5 } }, { subresource: "status" })),
    );
    told(
      "labels through the status",
      essence(await patch(api, "status", { metadata: { labels: { a: "b" } } }, { subresource: "status" })),
    );
    told(
      "another UID",
      await patch(api, "status", { metadata: { uid: "00000000-0000-4000-8000-000000000000" } }, {
        subresource: "status",
      }),
    );
    told("a member without its key", await patch(api, "status", { status: { conditions: [{ status: "True" }] } }));
  },
  "specs: images by the container's name, the status left alone, generations": async (api, told) => {
    await api.create(resources.pods, pod("spec"), { signal });
    const spec = async (what: string, body: object, more: Parameters<typeof patch>[3] = {}) =>
      told(what, essence(await patch(api, "spec", body, more)));
    await spec("an image", { spec: { containers: [{ name: "b", image: "i:2" }] } });
    await spec("nothing", { spec: { containers: [{ name: "b", image: "i:2" }] } });
    await spec("a deadline, and a status", { spec: { activeDeadlineSeconds: 60 }, status: { phase: "Failed" } });
    await spec("merge", { metadata: { annotations: { x: "y" } } }, { type: "merge" });
    await spec("operations", [{ op: "replace", path: "/metadata/annotations/x", value: "z" }], { type: "json" });
    const ephemeral = { name: "debug", image: "i", terminationMessagePolicy: "File", imagePullPolicy: "Always" };
    await spec("an ephemeral container", { spec: { ephemeralContainers: [ephemeral] } }, {
      subresource: "ephemeralcontainers",
    });
    told("a pod that is not there", await patch(api, "none", {}));
  },
  "deletion: grace, shorter grace, finalizers, UIDs": async (api, told) => {
    const made = await api.create(resources.pods, pod("gone", {}, { finalizers: ["x.example/y"] }), { signal });
    const remove = async (what: string, more: object) => {
      const answer = await outcome(api.delete(resources.pods, at("gone"), { signal, ...more }));
      told(what, answer ?? "deleted");
      told(`${what}: seen`, essence(await outcome(api.get(resources.pods, at("gone"), { signal }))));
    };
    await remove("another UID", { uid: "00000000-0000-4000-8000-000000000000" });
    await remove("with the pod's grace", { uid: made.metadata?.uid });
    await remove("a longer grace", { gracePeriodSeconds: 100 });
    await remove("a shorter grace", { gracePeriodSeconds: 5 });
    await remove("no grace", { gracePeriodSeconds: 0 });
    told("the last finalizer", essence(await patch(api, "gone", { metadata: { finalizers: null } })));
    await remove("what is gone", {});
    await api.create(resources.pods, pod("free", { nodeName: "" }), { signal });
    await api.delete(resources.pods, at("free"), { signal });
    told("a pod without a node", await outcome(api.get(resources.pods, at("free"), { signal })));
    await api.create(resources.pods, pod("ended"), { signal });
    await patch(api, "ended", { status: { phase: "Succeeded" } }, { subresource: "status" });
    await api.delete(resources.pods, at("ended"), { signal });
    told("a pod that has ended", await outcome(api.get(resources.pods, at("ended"), { signal })));
    await api.create(resources.pods, pod("negative", { terminationGracePeriodSeconds: -5 }), { signal });
    await api.delete(resources.pods, at("negative"), { signal });
    told("a negative grace", essence(await outcome(api.get(resources.pods, at("negative"), { signal }))));
  },
  "nodes and leases": async (api, told) => {
    const node: Node = {
      metadata: { name: "fake-1", labels: { a: "b" } },
      status: { capacity: { cpu: "1" }, conditions: [{ type: "Ready", status: "False" } as never] },
    };
    const made = await api.create(resources.nodes, node, { signal });
    told("a node's first status is kept", [made.status?.capacity, made.metadata?.generation]);
    const change = async (what: string, body: unknown, subresource?: string) => {
      const { metadata, spec, status } = await api.patch(resources.nodes, { name: "fake-1" }, body, {
        type: "strategic-merge",
        signal,
        ...(subresource ? { subresource } : {}),
      });
      const addresses = status?.addresses?.map(({ type, address }) => `${type} ${address}`);
      told(what, [
        metadata?.labels,
        spec?.providerID,
        status?.capacity,
        addresses,
        taints(spec),
      ]);
    };
    await change("status", { status: { addresses: [{ type: "InternalIP", address: "1.1.1.1" }] } }, "status");
    await change("status, one more", { status: { addresses: [{ type: "Hostname", address: "h" }] } }, "status");
    await change("labels by status", { metadata: { labels: { c: "d" } }, spec: { providerID: "p" } }, "status");
    await change("status by the object", { status: { capacity: { cpu: "9" } }, spec: { providerID: "p" } });
    await change("taints", { spec: { taints: [{ key: "x", effect: "NoSchedule" }] } });
    await change("other taints", { spec: { taints: [{ key: "y", effect: "NoSchedule" }] } });
    const lease: Lease = { metadata: at("lease"), spec: { holderIdentity: "a" } };
    const held = await api.create(resources.leases, lease, { signal });
    const replace = (body: Lease) => outcome(api.replace(resources.leases, body, { signal }));
    told("a lease without its version", await replace(lease));
    const next = await replace({ ...held, spec: { holderIdentity: "b" } });
    told("a lease", typeof next === "string" ? next : next.spec?.holderIdentity);
    told("a lease that is stale", await replace({ ...held, spec: { holderIdentity: "c" } }));
    told("another UID", await replace({ ...held, metadata: { ...held.metadata, resourceVersion: "", uid: "u" } }));
  },
  "events are counted by patches": async (api, told) => {
    const event: Event = {
      metadata: at("event.1"),
      involvedObject: { kind: "Pod", namespace, name: "x" },
      reason: "r",
      count: 1,
      reportingComponent: "",
      reportingInstance: "",
    };
    await api.create(resources.events, event, { signal });
    const next = await api.patch(resources.events, at("event.1"), { count: 2, message: "m" }, {
      type: "strategic-merge",
      signal,
    });
    told("patched", [next.count, next.message, next.reason]);
  },
  "bindings and selectors": async (api, told) => {
    await api.create(resources.pods, pod("bound", { nodeName: "" }), { signal });
    const { resourceVersion } = await api.list(resources.pods, { namespace, signal });
    const target = { apiVersion: "v1", kind: "Node", name: "here" };
    const binding = { apiVersion: "v1", kind: "Binding", metadata: { name: "bound" }, target };
    const bind = () => outcome(api.post(resources.pods, at("bound"), "binding", binding, { signal }));
    await bind();
    const again = await bind();
    told("bound again", typeof again === "string" ? again : "bound");
    await api.delete(resources.pods, at("bound"), { signal, gracePeriodSeconds: 0 });
    const seen: string[] = [];
    const watch = api.watch(resources.pods, {
      namespace,
      fieldSelector: "spec.nodeName=here",
      resourceVersion,
      timeoutSeconds: 1,
      signal,
    });
    for await (const one of watch) if (one.type !== "BOOKMARK") seen.push(`${one.type} ${one.object.metadata?.name}`);
    told("seen by its node", seen);
    const { items } = await api.list(resources.pods, { namespace, fieldSelector: "spec.nodeName=here", signal });
    told("listed", items.length);
  },
};

/** What a server answers in a scene, in order. */
async function answers(api: ApiClient, scene: Scene): Promise<[string, unknown][]> {
  const all: [string, unknown][] = [];
  // As it goes over the wire: what is undefined is not there.
  await scene(api, (what, answer) => all.push([what, JSON.parse(JSON.stringify(answer))]));
  return all;
}

Deno.test("the API server in memory answers as the real one does", async (t) => {
  await withCluster({ name: "fake", controllers: false }, async ({ admin }) => {
    await admin.create(resources.serviceAccounts, { metadata: at("default") }, { signal });
    const fake = new FakeApi({ clock: systemClock }).client();
    for (const [name, scene] of Object.entries(scenes)) {
      await t.step(name, async () => {
        assert.deepEqual(await answers(fake, scene), await answers(admin, scene));
      });
    }
  });
});
