import assert from "@assert";
import { actedOn } from "./acted_on.ts";
import { explainConfig } from "./explain.ts";
import { allFields } from "./fields.ts";

Deno.test("a field is explained with all there is to know", () => {
  assert.equal(
    explainConfig({ field: "maxPods" }).replace(/acted on: .*/, "acted on: ?"),
    [
      "maxPods",
      "  Most pods on this node.",
      "  type:     int32",
      "  default:  110",
      "  flag:     --max-pods (deprecated: use the file)",
      "  allowed:  0 or more",
      "  acted on: ?",
    ].join("\n"),
  );
});

Deno.test("a flag or the beginning of a path finds fields", () => {
  assert.match(explainConfig({ field: "--pod_manifest_path" }), /^staticPodPath\n/);
  assert.match(explainConfig({ field: "--v" }), /flag: {5}-v, --v\n/);
  const both = explainConfig({ field: "authorization" });
  assert.match(both, /^authorization\.mode\n/);
  assert.match(both, /\nauthorization\.webhook\.cacheAuthorizedTTL\n/);
  assert.match(explainConfig({ field: "runOnce" }), /the reference has removed this mode; this agent keeps it/);
});

Deno.test("what does not exist is refused with the nearest names", () => {
  assert.throws(() => explainConfig({ field: "maxpod" }), /no configuration field "maxpod"; did you mean maxPods/);
  assert.throws(() => explainConfig({ field: "--maxpods" }), /did you mean --max-pods/);
  assert.throws(() => explainConfig({ field: "__proto__" }), /no configuration field/);
});

Deno.test("the list has every field, and says of each whether it is acted on", () => {
  const lines = explainConfig().split("\n");
  for (const { path } of allFields) {
    const line = lines.find((candidate) => candidate.trim().split(/\s+/)[0] === path);
    const acted = Object.hasOwn(actedOn, path) ? (actedOn[path] === true ? "yes" : "partly") : "no";
    assert(line !== undefined && line.split(/\s+/).includes(acted), path);
  }
});

Deno.test("values in use are shown, header values are not", () => {
  const loaded = {
    v1beta1: {
      maxPods: 5,
      staticPodURLHeader: { Authorization: ["Bearer s3cret"] },
      authentication: { x509: {}, webhook: {}, anonymous: {} },
      authorization: { webhook: {} },
      containerRuntimeEndpoint: "unix:///x",
      iptablesDropBit: 3,
    },
    setFields: ["maxPods", "staticPodURLHeader", "iptablesDropBit"],
  };
  const text = explainConfig({ loaded });
  assert.match(text, /maxPods .* 5 \(set\)/);
  assert.match(text, /port .* 10250 \(default\)/);
  assert.match(text, /does not act on them: .*iptablesDropBit/);
  assert.doesNotMatch(text, /s3cret/);
  assert.match(
    explainConfig({ field: "staticPodURLHeader", loaded }),
    /in use: {3}{"Authorization":"<masked>"} \(set\)/,
  );
});
