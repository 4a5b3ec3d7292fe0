import assert from "@assert";
import { resources } from "../../mod/kube/api/resources.ts";
import type { ConfigMap, Container, Secret, Service } from "../../mod/kube/types.ts";
import { ClusterScene, container } from "./cluster_scene.ts";
import { rootDir } from "./world.ts";

const at = (name: string) => ({ name, namespace: "default" });
const coded = (data: Record<string, string>) =>
  Object.fromEntries(Object.entries(data).map(([key, text]) => [key, btoa(text)]));

/** A scene with a service account, and objects that can be changed. */
async function started() {
  const scene = new ClusterScene();
  const { api } = scene;
  api.create(resources.serviceAccounts, { metadata: at("default") });
  await scene.start();
  const set = {
    secret: (name: string, data: Record<string, string>) =>
      api.get(resources.secrets, at(name))
        ? api.put<Secret>(resources.secrets, { metadata: at(name), data: coded(data) })
        : api.create<Secret>(resources.secrets, { metadata: at(name), data: coded(data) }),
    configMap: (name: string, data: Record<string, string>) =>
      api.get(resources.configMaps, at(name))
        ? api.put<ConfigMap>(resources.configMaps, { metadata: at(name), data })
        : api.create<ConfigMap>(resources.configMaps, { metadata: at(name), data }),
  };
  /** The text of a file that a pod's volume shows. */
  const shown = (uid: string, kind: string, path: string) =>
    scene.world.host.text(`${rootDir}/pods/${uid}/volumes/kubernetes.io~${kind}/${path}`);
  /** Variables of the newest container of a pod. */
  const env = async (pod: string): Promise<Record<string, string>> => {
    const id = scene.world.runtime.snapshot().containers.findLast((c) => c.podName === pod)?.id ?? "";
    const answer = scene.world.runtime.containerStatus(id, { verbose: true });
    await scene.advance(0);
    const { config } = JSON.parse((await answer).info["info"] ?? "{}");
    return Object.fromEntries((config.envs as { key: string; value: string }[]).map((e) => [e.key, e.value]));
  };
  const waiting = (pod: string) => scene.pod(pod)?.status?.containerStatuses?.[0]?.state?.waiting;
  const told = (reason: string) => scene.events.events.filter((e) => e.reason === reason).map((e) => e.message);
  return { scene, api, set, shown, env, waiting, told };
}

const mounts = (...names: string[]): Partial<Container> => ({
  volumeMounts: names.map((name) => ({ name, mountPath: `/${name}` })),
});

Deno.test("Secrets, ConfigMaps and tokens are in the pod; an update of what volumes show is there at once", async () => {
  const { scene, set, shown, env, api } = await started();
  await using _ = scene;
  set.secret("s", { password: "one" });
  set.configMap("m", { color: "red" });
  const pod = scene.create("web", {
    serviceAccountName: "default",
    containers: [
      container("c", [{}], {
        ...mounts("secret", "map", "token"),
        envFrom: [{ configMapRef: { name: "m" }, prefix: "M_" }],
        env: [{ name: "PASSWORD", valueFrom: { secretKeyRef: { name: "s", key: "password" } } }],
      }),
    ],
    volumes: [
      { name: "secret", secret: { secretName: "s" } },
      { name: "map", configMap: { name: "m" } },
      { name: "token", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } },
    ],
  });
  const uid = pod.metadata?.uid ?? "";
  await scene.advance(3000);
  assert.deepEqual(scene.running("web"), ["c#0"]);
  assert.equal(shown(uid, "secret", "secret/password"), "one");
  assert.equal(shown(uid, "configmap", "map/color"), "red");
  assert.equal(shown(uid, "projected", "token/token"), api.tokens[0]?.token);
  const variables = await env("web");
  assert.deepEqual([variables["PASSWORD"], variables["M_color"]], ["one", "red"]);
  set.secret("s", { password: "two" });
  set.configMap("m", { color: "blue", shape: "round" });
  await scene.advance(100);
  assert.equal(shown(uid, "secret", "secret/password"), "two");
  assert.equal(shown(uid, "configmap", "map/color"), "blue");
  assert.equal(shown(uid, "configmap", "map/shape"), "round");
  assert.deepEqual(scene.running("web"), ["c#0"], "no container is restarted for that");
  const requests = api.calls.filter((c) => ["secrets", "configmaps"].includes(c.resource) && c.verb === "list").length;
  assert.equal(requests, 2);
});

Deno.test("a pod waits for what it needs, is told why, and starts as soon as it comes", async () => {
  const { scene, set, waiting, told, env } = await started();
  await using _ = scene;
  scene.create("volume", {
    containers: [container("c", [{}], mounts("v"))],
    volumes: [{ name: "v", secret: { secretName: "late" } }],
  });
  scene.create("env", {
    containers: [container("c", [{}], { envFrom: [{ secretRef: { name: "late" } }] })],
  });
  await scene.advance(60_000);
  assert.deepEqual(scene.running("volume"), []);
  assert.deepEqual(scene.running("env"), []);
  assert.equal(waiting("volume")?.reason, "ContainerCreating");
  assert.deepEqual([waiting("env")?.reason, waiting("env")?.message], [
    "CreateContainerConfigError",
    'secret "late" not found',
  ]);
  assert.ok(told("FailedMount").includes('MountVolume.SetUp failed for volume "v" : secret "late" not found'));
  set.secret("late", { key: "value" });
  await scene.advance(1500);
  assert.deepEqual(scene.running("volume"), ["c#0"]);
  assert.deepEqual(scene.running("env"), ["c#0"]);
  assert.equal((await env("env"))["key"], "value");
});

Deno.test("while the API server is away containers are restarted with what is known", async () => {
  const { scene, api, set, env } = await started();
  await using _ = scene;
  set.secret("s", { key: "value" });
  scene.create("web", {
    serviceAccountName: "default",
    containers: [
      container("c", [{ ms: 400_000, code: 1 }, {}], {
        ...mounts("v", "t"),
        envFrom: [{ secretRef: { name: "s" } }],
      }),
    ],
    volumes: [
      { name: "v", secret: { secretName: "s" } },
      { name: "t", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } },
    ],
  });
  await scene.advance(3000);
  assert.deepEqual(scene.running("web"), ["c#0"]);
  api.reach = "refused";
  await scene.advance(420_000);
  assert.deepEqual(scene.running("web"), ["c#1"]);
  assert.equal((await env("web"))["key"], "value");
});

Deno.test("a token is renewed in the pod when 80 % of its life are over, and forgotten with the pod", async () => {
  const { scene, api, shown } = await started();
  await using _ = scene;
  const pod = scene.create("web", {
    serviceAccountName: "default",
    containers: [container("c", [{}], mounts("t"))],
    volumes: [{
      name: "t",
      projected: { sources: [{ serviceAccountToken: { path: "token", expirationSeconds: 600 } }] },
    }],
  });
  const uid = pod.metadata?.uid ?? "";
  const token = () => shown(uid, "projected", "t/token");
  await scene.advance(3000);
  const first = token();
  assert.equal(first, api.tokens[0]?.token);
  await scene.advance(400_000);
  assert.equal(token(), first);
  await scene.advance(160_000);
  assert.notEqual(token(), first);
  assert.equal(api.tokens.length, 2);
  scene.delete("web");
  await scene.advance(60_000);
  await scene.advance(1_200_000);
  assert.equal(api.tokens.length, 2);
});

Deno.test("watches end with the pods that need them", async () => {
  const { scene, api, set } = await started();
  await using _ = scene;
  const before = api.watches;
  set.configMap("m", { a: "1" });
  for (const name of ["a", "b"]) {
    scene.create(name, {
      containers: [container("c", [{}], mounts("m"))],
      volumes: [{ name: "m", configMap: { name: "m" } }],
    });
  }
  await scene.advance(3000);
  assert.equal(api.watches, before + 1);
  for (const name of ["a", "b"]) scene.delete(name);
  await scene.advance(60_000);
  assert.equal(api.watches, before);
});

Deno.test("services are in the environment, and waited for", async () => {
  const { scene, api, env, waiting } = await started();
  await using _ = scene;
  const service = (namespace: string, name: string, clusterIP: string) =>
    api.create<Service>(resources.services, {
      metadata: { namespace, name },
      spec: { clusterIP, ports: [{ port: 443 }] },
    });
  service("default", "kubernetes", "10.0.0.1");
  service("default", "db", "10.0.0.2");
  service("other", "cache", "10.0.0.3");
  await scene.advance(1000);
  scene.create("web");
  scene.create("plain", { enableServiceLinks: false });
  await scene.advance(3000);
  const hosts = async (pod: string) => Object.keys(await env(pod)).filter((name) => name.endsWith("_SERVICE_HOST"));
  assert.deepEqual((await hosts("web")).sort(), ["DB_SERVICE_HOST", "KUBERNETES_SERVICE_HOST"]);
  assert.deepEqual(await hosts("plain"), ["KUBERNETES_SERVICE_HOST"]);

  using fault = api.faults.add({ kind: "hang" }, { resource: "services" });
  await scene.restart();
  scene.create("later");
  await scene.advance(5000);
  assert.deepEqual(scene.running("later"), []);
  assert.deepEqual([waiting("later")?.reason, waiting("later")?.message], [
    "CreateContainerConfigError",
    "services have not yet been read at least once, cannot construct envvars",
  ]);
  fault[Symbol.dispose]();
  await scene.advance(120_000);
  assert.deepEqual(scene.running("later"), ["c#0"]);
  assert.equal((await env("later"))["KUBERNETES_SERVICE_HOST"], "10.0.0.1");
});

Deno.test("an agent that is killed and started again shows what changed meanwhile, and restarts nothing", async () => {
  const { scene, set, shown } = await started();
  await using _ = scene;
  set.secret("s", { key: "one" });
  const pod = scene.create("web", {
    containers: [container("c", [{}], mounts("v"))],
    volumes: [{ name: "v", secret: { secretName: "s" } }],
  });
  await scene.advance(3000);
  scene.kill();
  set.secret("s", { key: "two" });
  await scene.restart();
  await scene.advance(5000);
  assert.equal(shown(pod.metadata?.uid ?? "", "secret", "v/key"), "two");
  assert.deepEqual(scene.running("web"), ["c#0"]);
});
