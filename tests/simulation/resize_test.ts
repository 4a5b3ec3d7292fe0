import assert from "@assert";
import type { ResourceRequirements } from "../../mod/kube/types.ts";
import { ClusterScene, container } from "./cluster_scene.ts";

const sized = (name: string, cpu: string, memory: string, rest = {}) => {
  const list = { cpu, memory };
  return container(name, [{}], { resources: { requests: list, limits: list }, ...rest });
};

function give(scene: ClusterScene, pod: string, resources: ResourceRequirements): void {
  scene.edit(pod, (spec) => ({ ...spec, containers: spec.containers.map((c) => ({ ...c, resources })) }));
}

/** What the kernel has of the pod's group. */
function group(scene: ClusterScene, uid: string) {
  const { host } = scene.world;
  const read = (controller: string, file: string) =>
    host.text(`${host.cgroupRoot}/${controller}/kubepods/pod${uid}/${controller}.${file}`)?.trim();
  return [read("cpu", "shares"), read("cpu", "cfs_quota_us"), read("memory", "limit_in_bytes")];
}

/** The container's group, as a runtime makes it, with this much memory in use. */
async function inUse(scene: ClusterScene, uid: string, bytes: number): Promise<void> {
  const { host, runtime } = scene.world;
  const id = runtime.snapshot().containers.find((c) => c.uid === uid && c.state === "running")?.id;
  const path = `${host.cgroupRoot}/memory/kubepods/pod${uid}/${id}`;
  await host.mkdir(path);
  host.put(`${path}/memory.usage_in_bytes`, `${bytes}\n`);
}

const reasons = (scene: ClusterScene) =>
  scene.events.events.filter((e) => e.reason.startsWith("Resize")).map((e) => e.reason);
const resizeConditions = (scene: ClusterScene, name: string) =>
  (scene.pod(name)?.status?.conditions ?? []).filter((c) => c.type.startsWith("PodResize"));

Deno.test("a running container gets more, and less, without a restart; the status and events tell of it", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  const uid = scene.create("web", { containers: [sized("c", "500m", "64Mi")] }).metadata?.uid ?? "";
  await scene.advance(2000);
  assert.deepEqual(group(scene, uid), ["512", "50000", String(64 * 2 ** 20)]);
  const more = { cpu: "1", memory: "128Mi" };
  give(scene, "web", { requests: more, limits: more });
  await scene.advance(2000);
  assert.deepEqual(scene.running("web"), ["c#0"]);
  assert.deepEqual(group(scene, uid), ["1024", "100000", String(128 * 2 ** 20)]);
  const [status] = scene.pod("web")?.status?.containerStatuses ?? [];
  assert.deepEqual([status?.restartCount, status?.allocatedResources, status?.resources], [
    0,
    more,
    { requests: more, limits: more },
  ]);
  assert.deepEqual(resizeConditions(scene, "web"), []);
  assert.deepEqual(reasons(scene), ["ResizeStarted", "ResizeCompleted"]);
  assert.equal(
    scene.events.events.find((e) => e.reason === "ResizeStarted")?.message,
    'Pod resize started: {"containers":[{"name":"c","resources":{"limits":{"cpu":"1","memory":"128Mi"},' +
      '"requests":{"cpu":"1","memory":"128Mi"}}}],"generation":2}',
  );
  await inUse(scene, uid, 4096);
  const less = { cpu: "250m", memory: "32Mi" };
  give(scene, "web", { requests: less, limits: less });
  await scene.advance(2000);
  assert.deepEqual(group(scene, uid), ["256", "25000", String(32 * 2 ** 20)]);
  assert.deepEqual(scene.running("web"), ["c#0"]);
  assert.deepEqual(reasons(scene).slice(2), ["ResizeStarted", "ResizeCompleted"]);
  // An agent that starts anew finds all as it should be.
  await scene.restart();
  await scene.advance(5000);
  assert.deepEqual(scene.running("web"), ["c#0"]);
  assert.equal(reasons(scene).length, 4);
  scene.delete("web");
  await scene.advance(40_000);
  assert.deepEqual(scene.left(uid), []);
});

Deno.test("a memory limit below what is used is refused until less is used; CPU waits with it", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  const uid = scene.create("web", { containers: [sized("c", "500m", "64Mi")] }).metadata?.uid ?? "";
  await scene.advance(2000);
  await inUse(scene, uid, 40 * 2 ** 20);
  const less = { cpu: "250m", memory: "32Mi" };
  give(scene, "web", { requests: less, limits: less });
  await scene.advance(3000);
  const [progress] = resizeConditions(scene, "web");
  assert.deepEqual([progress?.type, progress?.reason, progress?.observedGeneration], [
    "PodResizeInProgress",
    "Error",
    2,
  ]);
  assert.equal(
    progress?.message,
    `cannot decrease memory limits: attempting to set container "c" memory limit (${32 * 2 ** 20}) below current ` +
      `usage (${40 * 2 ** 20})`,
  );
  assert.deepEqual(group(scene, uid), ["512", "50000", String(64 * 2 ** 20)]);
  const [status] = scene.pod("web")?.status?.containerStatuses ?? [];
  assert.deepEqual([status?.allocatedResources?.memory, status?.resources?.limits?.memory], ["32Mi", "64Mi"]);
  await scene.advance(60_000);
  assert.deepEqual(reasons(scene), ["ResizeStarted", "ResizeError"]);
  await inUse(scene, uid, 4096);
  await scene.advance(30_000);
  assert.deepEqual(group(scene, uid), ["256", "25000", String(32 * 2 ** 20)]);
  assert.deepEqual(resizeConditions(scene, "web"), []);
  assert.equal(reasons(scene).at(-1), "ResizeCompleted");
});

Deno.test("what does not fit waits, counts for nothing, and has its turn when there is room", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  scene.create("big", { containers: [sized("c", "3", "64Mi")] });
  scene.create("web", { containers: [sized("c", "500m", "64Mi")] });
  await scene.advance(2000);
  const more = { cpu: "2", memory: "64Mi" };
  give(scene, "web", { requests: more, limits: more });
  await scene.advance(2000);
  const [pending] = resizeConditions(scene, "web");
  assert.deepEqual([pending?.type, pending?.status, pending?.reason, pending?.observedGeneration], [
    "PodResizePending",
    "True",
    "Deferred",
    2,
  ]);
  assert.equal(
    pending?.message,
    "Node didn't have enough resource: cpu, requested: 2000, used: 3000, capacity: 4000",
  );
  assert.equal(scene.pod("web")?.status?.containerStatuses?.[0]?.allocatedResources?.cpu, "500m");
  assert.deepEqual(reasons(scene), ["ResizeDeferred"]);
  // It counts with what it has: another pod still finds its place.
  scene.create("small", { containers: [sized("c", "500m", "8Mi")] });
  await scene.advance(2000);
  assert.deepEqual(scene.running("small"), ["c#0"]);
  // An agent that starts anew keeps the pod as it is, and the resize waiting.
  await scene.restart();
  await scene.advance(3000);
  assert.deepEqual([resizeConditions(scene, "web")[0]?.reason, scene.running("web")], ["Deferred", ["c#0"]]);
  scene.delete("big");
  await scene.advance(40_000);
  assert.deepEqual(resizeConditions(scene, "web"), []);
  assert.equal(scene.pod("web")?.status?.containerStatuses?.[0]?.resources?.limits?.cpu, "2");
  assert.deepEqual(scene.running("web"), ["c#0"]);
  assert.deepEqual(reasons(scene), ["ResizeDeferred", "ResizeStarted", "ResizeCompleted"]);
});

Deno.test("a container whose policy says so is restarted for its new memory, the other one is not", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  const resizePolicy = [{ resourceName: "memory", restartPolicy: "RestartContainer" }];
  const uid =
    scene.create("web", { containers: [sized("c", "500m", "64Mi", { resizePolicy }), sized("d", "500m", "64Mi")] })
      .metadata?.uid ?? "";
  await scene.advance(2000);
  const more = { cpu: "500m", memory: "128Mi" };
  give(scene, "web", { requests: more, limits: more });
  await scene.advance(60_000);
  assert.deepEqual(scene.running("web"), ["c#1", "d#0"]);
  assert.equal(group(scene, uid)[2], String(256 * 2 ** 20));
  const killing = scene.events.events.find((e) => e.reason === "Killing");
  assert.equal(killing?.message, "Container c resize requires restart");
  assert.deepEqual(
    scene.pod("web")?.status?.containerStatuses?.map((s) => [s.restartCount, s.resources?.limits?.memory]),
    [
      [1, "128Mi"],
      [0, "128Mi"],
    ],
  );
  assert.deepEqual(reasons(scene), ["ResizeStarted", "ResizeCompleted"]);
});

Deno.test("a sidecar, and an init container that runs, are resized beside the others", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  const small = { requests: { cpu: "100m" }, limits: { cpu: "100m" } };
  const large = { requests: { cpu: "200m" }, limits: { cpu: "200m" } };
  scene.create("web", {
    initContainers: [
      container("side", [{}], { restartPolicy: "Always", resources: small }),
      container("init", [{ ms: 20_000, code: 0 }], { resources: small }),
    ],
    containers: [container("c", [{}], { resources: small })],
  });
  await scene.advance(5000);
  assert.deepEqual(scene.running("web"), ["init#0", "side#0"]);
  scene.edit("web", (spec) => ({
    ...spec,
    initContainers: (spec.initContainers ?? []).map((c) => ({ ...c, resources: large })),
    containers: spec.containers.map((c) => ({ ...c, resources: large })),
  }));
  await scene.advance(3000);
  const quotas = () =>
    scene.world.runtime.snapshot().containers.length > 0 &&
    (scene.pod("web")?.status?.initContainerStatuses ?? []).map((s) => s.resources?.limits?.cpu);
  assert.deepEqual(quotas(), ["200m", "200m"]);
  await scene.advance(30_000);
  assert.deepEqual(scene.running("web"), ["c#0", "side#0"]);
  assert.equal(scene.pod("web")?.status?.containerStatuses?.[0]?.resources?.limits?.cpu, "200m");
  assert.deepEqual(reasons(scene), ["ResizeStarted", "ResizeCompleted"]);
});

Deno.test("an agent that is killed while it resizes: the next one ends it, and no container restarts", async () => {
  for (const afterMs of [0, 1, 2, 5, 10, 100, 1000]) {
    await using scene = new ClusterScene();
    await scene.start();
    const uid = scene.create("web", { containers: [sized("c", "500m", "64Mi")] }).metadata?.uid ?? "";
    await scene.advance(2000);
    const more = { cpu: "1", memory: "128Mi" };
    give(scene, "web", { requests: more, limits: more });
    await scene.advance(afterMs);
    await scene.restart();
    await scene.advance(5000);
    assert.deepEqual(scene.running("web"), ["c#0"], `killed after ${afterMs} ms`);
    assert.deepEqual(group(scene, uid), ["1024", "100000", String(128 * 2 ** 20)], `killed after ${afterMs} ms`);
    assert.deepEqual(resizeConditions(scene, "web"), [], `killed after ${afterMs} ms`);
  }
});
