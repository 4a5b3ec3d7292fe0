import assert from "@assert";
import { resources } from "../../mod/kube/api/resources.ts";
import { ApiError } from "../../mod/kube/api/types.ts";
import { configHash, configMirror, configSource } from "../../mod/kube/pod.ts";
import { statusOf } from "./cluster_expect.ts";
import { ClusterScene, container } from "./cluster_scene.ts";
import { manifestDir } from "./world.ts";

const path = `${manifestDir}/web.json`;
const manifest = (image = "registry.sim/app:1", rest: object = {}) =>
  JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "web", labels: { app: "web" } },
    spec: { containers: [container("c", [{}], { image })], ...rest },
  });
const mirror = "web-node1";

Deno.test("a static pod has its mirror on the API server, with its status, and is not disturbed by what happens to that", async () => {
  await using scene = new ClusterScene();
  scene.world.writeManifest(path, manifest());
  await scene.start();
  await scene.advance(5000);
  const uids = new Set<string | undefined>();
  const shown = () => {
    const pod = scene.pod(mirror);
    assert.deepEqual([pod?.status?.phase, scene.condition(mirror, "Ready")?.status], ["Running", "True"]);
    const { annotations = {}, ownerReferences, labels } = pod?.metadata ?? {};
    assert.equal(annotations[configMirror], annotations[configHash]);
    assert.deepEqual([annotations[configSource], labels], ["file", { app: "web" }]);
    assert.deepEqual(ownerReferences?.map((o) => [o.kind, o.name, o.controller]), [["Node", "node1", true]]);
    assert.deepEqual(scene.running(mirror), ["c#0"]);
    uids.add(pod?.metadata?.uid);
  };
  shown();
  scene.delete(mirror, 0);
  await scene.advance(3000);
  shown();
  scene.delete(mirror);
  await scene.advance(3000);
  shown();
  await scene.restart();
  await scene.advance(5000);
  shown();
  assert.equal(uids.size, 3);
});

Deno.test("an edited manifest: the mirror of the old pod goes with it, the new pod gets its own", async () => {
  await using scene = new ClusterScene();
  scene.world.writeManifest(path, manifest());
  await scene.start();
  await scene.advance(5000);
  const before = scene.pod(mirror);
  scene.world.writeManifest(path, manifest("registry.sim/app:2"));
  await scene.advance(40_000);
  const after = scene.pod(mirror);
  assert.notEqual(after?.metadata?.uid, before?.metadata?.uid);
  assert.equal(after?.spec?.containers[0]?.image, "registry.sim/app:2");
  assert.equal(statusOf(after).containerStatuses?.[0]?.image, "registry.sim/app:2");
  await scene.world.removeManifest(path);
  await scene.advance(60_000);
  assert.equal(scene.pod(mirror), undefined);
});

Deno.test("a manifest that is deleted and put back: the pod goes and comes, its restarts are counted on, its mirror stays", async () => {
  await using scene = new ClusterScene();
  scene.world.writeManifest(path, manifest());
  await scene.start();
  await scene.advance(5000);
  const before = scene.pod(mirror);
  await scene.world.removeManifest(path);
  scene.world.writeManifest(path, manifest());
  await scene.advance(60_000);
  const after = scene.pod(mirror);
  assert.equal(after?.metadata?.uid, before?.metadata?.uid);
  assert.deepEqual(scene.running(mirror), ["c#1"]);
  assert.deepEqual([after?.status?.phase, statusOf(after).containerStatuses?.[0]?.restartCount], ["Running", 1]);
  // Written over, it is the same manifest.
  scene.world.writeManifest(path, manifest());
  await scene.advance(60_000);
  assert.deepEqual(scene.running(mirror), ["c#1"]);
});

Deno.test("a mirror whose static pod went while no agent ran is deleted", async () => {
  await using scene = new ClusterScene();
  scene.world.writeManifest(path, manifest());
  await scene.start();
  await scene.advance(5000);
  assert(scene.pod(mirror));
  scene.kill();
  await scene.world.removeManifest(path);
  await scene.restart();
  await scene.advance(40_000);
  assert.equal(scene.pod(mirror), undefined);
});

Deno.test("static pods run whatever the API server does; when it comes it is told, and pods of its own follow", async () => {
  await using scene = new ClusterScene();
  scene.world.writeManifest(path, manifest());
  scene.create("own");
  scene.api.reach = "silent";
  await scene.start();
  await scene.advance(10_000);
  assert.deepEqual([scene.running(mirror), scene.running("own"), scene.pod(mirror)], [["c#0"], [], undefined]);
  scene.api.reach = "refused";
  await scene.advance(120_000);
  assert.deepEqual(scene.running(mirror), ["c#0"]);
  scene.api.reach = "up";
  await scene.advance(60_000);
  assert.equal(scene.pod(mirror)?.status?.phase, "Running");
  assert.deepEqual([scene.running("own"), scene.pod("own")?.status?.phase], [["c#0"], "Running"]);
});

Deno.test("an agent that starts while the API server is away leaves its pods running", async () => {
  await using scene = new ClusterScene();
  await scene.start();
  scene.create("own");
  await scene.advance(3000);
  scene.api.reach = "refused";
  await scene.restart();
  await scene.advance(600_000);
  assert.deepEqual(scene.running("own"), ["c#0"]);
  const from = scene.api.calls.length;
  scene.api.reach = "up";
  await scene.advance(60_000);
  assert.deepEqual([scene.running("own"), scene.pod("own")?.status?.phase], [["c#0"], "Running"]);
  assert.deepEqual(scene.writes(from), []);
});

Deno.test("what happens while the server fails is told once it works, in the end truly, whatever it answers meanwhile", async () => {
  const faults = {
    down: (s: ClusterScene) => s.api.reach = "refused",
    silent: (s: ClusterScene) => s.api.reach = "silent",
    error: (s: ClusterScene) =>
      void s.api.faults.add({ kind: "status", error: new ApiError("x", { status: 500, reason: "InternalError" }) }),
    busy: (s: ClusterScene) =>
      void s.api.faults.add({
        kind: "status",
        error: new ApiError("x", { status: 429, reason: "TooManyRequests", retryAfterMs: 1000 }),
      }),
    slow: (s: ClusterScene) => void s.api.faults.add({ kind: "slow", ms: 20_000 }),
    lost: (s: ClusterScene) => void s.api.faults.add({ kind: "lost" }),
    expired: (s: ClusterScene) => {
      s.api.compact();
      s.api.cutWatches();
    },
  };
  for (const [name, fault] of Object.entries(faults)) {
    await using scene = new ClusterScene();
    await scene.start();
    for (const pod of ["dies", "goes", "forced"]) scene.create(pod);
    await scene.advance(3000);
    const uid = scene.pod("goes")?.metadata?.uid ?? "";
    fault(scene);
    const dies = scene.world.runtime.snapshot().containers.find((c) => c.podName === "dies");
    scene.world.runtime.exitContainer(dies?.id ?? "", 3, "");
    scene.delete("goes");
    scene.delete("forced", 0);
    await scene.advance(60_000);
    assert.deepEqual(scene.running("dies"), ["c#1"], name);
    scene.api.reach = "up";
    scene.api.faults.clear();
    await scene.advance(90_000);
    assert.equal(statusOf(scene.pod("dies")).containerStatuses?.[0]?.restartCount, 1, name);
    assert.deepEqual([scene.pod("goes"), scene.left(uid), scene.running("forced")], [undefined, [], []], name);
    assert.equal(scene.api.get(resources.pods, { name: "dies", namespace: "default" }) !== undefined, true);
  }
});
