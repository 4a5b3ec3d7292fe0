import assert from "@assert";
import { hasShape, misfit } from "./shape.ts";

const pod = (more: object) => ({
  apiVersion: "v1",
  kind: "Pod",
  metadata: { name: "web", namespace: "ns", uid: "u", creationTimestamp: "2026-01-01T00:00:00Z", labels: { a: "b" } },
  spec: { containers: [{ name: "c", image: "i", ports: [{ containerPort: 80 }] }], ...more },
});

const fits: [string, object][] = [
  ["an ordinary pod", {}],
  ["fields that are not known", { future: { a: [1] } }],
  ["a quantity that is a number", { overhead: { cpu: 1, memory: "1Mi" } }],
  ["a long time", { terminationGracePeriodSeconds: 9_223_372_036_854_775_807 }],
  ["a port by name or number", {
    containers: [{
      name: "c",
      readinessProbe: { tcpSocket: { port: "web" } },
      livenessProbe: { tcpSocket: { port: 8 } },
    }],
  }],
  ["names of a prototype", { nodeSelector: JSON.parse('{"__proto__":"x","constructor":"y"}') }],
];

for (const [what, more] of fits) {
  Deno.test(`shape: ${what} fits`, () => assert.equal(misfit("Pod", pod(more)), undefined));
}

const misfits: [unknown, string][] = [
  [7, "the object: want an object, got 7"],
  [[], "the object: want an object, got a list"],
  [{ metadata: "x" }, 'metadata: want an object, got "x"'],
  [{ metadata: { labels: [] } }, "metadata.labels: want an object, got a list"],
  [{ metadata: { labels: { a: 7 } } }, "metadata.labels[a]: want a text, got 7"],
  [{ metadata: { deletionTimestamp: "soon" } }, 'metadata.deletionTimestamp: want a time, got "soon"'],
  [
    { metadata: { deletionGracePeriodSeconds: 1e300 } },
    "metadata.deletionGracePeriodSeconds: want an integer, got 1e+300",
  ],
  [{ metadata: { generation: 0.5 } }, "metadata.generation: want an integer, got 0.5"],
  [{ metadata: { resourceVersion: 7 } }, "metadata.resourceVersion: want a text, got 7"],
  [pod({ containers: {} }), "spec.containers: want a list, got an object"],
  [pod({ containers: [null] }), "spec.containers[0]: want an object, got null"],
  [
    pod({ containers: [{ name: "c", command: ["a", {}] }] }),
    "spec.containers[0].command[1]: want a text, got an object",
  ],
  [pod({ hostNetwork: "yes" }), 'spec.hostNetwork: want true or false, got "yes"'],
  [pod({ activeDeadlineSeconds: "5" }), 'spec.activeDeadlineSeconds: want an integer, got "5"'],
  [pod({ priority: 2 ** 40 }), "spec.priority: want an integer, got 1099511627776"],
  [pod({ overhead: { cpu: {} } }), "spec.overhead[cpu]: want a quantity, got an object"],
];

for (const [value, why] of misfits) {
  Deno.test(`shape: ${why}`, () => assert.equal(misfit("Pod", value), why));
}

Deno.test("shape: null stands for what is not there", () => {
  const value = { metadata: { name: "n", deletionTimestamp: null }, spec: null, status: { conditions: null } };
  assert.equal(misfit("Pod", value), undefined);
  assert.deepEqual(value, { metadata: { name: "n" }, status: {} });
});

Deno.test("shape: a member that is null is a text of nothing", () => {
  const secret = { metadata: { name: "s" }, data: { a: "eA==", empty: null } };
  assert.equal(misfit("Secret", secret), undefined);
  assert.deepEqual(secret.data, { a: "eA==", empty: "" });
  const value = pod({ containers: [{ name: "c", command: ["a", null] }] });
  assert.equal(misfit("Pod", value), undefined);
  assert.deepEqual(value.spec.containers[0], { name: "c", command: ["a", ""] });
});

Deno.test("shape: kinds without a schema are told", () => {
  assert.deepEqual([hasShape("Pod"), hasShape("Lease"), hasShape("Widget"), hasShape("constructor")], [
    true,
    true,
    false,
    false,
  ]);
});
