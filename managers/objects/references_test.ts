import assert from "@assert";
import type { BoundPod, PodSpec } from "../../mod/kube/types.ts";
import { podReferences } from "./references.ts";

const spec = (more: Partial<PodSpec>): BoundPod => ({
  metadata: { name: "p", namespace: "ns", uid: "u" },
  spec: { containers: [{ name: "c" }], ...more },
});

Deno.test("references: table of where a pod names Secrets and ConfigMaps, true where its volumes show them", () => {
  const cases: [string, Partial<PodSpec>, Record<string, boolean>, Record<string, boolean>][] = [
    ["none", {}, {}, {}],
    ["pull secrets", { imagePullSecrets: [{ name: "a" }, { name: "" }, {}] }, { a: false }, {}],
    [
      "envFrom of an init container",
      {
        initContainers: [{ name: "i", envFrom: [{ secretRef: { name: "s" } }, { configMapRef: { name: "m" } }] }],
      },
      { s: false },
      { m: false },
    ],
    [
      "env of an ephemeral container",
      {
        ephemeralContainers: [{
          name: "e",
          env: [
            { name: "A", valueFrom: { secretKeyRef: { name: "s", key: "k" } } },
            { name: "B", valueFrom: { configMapKeyRef: { name: "m", key: "k" } } },
            { name: "C", value: "plain" },
          ],
        }],
      },
      { s: false },
      { m: false },
    ],
    [
      "volumes",
      {
        volumes: [
          { name: "1", secret: { secretName: "s" } },
          { name: "2", configMap: { name: "m" } },
          { name: "3", projected: { sources: [{ secret: { name: "ps" } }, { configMap: { name: "pm" } }, {}] } },
          { name: "4", csi: { driver: "d", nodePublishSecretRef: { name: "csi" } } },
          { name: "5", iscsi: { targetPortal: "t", iqn: "i", lun: 0, secretRef: { name: "chap" } } },
          { name: "6", secret: {} },
        ],
      },
      { s: true, ps: true, csi: false, chap: false },
      { m: true, pm: true },
    ],
    [
      "shown by a volume and read by env",
      {
        containers: [{ name: "c", envFrom: [{ secretRef: { name: "s" } }] }],
        volumes: [{ name: "1", secret: { secretName: "s" } }],
      },
      { s: true },
      {},
    ],
    [
      "a pull secret that a volume shows",
      {
        imagePullSecrets: [{ name: "__proto__" }],
        volumes: [{ name: "1", secret: { secretName: "__proto__" } }],
      },
      Object.fromEntries([["__proto__", true]]),
      {},
    ],
  ];
  for (const [what, given, secrets, configMaps] of cases) {
    const found = podReferences(spec(given));
    assert.deepEqual(Object.fromEntries(found.secrets), secrets, what);
    assert.deepEqual(Object.fromEntries(found.configMaps), configMaps, what);
  }
});
