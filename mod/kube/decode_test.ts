import assert from "@assert";
import fc from "fast-check";
import { KubeletError } from "../base/errors.ts";
import { decodeText, nearest } from "./decode.ts";
import { refusal } from "./testing.ts";
import type { Pod } from "./types.ts";

const pod = (text: string) => decodeText<Pod>("Pod", text, { what: "x.yaml" });
const problem = (text: string) => refusal(() => pod(text));

Deno.test("a type error names the field, what is wanted and what stands there", () => {
  const cases: [string, string][] = [
    [
      "spec: {containers: [{ports: [{containerPort: 80a}]}]}",
      'x.yaml: spec.containers[0].ports[0].containerPort: want an integer, got "80a"',
    ],
    [
      "spec: {containers: [{ports: [{containerPort: 1.5}]}]}",
      "x.yaml: spec.containers[0].ports[0].containerPort: want an integer, got 1.5",
    ],
    [
      "spec: {priority: 4294967296}",
      "x.yaml: spec.priority: want an integer from -2147483648 to 2147483647, got 4294967296",
    ],
    [
      "spec: {activeDeadlineSeconds: 9223372036854775808}",
      "x.yaml: spec.activeDeadlineSeconds: want an integer from -9223372036854775808 to 9223372036854775807, got 9223372036854775808",
    ],
    ["spec: {hostNetwork: 1}", "x.yaml: spec.hostNetwork: want true or false, got 1"],
    ["spec: {containers: {}}", "x.yaml: spec.containers: want a list, got a map"],
    ["spec: []", "x.yaml: spec: want a map of fields, got a list of 0"],
    [
      "spec: {containers: [{env: [{name: A, value: 80}]}]}",
      "x.yaml: spec.containers[0].env[0].value: want a text, got 80; put it in quotes",
    ],
    ["metadata: {labels: {a: true}}", "x.yaml: metadata.labels[a]: want a text, got true; put it in quotes"],
    [
      "metadata: {creationTimestamp: yesterday}",
      'x.yaml: metadata.creationTimestamp: want a time such as 2026-01-31T12:00:00Z, got "yesterday"',
    ],
    [
      "spec: {containers: [{livenessProbe: {httpGet: {port: true}}}]}",
      "x.yaml: spec.containers[0].livenessProbe.httpGet.port: want an integer or a text, got true",
    ],
    ["- 1", "x.yaml: the document: want a map of fields, got a list of 1"],
    ["just words", 'x.yaml: the document: want a map of fields, got "just words"'],
  ];
  for (const [text, want] of cases) assert.equal(problem(text), want);
  assert.match(problem("spec: {overhead: {cpu: lots}}"), /^x\.yaml: spec\.overhead\[cpu\]: quantity "lots"/);
  assert.match(problem("spec: {hostPID: 1, hostIPC: 2}"), /hostPID.*; spec\.hostIPC/);
});

Deno.test("null is absent, quantities take numbers and become canonical, required fields have their zero", () => {
  const { value } = pod(
    "metadata: {name: a, labels: null}\nspec:\n  containers:\n" +
      "  - {name: c, command: null, resources: {limits: {cpu: 0.5, memory: 1024Mi, x/y: 3}}}\n  - null\n" +
      "  volumes: [{name: v, hostPath: {}}]\n  hostUsers: false\n",
  );
  assert.deepEqual(value, {
    metadata: { name: "a" },
    spec: {
      containers: [
        { name: "c", resources: { limits: { cpu: "500m", memory: "1Gi", "x/y": "3" } } },
        { name: "" },
      ],
      volumes: [{ name: "v", hostPath: { path: "" } }],
      hostUsers: false,
    },
  });
  assert.deepEqual(pod("spec: {}").value.spec, { containers: [] });
});

Deno.test("the largest int64 is in range, in JSON too", () => {
  for (
    const text of [
      '{"spec": {"activeDeadlineSeconds": 9223372036854775807}}',
      "spec: {activeDeadlineSeconds: 0x7fffffffffffffff}",
    ]
  ) {
    assert.equal(pod(text).value.spec?.activeDeadlineSeconds, 2 ** 63);
  }
  assert.match(problem('{"spec": {"activeDeadlineSeconds": 9223372036854775808}}'), /want an integer from/);
  assert.match(problem('{"spec": {"activeDeadlineSeconds": 1e400}}'), /got Infinity/);
});

Deno.test("unknown fields are warnings with path and the nearest name, or errors when asked", () => {
  const { warnings } = pod("spec: {containers: [{name: a, imagee: x, imagePullpolicy: y, zzz: 1}]}");
  assert.deepEqual(warnings, [
    'spec.containers[0].imagee: unknown field, ignored (did you mean "image"?)',
    'spec.containers[0].imagePullpolicy: unknown field, ignored (did you mean "imagePullPolicy"?)',
    "spec.containers[0].zzz: unknown field, ignored",
  ]);
  assert.throws(() => decodeText("Pod", "foo: 1", { what: "x", strict: true }), /foo: unknown field/);
  assert.equal(nearest("toString", ["name"]), undefined);
});

Deno.test("keys that objects have by nature are only keys", () => {
  const text =
    '{"__proto__": {"hostNetwork": true}, "constructor": 1, "metadata": {"labels": {"__proto__": "x", "toString": "y"}}}';
  const { value, warnings } = pod(text);
  assert.equal(warnings.length, 2);
  assert.equal(Object.getPrototypeOf(value), Object.prototype);
  const labels = value.metadata?.labels ?? {};
  assert.deepEqual(Object.keys(labels), ["__proto__", "toString"]);
  assert.equal(Object.getPrototypeOf(labels), Object.prototype);
  assert.equal(({} as Record<string, unknown>)["hostNetwork"], undefined);
});

Deno.test("many problems are counted, not all listed", () => {
  const ports = Array.from({ length: 500 }, () => "{containerPort: x}").join(",");
  assert.match(problem(`spec: {containers: [{ports: [${ports}]}]}`), /; and 480 more$/);
});

const only = (run: () => unknown) => {
  try {
    run();
  } catch (thrown) {
    assert.ok(thrown instanceof KubeletError && thrown.code === "BadManifest", `${thrown}`);
  }
};

Deno.test("no text makes the decoder throw anything but BadManifest", () => {
  const words = fc.constantFrom(
    ..."a b spec: containers: metadata: - -- --- ... [ ] { } : , & * ! !!str !!int !!binary | > ' \" # % @ ` ? ~ null yes 0x 1e9 .inf << *a &a \n \t   \u0000 \ud800 __proto__: name: 12Mi"
      .split(/ (?! )/),
  );
  const soup = fc.array(fc.oneof(words, fc.constant("\n"), fc.constant("  ")), { maxLength: 40 }).map((w) =>
    w.join("")
  );
  fc.assert(fc.property(fc.oneof(soup, fc.string({ unit: "binary" })), (text) => only(() => pod(text))), {
    numRuns: 1500,
  });
  fc.assert(
    fc.property(fc.uint8Array({ maxLength: 200 }), (bytes) => only(() => decodeText("Pod", bytes, { what: "x" }))),
  );
});

Deno.test("no JSON of the right field names makes the decoder throw anything but BadManifest", () => {
  const key = fc.constantFrom(
    "metadata",
    "spec",
    "containers",
    "name",
    "ports",
    "env",
    "labels",
    "resources",
    "limits",
    "cpu",
    "volumes",
    "__proto__",
    "httpGet",
    "port",
  );
  const { tree } = fc.letrec((tie) => ({
    tree: fc.oneof(
      { maxDepth: 6 },
      fc.jsonValue({ maxDepth: 0 }),
      fc.array(tie("tree"), { maxLength: 3 }),
      fc.dictionary(key, tie("tree"), { maxKeys: 4 }),
    ),
  }));
  fc.assert(fc.property(tree, (value) => only(() => pod(JSON.stringify(value)))), { numRuns: 1000 });
});
