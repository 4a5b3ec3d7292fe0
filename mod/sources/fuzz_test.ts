import assert from "@assert";
import fc from "fast-check";
import { KubeletError } from "../base/errors.ts";
import { schema } from "../kube/gen/schema.ts";
import { readType } from "../kube/decode.ts";
import { readPod } from "./manifest.ts";
import type { StaticPodOptions } from "./static_pod.ts";

const options: StaticPodOptions = { origin: { source: "file", path: "/p.yaml" }, nodeName: "node1" };

const texts = fc.constantFrom(
  "",
  "a",
  "A",
  "..",
  "/",
  "a/b",
  "1",
  "Always",
  "Exists",
  "net.core",
  "::1",
  "x=y",
  "__proto__",
  "metadata.labels['a']",
);
const amounts = fc.constantFrom("1", "-1", "64Mi", "0.1", "1e9", "100u", "9E");

/** Values of a schema's type, mostly right, of all fields: what the rules behind the decoder must survive. */
function ofType(spec: string, depth: number): fc.Arbitrary<unknown> {
  const { base } = readType(spec);
  if (base.startsWith("[]")) return fc.array(ofType(base.slice(2), depth), { maxLength: 2 });
  if (base.startsWith("{}")) {
    return fc.dictionary(
      fc.oneof(texts, fc.constantFrom("cpu", "memory", "hugepages-2Mi")),
      ofType(base.slice(2), depth),
      {
        maxKeys: 2,
      },
    );
  }
  switch (base) {
    case "string":
    case "any":
    case "bytes":
      return texts;
    case "bool":
      return fc.boolean();
    case "quantity":
      return amounts;
    case "time":
      return fc.constant("2026-01-01T00:00:00Z");
    case "intorstring":
      return fc.oneof(texts, fc.integer({ min: -1, max: 70000 }));
    case "int32":
    case "int64":
      return fc.integer({ min: -2, max: 70000 });
  }
  if (depth === 0) return fc.constant({});
  const fields = Object.entries(schema[base] ?? {}).map(([name, type]) => [name, ofType(type, depth - 1)] as const);
  return fc.subarray(fields.map(([name]) => name), { maxLength: Math.min(6, fields.length) }).chain((names) =>
    fc.record(Object.fromEntries(fields.filter(([name]) => names.includes(name))))
  );
}

Deno.test("whatever a well-typed pod says, it is made a static pod or refused as a bad manifest", () => {
  const container = fc.record({ name: texts, image: texts }).chain((fixed) =>
    ofType("Container", 3).map((rest) => ({ ...rest as object, ...fixed }))
  );
  const spec = fc.tuple(ofType("PodSpec", 4), fc.array(container, { maxLength: 2 }))
    .map(([rest, containers]) => ({ ...rest as object, containers }));
  let made = 0;
  const check = (spec: unknown) => {
    const text = JSON.stringify({ apiVersion: "v1", kind: "Pod", metadata: { name: "a" }, spec });
    try {
      assert.equal(readPod(text, options).pods.length, 1);
      made++;
    } catch (thrown) {
      assert.ok(thrown instanceof KubeletError && thrown.code === "BadManifest", `${thrown}`);
    }
  };
  fc.assert(fc.property(spec, check), { numRuns: 600 });
  check({ containers: [{ name: "a", image: "i" }] });
  assert.ok(made > 0);
});
