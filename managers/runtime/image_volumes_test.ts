import assert from "@assert";
import type { PodContainer } from "../../mod/kube/pod.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { canMountImages, imageVolumesOf } from "./image_volumes.ts";

Deno.test("image volumes: which runtimes can mount images", () => {
  const rows: [string, string | undefined, boolean | undefined][] = [
    ["containerd", "1.6.20~ds1", false],
    ["containerd", "v2.0.5", false],
    ["containerd", "v2.1.0-beta.0", true],
    ["containerd", "2.4.2", true],
    ["containerd", "3.0", true],
    ["containerd", "main", undefined],
    ["containerd", undefined, undefined],
    ["cri-o", "1.30.9", false],
    ["cri-o", "1.31.0", true],
    ["fake", "0.1.0", undefined],
  ];
  for (const [name, version, expected] of rows) {
    assert.equal(canMountImages(name, version), expected, `${name} ${version}`);
  }
});

Deno.test("image volumes: those that the container mounts, once each", () => {
  const pod = {
    spec: {
      volumes: [
        { name: "a", image: { reference: "r/a", pullPolicy: "Never" } },
        { name: "b", image: { reference: "r/b" } },
        { name: "c", image: { reference: "r/c" } },
        { name: "d", emptyDir: {} },
      ],
    },
  } as unknown as BoundPod;
  const mounts = ["d", "b", "a", "a"].map((name, i) => ({ name, mountPath: `/m${i}` }));
  const container = { kind: "regular", spec: { name: "x", volumeMounts: mounts } } as unknown as PodContainer;
  assert.deepEqual(imageVolumesOf(pod, container), [
    { name: "a", image: "r/a", imagePullPolicy: "Never" },
    { name: "b", image: "r/b" },
  ]);
});
