import assert from "@assert";
import type { BoundPod, Container } from "../kube/types.ts";
import { backOffKey, containerHash, imageBackOffKey } from "./hash.ts";

const pod: BoundPod = {
  metadata: { name: "web", namespace: "default", uid: "u1" },
  spec: { containers: [] },
};

Deno.test("the container hash has the contract's check value and looks at name and image only", () => {
  const container: Container = { name: "test_container", image: "foo/image:v1" };
  assert.equal(containerHash(container), 0x8e45cbd0);
  const more: Container = { ...container, ports: [{ containerPort: 80 }], command: ["x"] };
  assert.equal(containerHash(more), 0x8e45cbd0);
  assert.notEqual(containerHash({ ...container, image: "foo/image:v2" }), 0x8e45cbd0);
  assert.notEqual(containerHash({ ...container, name: "other" }), 0x8e45cbd0);
});

Deno.test("the back-off key changes with image and resources, not with their order", () => {
  const container: Container = { name: "c", image: "i:1", resources: { limits: { cpu: "1", memory: "1Gi" } } };
  const key = backOffKey(pod, container);
  assert.match(key, /^[0-9a-f]{1,16}$/);
  assert.equal(backOffKey(pod, { ...container, resources: { limits: { memory: "1Gi", cpu: "1" } } }), key);
  assert.equal(backOffKey(pod, { ...container, command: ["other"] }), key);
  for (
    const other of [
      { ...container, image: "i:2" },
      { ...container, name: "d" },
      { ...container, resources: { limits: { cpu: "2", memory: "1Gi" } } },
      { ...container, resources: { requests: { cpu: "1", memory: "1Gi" } } },
    ]
  ) assert.notEqual(backOffKey(pod, other), key);
  const again = { ...pod, metadata: { ...pod.metadata, uid: "u2" } };
  assert.notEqual(backOffKey(again, container), key);
});

Deno.test("the image back-off key names the pod and the image as written", () => {
  assert.equal(imageBackOffKey("u1", "busybox:1"), "u1_busybox:1");
});
