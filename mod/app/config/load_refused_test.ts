import assert from "@assert";
import fc from "fast-check";
import { KubeletError } from "../../base/errors.ts";
import { head, load, refused, type Scene, standalone } from "./load_testing.ts";

const bad: [scene: Scene, message: RegExp][] = [
  [{ argv: ["--config=/nowhere"] }, /configuration file \/nowhere can't be read.*check --config/],
  [{ argv: ["--config-dir=/nowhere"] }, /--config-dir \/nowhere can't be read/],
  [{ config: "" }, /config\.yaml: is empty/],
  [{ config: "# nothing\n---\n" }, /is empty/],
  [{ config: "hello" }, /holds no object/],
  [{ config: "[]" }, /holds no object/],
  [
    { config: "maxPods: 3" },
    /has {"apiVersion":"","kind":""}; it must have apiVersion: kubelet\.config\.k8s\.io\/v1beta1/,
  ],
  [{ config: head.replace("v1beta1", "v1") }, /must have apiVersion/],
  [{ config: head.replace("KubeletConfiguration", "Pod") }, /must have apiVersion.*and kind: KubeletConfiguration/],
  [{ config: `${standalone}maxPods: "3"` }, /maxPods must be a whole number from .*, not the string "3"/],
  [{ config: `${standalone}maxPods: 3.5` }, /maxPods must be a whole number/],
  [{ config: `${standalone}maxPods: 99999999999` }, /maxPods must be a whole number/],
  [{ config: `${standalone}maxPods: .nan` }, /maxPods must be a whole number.*NaN/],
  [{ config: `${standalone}failSwapOn: "no"` }, /failSwapOn must be true or false/],
  [{ config: `${standalone}syncFrequency: 60` }, /syncFrequency must be a duration such as 1m30s, not 60/],
  [{ config: `${standalone}syncFrequency: 1 minute` }, /syncFrequency: duration "1 minute"/],
  [{ config: `${standalone}clusterDNS: 10.0.0.1` }, /clusterDNS must be a list/],
  [{ config: `${standalone}clusterDNS: [1]` }, /clusterDNS\[0\] must be a string/],
  [{ config: `${standalone}evictionHard: [a]` }, /evictionHard must be a map/],
  [
    { config: `${standalone}evictionHard: {memory.available: 5}` },
    /evictionHard\["memory\.available"\] must be a string/,
  ],
  [{ config: `${standalone}logging: 4` }, /logging must be a map of fields/],
  [{ config: `${standalone}reservedMemory: [{numaNode: 0, limits: {memory: lots}}]` }, /quantity "lots"/],
  [{ config: `${standalone}maxPods: x\nport: y` }, /2 problems: maxPods.*port/],
  [{ config: `${standalone}a: [` }, /not valid YAML/],
  [
    { config: standalone, dropIns: { "a.conf": "maxPods: 1" } },
    /drop-in file \/etc\/kubelet\/d\/a\.conf has .*must have apiVersion/,
  ],
  [{ config: standalone, dropIns: { "a.conf": "" } }, /a\.conf: is empty/],
  [
    { config: standalone, dropIns: { "a.conf": `${head}maxPods: many` } },
    /drop-in file .*a\.conf has a problem: maxPods/,
  ],
];
for (const [scene, message] of bad) {
  Deno.test(`loading is refused: ${message.source.slice(0, 60)}`, () => refused(scene, message));
}

// Texts made to hurt: each must be refused (or be harmless) without delay or crash.
const laughs = [
  "a: &a [x,x,x,x,x,x,x,x,x]",
  ..."bcdefghij".split("").map((c, i) => {
    const before = "abcdefghi"[i];
    return `${c}: &${c} [${Array.from({ length: 9 }, () => `*${before}`).join(",")}]`;
  }),
].join("\n");
const hostile: Record<string, string> = {
  "an alias bomb": `${head}${laughs}\n`,
  "a self-containing alias": `${head}evictionHard: &a {x: *a}\n`,
  "deep flow lists": `${head}a: ${"[".repeat(20_000)}`,
  "deep flow maps": `${head}a: ${"{a: ".repeat(20_000)}`,
  "deep compact lists": `${head}a:\n  ${"- ".repeat(20_000)}x\n`,
  "deep indentation": head + Array.from({ length: 500 }, (_, i) => `${" ".repeat(i)}a:`).join("\n"),
  "deep JSON": `{"apiVersion":"kubelet.config.k8s.io/v1beta1","kind":"KubeletConfiguration","a":${"[".repeat(20_000)}${
    "]".repeat(20_000)
  }}`,
  "10 MB of text": `${head}# ${"x".repeat(10 * 1024 * 1024)}`,
  "many unknown gates": `${standalone}featureGates: {${
    Array.from({ length: 5000 }, (_, i) => `g${i}: true`).join(", ")
  }}`,
  "too many values": head + Array.from({ length: 20_000 }, (_, i) => `k${i}: 1`).join("\n"),
  "NUL bytes": `${head}\0`,
  "a number too large": `${standalone}maxPods: 1e999`,
};
for (const [name, config] of Object.entries(hostile)) {
  Deno.test(`hostile text is refused: ${name}`, () => refused({ config }, /./));
}

Deno.test("prototype keys are unknown fields or plain keys, and pollute nothing", async () => {
  const { warnings, v1beta1 } = await load({
    config:
      `${standalone}__proto__: {maxPods: 1}\nconstructor: 1\nsystemReserved: {memory: 1Gi}\nstaticPodURLHeader: {__proto__: [a]}\n`,
  });
  assert.match(warnings.join(), /__proto__.*constructor/);
  assert.equal(v1beta1.maxPods, 110);
  assert.deepEqual(Object.keys(v1beta1.staticPodURLHeader ?? {}), ["__proto__"]);
  assert.equal(({} as Record<string, unknown>).maxPods, undefined);
});

Deno.test("property: any file text loads or is refused with BadConfig", async () => {
  const line = fc.tuple(
    fc.constantFrom(
      "maxPods",
      "evictionHard",
      "featureGates",
      "logging",
      "clusterDNS",
      "systemReserved",
      "__proto__",
      "x",
    ),
    fc.oneof(
      fc.json({ maxDepth: 2 }),
      fc.string({ maxLength: 20 }),
      fc.constantFrom("1", "{}", "[]", "null", "yes", "1Gi"),
    ),
  ).map(([key, value]) => `${key}: ${value}\n`);
  await fc.assert(
    fc.asyncProperty(fc.array(line, { maxLength: 4 }), fc.array(line, { maxLength: 3 }), async (config, dropIn) => {
      try {
        await load({ config: standalone + config.join(""), dropIns: { "a.conf": head + dropIn.join("") } });
      } catch (thrown) {
        assert(thrown instanceof KubeletError && thrown.code === "BadConfig", `${thrown}`);
      }
    }),
    { numRuns: 150 },
  );
});
