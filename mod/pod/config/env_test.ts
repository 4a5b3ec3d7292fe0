import assert from "@assert";
import type { BoundPod, Container, PodSpec } from "../../kube/types.ts";
import { containerEnv, type EnvInput, type EnvObjects, noObjects } from "./env.ts";

const bytes = (text: string) => new TextEncoder().encode(text);

const objects: EnvObjects = {
  standalone: false,
  configMap: (name) => name === "cm" ? { a: "cm-a", b: "cm-b" } : undefined,
  secret: (name) => name === "sec" ? { a: bytes("sec-a"), bin: new Uint8Array([0xff, 0]) } : undefined,
  file: (volume, path) => volume === "vol" && path === "f" ? "K='v'\nEMPTY=''\n" : undefined,
};

function input(container: Partial<Container>, more: Partial<EnvInput> = {}, spec: Partial<PodSpec> = {}): EnvInput {
  const pod: BoundPod = {
    metadata: { name: "p", namespace: "ns", uid: "u" },
    spec: { containers: [], enableServiceLinks: true, volumes: [{ name: "vol", emptyDir: {} }], ...spec },
  };
  return {
    pod,
    container: { name: "c", ...container },
    objects,
    services: new Map([["SVC_HOST", "10.0.0.1"], ["X", "service"]]),
    fields: { podIPs: ["10.1.0.2"], hostIPs: ["192.0.2.1"] },
    allocatable: { cpu: "2" },
    ...more,
  };
}

const pairs = (i: EnvInput) => containerEnv(i).map(({ name, value }) => `${name}=${value}`);
const services = ["SVC_HOST=10.0.0.1", "X=service"];

Deno.test("variables come from objects, then the container, then services", () => {
  const cases: [string, Partial<Container>, string[]][] = [
    ["nothing", {}, services],
    ["order and expansion", {
      env: [
        { name: "A", value: "1" },
        { name: "B", value: "$(A)-$(SVC_HOST)-$(LATER)-$$(A)" },
        { name: "LATER", value: "x" },
        { name: "EMPTY" },
        { name: "X", value: "$(X)!" },
      ],
    }, ["A=1", "B=1-10.0.0.1-$(LATER)-$(A)", "LATER=x", "EMPTY=", "X=service!", "SVC_HOST=10.0.0.1"]],
    ["objects: the later wins, the container's own over all", {
      envFrom: [{ configMapRef: { name: "cm" } }, { prefix: "P_", configMapRef: { name: "cm" } }, {
        secretRef: { name: "sec" },
      }],
      env: [{ name: "b", value: "own" }],
    }, ["a=sec-a", "b=own", "P_a=cm-a", "P_b=cm-b", "bin=\ufffd\0", ...services]],
    ["sources", {
      resources: { limits: { cpu: "1500m" } },
      env: [
        { name: "NAME", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
        { name: "IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } },
        { name: "CPU", valueFrom: { resourceFieldRef: { resource: "limits.cpu" } } },
        { name: "CM", valueFrom: { configMapKeyRef: { name: "cm", key: "a" } } },
        { name: "SEC", valueFrom: { secretKeyRef: { name: "sec", key: "a" } } },
        { name: "FILE", valueFrom: { fileKeyRef: { volumeName: "vol", path: "f", key: "K" } } },
        { name: "VALUE", value: "wins", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
        { name: "SEEN", value: "$(NAME) $(SEC)" },
      ],
    }, [
      "NAME=p",
      "IP=10.1.0.2",
      "CPU=2",
      "CM=cm-a",
      "SEC=sec-a",
      "FILE=v",
      "VALUE=wins",
      "SEEN=p sec-a",
      ...services,
    ]],
    ["what is optional and missing is left out", {
      envFrom: [{ configMapRef: { name: "no", optional: true } }, { secretRef: { name: "no", optional: true } }],
      env: [
        { name: "A", valueFrom: { configMapKeyRef: { name: "no", key: "a", optional: true } } },
        { name: "B", valueFrom: { configMapKeyRef: { name: "cm", key: "no", optional: true } } },
        { name: "C", valueFrom: { secretKeyRef: { name: "sec", key: "constructor", optional: true } } },
        { name: "D", valueFrom: { fileKeyRef: { volumeName: "vol", path: "f", key: "EMPTY", optional: true } } },
      ],
    }, services],
  ];
  for (const [what, container, want] of cases) assert.deepEqual(pairs(input(container)), want, what);
});

Deno.test("a Secret's bytes stay as they are", () => {
  const key = { name: "B", valueFrom: { secretKeyRef: { name: "sec", key: "bin" } } };
  const [got] = containerEnv(input({ env: [key] }));
  assert.deepEqual(got?.bytes, new Uint8Array([0xff, 0]));
  const [over] = containerEnv(input({ env: [key, { name: "B", value: "text" }] }));
  assert.deepEqual(over, { name: "B", value: "text" });
});

Deno.test("what is missing is named", () => {
  const from = (valueFrom: NonNullable<NonNullable<Container["env"]>[number]["valueFrom"]>) => ({
    env: [{ name: "X", valueFrom }],
  });
  const alone = { objects: noObjects };
  const cases: [Partial<Container>, Partial<EnvInput>, string][] = [
    [{ envFrom: [{ configMapRef: { name: "no" } }] }, {}, 'configmap "no" not found'],
    [{ envFrom: [{ secretRef: { name: "no" } }] }, {}, 'secret "no" not found'],
    [{ envFrom: [{ configMapRef: { name: "no" } }] }, alone, "couldn't get configMap ns/no, no kubeClient defined"],
    [from({ secretKeyRef: { name: "no", key: "a" } }), alone, "couldn't get secret ns/no, no kubeClient defined"],
    [from({ configMapKeyRef: { name: "cm", key: "k" } }), {}, "couldn't find key k in ConfigMap ns/cm"],
    [from({ secretKeyRef: { name: "sec", key: "__proto__" } }), {}, "couldn't find key __proto__ in Secret ns/sec"],
    [from({ fieldRef: { fieldPath: "spec.x" } }), {}, "field label not supported: spec.x"],
    [from({ resourceFieldRef: { resource: "limits.x" } }), {}, "unsupported container resource : limits.x"],
    [
      from({ fileKeyRef: { volumeName: "no", path: "f", key: "K" } }),
      {},
      'cannot find the volume "no" referenced by FileKeyRef',
    ],
    [from({ fileKeyRef: { volumeName: "vol", path: "no", key: "K" } }), {}, "couldn't parse env file"],
    [
      from({ fileKeyRef: { volumeName: "vol", path: "f", key: "Z" } }),
      {},
      'environment variable key "Z" not found in file "f" of volume "vol"',
    ],
  ];
  for (const [container, more, message] of cases) {
    assert.throws(() => containerEnv(input(container, more)), {
      name: "CreateContainerConfigError",
      code: "BadPod",
      reason: "CreateContainerConfigError",
      message,
    });
  }
  const unset = input({});
  delete unset.pod.spec.enableServiceLinks;
  assert.throws(() => containerEnv(unset), { message: /nil pod.spec.enableServiceLinks/ });
});

Deno.test("a standalone agent still skips what is optional", () => {
  const container = { envFrom: [{ configMapRef: { name: "no", optional: true } }] };
  assert.deepEqual(pairs(input(container, { objects: noObjects })), services);
});
