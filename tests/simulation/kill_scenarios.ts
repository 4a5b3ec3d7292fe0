import type { Container, Pod, PodSpec } from "../../mod/kube/types.ts";
import type { Scenario } from "./kill_run.ts";
import type { Act } from "./pods.ts";

/** A container that lives by these acts; without any it runs until it is stopped. */
function container(name: string, key: string, acts: readonly Act[] = [{}], more: Partial<Container> = {}): Container {
  const port = 1000 + Number(key.slice(1));
  return {
    name,
    image: "registry.sim/app:1",
    command: ["/sim", JSON.stringify({ key, acts })],
    ports: [{ name: "web", containerPort: port }],
    ...more,
  };
}

function pod(name: string, spec: PodSpec, uid?: string): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, ...(uid === undefined ? {} : { uid }), labels: { app: name } },
    spec: { terminationGracePeriodSeconds: 3, ...spec },
  };
}

const probe = (key: string, which: string) => ({ exec: { command: ["probe", `${key}/${which}`] } });
const hook = (key: string, which: string) => ({ exec: { command: ["hook", `${key}/${which}`] } });
const volumes = [
  { name: "scratch", emptyDir: {} },
  { name: "memory", emptyDir: { medium: "Memory" } },
  { name: "info", downwardAPI: { items: [{ path: "labels", fieldRef: { fieldPath: "metadata.labels" } }] } },
];
const volumeMounts = volumes.map(({ name }) => ({ name, mountPath: `/mnt/${name}` }));

/** A sidecar with probes between two init containers, and two containers with probes of every kind. */
const full = pod("full", {
  initContainers: [
    container("first", "k1", [{ ms: 1500, code: 0 }], { volumeMounts }),
    container("sidecar", "k2", [{}], {
      restartPolicy: "Always",
      startupProbe: { ...probe("k2", "startup"), periodSeconds: 1, failureThreshold: 30 },
      readinessProbe: { ...probe("k2", "readiness"), periodSeconds: 2 },
    }),
    container("second", "k3", [{ ms: 1000, code: 0 }]),
  ],
  containers: [
    container("main", "k4", [{}], {
      volumeMounts,
      lifecycle: { postStart: hook("k4", "postStart"), preStop: hook("k4", "preStop") },
      startupProbe: { httpGet: { path: "/startup", port: "web" }, periodSeconds: 1, failureThreshold: 30 },
      readinessProbe: { httpGet: { path: "/readiness", port: "web" }, periodSeconds: 1 },
      livenessProbe: { tcpSocket: { port: "web" }, periodSeconds: 2, failureThreshold: 3 },
      resources: { requests: { cpu: "100m", memory: "64Mi" }, limits: { cpu: "1", memory: "64Mi" } },
    }),
    container("plain", "k5"),
  ],
  volumes,
});

/** Stories that an agent which is killed at any moment of them must bring to the same end (issue 4, part 8). */
export const scenarios: readonly Scenario[] = [
  {
    name: "a pod with init containers, a sidecar and probes starts",
    async play(stage) {
      stage.put("full", full);
      await stage.at(25);
    },
  },
  {
    name: "a container crashes again and again",
    async play(stage) {
      stage.put("loop", pod("loop", { containers: [container("main", "k1", [{ ms: 1000, code: 1 }])] }));
      stage.put(
        "init",
        pod("init", {
          initContainers: [
            container("setup", "k2", [{ ms: 500, code: 3 }, { ms: 500, code: 3 }, { ms: 500, code: 0 }]),
          ],
          containers: [container("main", "k3")],
        }),
      );
      await stage.at(50);
    },
  },
  {
    name: "probes change their minds",
    async play(stage) {
      const probed = container("main", "k1", [{}], {
        startupProbe: { ...probe("k1", "startup"), periodSeconds: 1, failureThreshold: 30 },
        readinessProbe: { ...probe("k1", "readiness"), periodSeconds: 1, failureThreshold: 1 },
        livenessProbe: { ...probe("k1", "liveness"), periodSeconds: 1, failureThreshold: 3 },
      });
      stage.answer("k1/startup", "bad");
      stage.put("probed", pod("probed", { containers: [probed, container("other", "k2")] }));
      await stage.at(6);
      stage.answer("k1/startup", "ok");
      await stage.at(14);
      stage.answer("k1/readiness", "bad");
      await stage.at(20);
      stage.answer("k1/readiness", "ok");
      await stage.at(26);
      stage.answer("k1/liveness", "bad");
      await stage.until("the restart", () => stage.world.runtime.snapshot().containers.some((c) => c.attempt === 1));
      stage.answer("k1/liveness", "ok");
      await stage.at(45);
    },
  },
  {
    name: "a pod is edited, and another is redefined under its UID",
    async play(stage) {
      const edited = (image: string) =>
        pod("edited", {
          containers: [
            container("main", "k1", [{ ignoresStop: true }], { image, lifecycle: { preStop: hook("k1", "preStop") } }),
          ],
          volumes,
        });
      const fixed = (image: string) =>
        pod("fixed", { containers: [container("main", "k2", [{}], { image }), container("kept", "k3")] }, "uid-fixed");
      stage.put("edited", edited("registry.sim/app:1"));
      stage.put("fixed", fixed("registry.sim/app:1"));
      await stage.at(6);
      stage.put("edited", edited("registry.sim/app:2"));
      stage.put("fixed", fixed("registry.sim/app:2"));
      await stage.at(22);
    },
  },
  {
    name: "a pod is removed while another goes on",
    async play(stage) {
      stage.put("full", full);
      stage.put("stays", pod("stays", { containers: [container("main", "k10")] }));
      await stage.at(14);
      await stage.remove("full");
      await stage.at(25);
    },
  },
  {
    name: "an image is pulled",
    async play(stage) {
      const slow = container("main", "k1", [{}], { image: "registry.sim/slow:1", imagePullPolicy: "Always" });
      const other = container("other", "k2", [{}], { image: "registry.sim/slow:2", imagePullPolicy: "IfNotPresent" });
      stage.put("pulls", pod("pulls", { containers: [slow, other] }));
      await stage.at(20);
    },
  },
  {
    name: "containers end and are started again",
    async play(stage) {
      stage.put(
        "ends",
        pod("ends", {
          initContainers: [container("sidecar", "k1", [{}], { restartPolicy: "Always" })],
          containers: [container("main", "k2"), container("other", "k3")],
          volumes,
        }),
      );
      await stage.at(5);
      await stage.exit("ends", "main", 0);
      await stage.at(8);
      await stage.exit("ends", "sidecar", 1);
      await stage.at(25);
    },
  },
  {
    name: "a sandbox dies",
    async play(stage) {
      stage.put(
        "renewed",
        pod("renewed", {
          initContainers: [
            container("first", "k4", [{ ms: 500, code: 0 }]),
            container("sidecar", "k1", [{}], { restartPolicy: "Always" }),
          ],
          containers: [container("main", "k2"), container("other", "k3")],
          volumes,
        }),
      );
      await stage.at(6);
      const box = stage.world.runtime.snapshot().sandboxes.find((s) => s.ready);
      if (box) stage.world.runtime.exitSandbox(box.id);
      await stage.at(25);
    },
  },
  {
    name: "pods end for good",
    async play(stage) {
      const once = (name: string, key: string, policy: string, acts: readonly Act[]) =>
        stage.put(name, pod(name, { restartPolicy: policy, containers: [container("main", key, acts)], volumes }));
      once("good", "k1", "Never", [{ ms: 2000, code: 0 }]);
      once("bad", "k2", "Never", [{ ms: 3000, code: 7 }]);
      once("again", "k3", "OnFailure", [{ ms: 1000, code: 1 }, { ms: 2000, code: 0 }]);
      await stage.at(30);
    },
  },
];
