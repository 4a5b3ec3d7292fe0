import assert from "@assert";
import type { BoundPod } from "../../kube/types.ts";
import { containerAnnotations, containerLabels, sandboxLabels } from "./labels.ts";

const pod: BoundPod = {
  metadata: { name: "p", namespace: "ns", uid: "u", labels: { app: "x", "io.kubernetes.pod.name": "forged" } },
  spec: { containers: [] },
};
const identity = {
  "io.kubernetes.pod.name": "p",
  "io.kubernetes.pod.namespace": "ns",
  "io.kubernetes.pod.uid": "u",
};

Deno.test("labels say whose it is, and can't be forged", () => {
  assert.deepEqual(sandboxLabels(pod), { app: "x", ...identity });
  assert.deepEqual(containerLabels(pod, { name: "c" }), { ...identity, "io.kubernetes.container.name": "c" });
});

Deno.test("annotations hold what a later agent needs", () => {
  const container = { name: "test_container", image: "foo/image:v1" };
  assert.deepEqual(
    containerAnnotations({
      pod,
      container,
      restartCount: 2,
      base: { dev: "1", "io.kubernetes.container.hash": "forged" },
    }),
    {
      dev: "1",
      "io.kubernetes.container.hash": "8e45cbd0",
      "io.kubernetes.container.restartCount": "2",
      "io.kubernetes.container.terminationMessagePath": "",
      "io.kubernetes.container.terminationMessagePolicy": "",
    },
  );
  const full = containerAnnotations({
    pod: {
      metadata: { ...pod.metadata, deletionGracePeriodSeconds: 0 },
      spec: { containers: [], terminationGracePeriodSeconds: 30 },
    },
    container: {
      ...container,
      terminationMessagePath: "/dev/termination-log",
      terminationMessagePolicy: "File",
      lifecycle: { preStop: { exec: { command: ["sleep", "1"] } } },
      ports: [{ containerPort: 80, protocol: "TCP" }],
    },
    restartCount: 0,
  });
  assert.deepEqual(full, {
    "io.kubernetes.container.hash": "8e45cbd0",
    "io.kubernetes.container.restartCount": "0",
    "io.kubernetes.container.terminationMessagePath": "/dev/termination-log",
    "io.kubernetes.container.terminationMessagePolicy": "File",
    "io.kubernetes.pod.deletionGracePeriod": "0",
    "io.kubernetes.pod.terminationGracePeriod": "30",
    "io.kubernetes.container.preStopHandler": '{"exec":{"command":["sleep","1"]}}',
    "io.kubernetes.container.ports": '[{"containerPort":80,"protocol":"TCP"}]',
  });
});
