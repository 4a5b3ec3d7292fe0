import assert from "@assert";
import type { BoundPod, Container } from "../../kube/types.ts";
import { formatMap, resolveFieldPath, resolveResource, sortPodIPs } from "./fieldref.ts";

const pod: BoundPod = {
  metadata: {
    name: "web",
    namespace: "ns",
    uid: "u",
    labels: { b: "2", a: "1", "x.io/k": "v" },
    annotations: { "Up.io/K": "cap", note: 'say "hi"\n' },
  },
  spec: { containers: [], nodeName: "node", serviceAccountName: "sa" },
};
const ctx = { podIPs: ["fd00::2", "10.0.0.2", "10.0.0.3"], hostIPs: ["192.0.2.1", "fd00::1"] };

Deno.test("each field path gives its text", () => {
  const cases: [string, string][] = [
    ["metadata.name", "web"],
    ["metadata.namespace", "ns"],
    ["metadata.uid", "u"],
    ["metadata.labels", 'a="1"\nb="2"\nx.io/k="v"'],
    ["metadata.annotations", 'Up.io/K="cap"\nnote="say \\"hi\\"\\n"'],
    ["metadata.labels['a']", "1"],
    ["metadata.labels['x.io/k']", "v"],
    ["metadata.labels['none']", ""],
    ["metadata.labels['constructor']", ""],
    ["metadata.annotations['Up.io/K']", "cap"],
    ["spec.nodeName", "node"],
    ["spec.host", "node"],
    ["spec.serviceAccountName", "sa"],
    ["status.hostIP", "192.0.2.1"],
    ["status.hostIPs", "192.0.2.1,fd00::1"],
    ["status.podIP", "10.0.0.2"],
    ["status.podIPs", "10.0.0.2,fd00::2"],
  ];
  for (const [path, want] of cases) assert.equal(resolveFieldPath(pod, path, ctx), want, path);
  assert.equal(resolveFieldPath(pod, "status.podIP", { ...ctx, podIPs: [] }), "");
});

Deno.test("other paths are refused, and volumes may read the metadata only", () => {
  const cases: [string, RegExp][] = [
    ["spec.containers", /field label not supported: spec\.containers/],
    ["status.phase", /unsupported fieldPath: status\.phase/],
    ["metadata.name['x']", /does not support subscript/],
    ["metadata.labels['']", /invalid key subscript/],
    ["metadata.labels['Up.io/K']", /invalid key subscript/],
    ["metadata.labels['a/b/c']", /invalid key subscript/],
    ["metadata.labels['", /not supported/],
    ["", /not supported/],
  ];
  for (const [path, message] of cases) {
    assert.throws(() => resolveFieldPath(pod, path, ctx), { code: "BadPod", message }, path);
  }
  assert.throws(() => resolveFieldPath(pod, "status.hostIP", { ...ctx, hostIPs: [] }), { message: /no host IP/ });
  assert.equal(resolveFieldPath(pod, "metadata.name"), "web");
  assert.throws(() => resolveFieldPath(pod, "spec.nodeName"), { message: "unsupported fieldPath: spec.nodeName" });
});

Deno.test("values are quoted so that each stays on its line", () => {
  const cases: [string, string][] = [
    ["", '""'],
    ["é ü 中 😀", '"é ü 中 😀"'],
    ["\x07\b\f\n\r\t\v\\\"'", `"\\a\\b\\f\\n\\r\\t\\v\\\\\\"'"`],
    ["\0\x1f\x7f", '"\\x00\\x1f\\x7f"'],
    ["\u0080\u00a0\u2028", '"\\u0080\\u00a0\\u2028"'],
    ["\u{e0001}", '"\\U000e0001"'],
  ];
  for (const [text, want] of cases) assert.equal(formatMap({ k: text }), `k=${want}`);
  assert.equal(formatMap(undefined), "");
  assert.equal(formatMap(JSON.parse('{"__proto__":"x"}')), '__proto__="x"');
});

Deno.test("a pod shows one address a family, the node's primary first", () => {
  assert.deepEqual(sortPodIPs(["fd00::2", "10.0.0.2"], []), ["10.0.0.2", "fd00::2"]);
  assert.deepEqual(sortPodIPs(["10.0.0.2", "fd00::2", "fd00::3"], ["fd00::1"]), ["fd00::2", "10.0.0.2"]);
  assert.deepEqual(sortPodIPs(["10.0.0.2"], ["fd00::1"]), ["10.0.0.2"]);
});

Deno.test("resources are divided and rounded up; limits that are not set are the node's", () => {
  const own: Container = {
    name: "own",
    resources: {
      requests: { cpu: "250m", memory: "64Mi", "hugepages-2Mi": "4Mi", "ephemeral-storage": "1G" },
      limits: { cpu: "1500m" },
    },
  };
  const init: Container = { name: "init" };
  const regular: Container = { name: "regular" };
  const spec = { containers: [own, regular], initContainers: [init] };
  const resources = { pod: { ...pod, spec }, allocatable: { cpu: "3", memory: "1Gi", "ephemeral-storage": "10G" } };
  const cases: [string, string | undefined, string | undefined, string][] = [
    ["requests.cpu", undefined, undefined, "1"],
    ["requests.cpu", "1m", undefined, "250"],
    ["requests.cpu", "0", undefined, "1"],
    ["limits.cpu", "1", undefined, "2"],
    ["limits.cpu", "100m", undefined, "15"],
    ["requests.memory", undefined, undefined, String(64 << 20)],
    ["requests.memory", "1Mi", undefined, "64"],
    ["requests.memory", "10Mi", undefined, "7"],
    ["limits.memory", "1Gi", undefined, "1"],
    ["limits.ephemeral-storage", "1G", undefined, "10"],
    ["requests.ephemeral-storage", "1", undefined, "1000000000"],
    ["requests.hugepages-2Mi", "1Mi", undefined, "4"],
    ["limits.hugepages-2Mi", undefined, undefined, "0"],
    ["limits.cpu", undefined, "regular", "3"],
    ["limits.cpu", undefined, "init", "0"],
    ["requests.cpu", undefined, "regular", "0"],
  ];
  for (const [resource, divisor, containerName, want] of cases) {
    const ref = {
      resource,
      ...(divisor === undefined ? {} : { divisor }),
      ...(containerName === undefined ? {} : { containerName }),
    };
    assert.equal(resolveResource(own, ref, resources), want, JSON.stringify(ref));
  }
  const volume = (containerName: string) =>
    resolveResource(undefined, { resource: "limits.cpu", containerName }, resources);
  assert.equal(volume("init"), "3", "a file's reference has defaults for init containers too");
  const level = { ...resources, pod: { ...pod, spec: { ...spec, resources: { limits: { memory: "512Mi" } } } } };
  const memory = { resource: "limits.memory", divisor: "1Mi", containerName: "regular" };
  assert.equal(resolveResource(own, memory, level), "512", "the pod's own limit comes before the node's");
  assert.equal(resolveResource(undefined, memory, level), "1024");
});

Deno.test("a resource reference that means nothing is refused", () => {
  const c: Container = { name: "c" };
  const resources = { pod: { ...pod, spec: { containers: [c] } }, allocatable: {} };
  const cases: [Parameters<typeof resolveResource>[1], RegExp][] = [
    [{ resource: "limits.gpu" }, /unsupported container resource : limits\.gpu/],
    [{ resource: "cpu" }, /unsupported container resource : cpu/],
    [{ resource: "limits.cpu", containerName: "x" }, /container x not found/],
    [{ resource: "limits.cpu", divisor: "-1" }, /divisor must be more than 0/],
    [{ resource: "limits.cpu", divisor: "much" }, /divisor/],
  ];
  for (const [ref, message] of cases) {
    assert.throws(() => resolveResource(c, ref, resources), { code: "BadPod", message });
  }
  assert.throws(() => resolveResource(undefined, { resource: "limits.cpu" }, resources), { message: /not found/ });
});
