import assert from "@assert";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { silent } from "../../mod/base/log.ts";
import { seeded } from "../../mod/base/random.ts";
import { Scope } from "../../mod/base/scope.ts";
import { FakeApi } from "../../mod/kube/api/fake/fake_api.ts";
import { createInformer } from "../../mod/kube/api/informer.ts";
import type { BoundPod, LabelSelector } from "../../mod/kube/types.ts";
import { labelsFit } from "./label_selector.ts";
import { type ClusterTrustBundle, clusterTrustBundles, TrustBundles } from "./trust_bundles.ts";

Deno.test("label selectors: table", () => {
  const labels = { a: "1", b: "2" };
  const expression = (key: string, operator: string, values?: string[]): LabelSelector => ({
    matchExpressions: [{ key, operator, ...(values ? { values } : {}) }],
  });
  const cases: [LabelSelector | undefined, boolean][] = [
    [undefined, false],
    [{}, true],
    [{ matchLabels: { a: "1" } }, true],
    [{ matchLabels: { a: "2" } }, false],
    [{ matchLabels: { constructor: "1" } }, false],
    [expression("a", "In", ["0", "1"]), true],
    [expression("c", "In", ["1"]), false],
    [expression("a", "NotIn", ["1"]), false],
    [expression("c", "NotIn", ["1"]), true],
    [expression("a", "Exists"), true],
    [expression("c", "Exists"), false],
    [expression("c", "DoesNotExist"), true],
    [expression("a", "DoesNotExist"), false],
    [{ matchLabels: { a: "1" }, ...expression("b", "In", ["3"]) }, false],
  ];
  for (const [selector, expected] of cases) {
    assert.equal(labelsFit(selector, labels), expected, JSON.stringify(selector));
  }
  assert.throws(() => labelsFit(expression("a", "Near"), labels), /not a valid label selector operator/);
});

const pem = (text: string) => {
  const body = btoa(text.repeat(30)).match(/.{1,64}/g)?.join("\n");
  return `-----BEGIN CERTIFICATE-----\n${body}\n-----END CERTIFICATE-----\n`;
};
const pod = (uid: string): BoundPod => ({ metadata: { name: uid, namespace: "ns", uid }, spec: { containers: [] } });

Deno.test("bundles: by name or by signer and labels, each certificate once; changes are told to those who show them", async () => {
  const clock = new FakeClock();
  const api = new FakeApi({ clock });
  const scope = new Scope("bundles");
  await using _ = scope;
  const told: string[] = [];
  let watches = 0;
  const bundles = new TrustBundles({
    watch: (onChange) => {
      watches++;
      const options = { clock, random: seeded(1), log: silent, onChange };
      const informer = createInformer({ client: api.client(), resource: clusterTrustBundles, ...options });
      scope.spawn("watch", (signal) => informer.run(signal));
      return informer;
    },
    onChange: (uid) => void told.push(uid),
  });
  const create = (name: string, trustBundle: string, signerName?: string, labels: Record<string, string> = {}) =>
    api.create<ClusterTrustBundle>(clusterTrustBundles, {
      metadata: { name, labels },
      spec: { trustBundle, ...(signerName === undefined ? {} : { signerName }) },
    });
  create("one", `# a comment\n${pem("b")}${pem("a")}`);
  create("s:1", pem("c"), "s/x", { env: "prod" });
  create("s:2", `${pem("c")}${pem("d")}`, "s/x", { env: "prod" });
  create("t:1", pem("e"), "t/x", { env: "prod" });
  assert.equal(watches, 0, "nobody needs them yet");
  assert.throws(() => bundles.anchors({ name: "one" }, pod("u")), /informer has not yet synced/);
  for (let i = 0; i < 5; i++) await turn();
  told.length = 0;
  const selector = { matchLabels: { env: "prod" } };
  assert.equal(bundles.anchors({ name: "one" }, pod("u")), pem("a") + pem("b"));
  assert.equal(bundles.anchors({ signerName: "s/x", labelSelector: selector }, pod("v")), pem("c") + pem("d"));
  assert.equal(bundles.anchors({ name: "none", optional: true }, pod("u")), "");
  assert.equal(bundles.anchors({ signerName: "s/x", optional: true }, pod("u")), "");
  assert.throws(() => bundles.anchors({ name: "none" }, pod("u")), { status: 404, message: /"none" not found/ });
  assert.throws(() => bundles.anchors({ signerName: "s/x" }, pod("u")), /matched zero ClusterTrustBundles/);
  assert.throws(() => bundles.anchors({}, pod("u")), /requires either name or signerName/);
  create("s:3", pem("f"), "s/x");
  for (let i = 0; i < 5; i++) await turn();
  assert.deepEqual(told.sort(), ["u", "v"]);
  bundles.forget("u");
  api.remove(clusterTrustBundles, { name: "s:3" });
  for (let i = 0; i < 5; i++) await turn();
  assert.deepEqual(told, ["u", "v", "v"]);
  assert.equal(watches, 1);
});
