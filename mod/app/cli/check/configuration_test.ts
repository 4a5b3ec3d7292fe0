import assert from "@assert";
import { FakeHost } from "../../../base/fake_host.ts";
import { checkConfig } from "./configuration.ts";

const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n" +
  "authentication: {webhook: {enabled: false}}\nauthorization: {mode: AlwaysAllow}\n";

async function check(text: string) {
  const host = new FakeHost({ files: { "/c.yaml": head + text, "/sys/fs/cgroup/cgroup.controllers": "cpu\n" } });
  const { config, configProblem, configWarnings, configUnused } = await checkConfig(["--config=c.yaml"], host, "/");
  return { maxPods: config?.maxPods, configProblem, warnings: configWarnings, unused: configUnused };
}

Deno.test("check: what the agent's start warns of is kept: unknown and doubled fields, and those without effect", async () => {
  const text = "maxPodz: 3\nmaxPods: 4\nmaxPods: 5\niptablesDropBit: 3\n";
  const { maxPods, configProblem, warnings, unused } = await check(text);
  assert.deepEqual([maxPods, configProblem, warnings.length, unused.length], [5, undefined, 2, 1]);
  assert.match(warnings.join("\n"), /configuration file \/c\.yaml: .*"maxPods" is given twice/);
  assert.match(
    warnings.join("\n"),
    /configuration file \/c\.yaml: unknown fields are ignored: maxPodz; did you mean maxPods/,
  );
  assert.match(unused.join("\n"), /does not act on them: iptablesDropBit$/);
  assert(warnings.every((text) => !text.includes("\n")), "each is one line of a log");
});

Deno.test("check: a configuration without fault has no warnings, and one that cannot be used keeps its own", async () => {
  assert.deepEqual(await check("maxPods: 5\n"), { maxPods: 5, configProblem: undefined, warnings: [], unused: [] });
  const { maxPods, configProblem, warnings } = await check("maxPodz: 3\nmaxPods: -1\n");
  assert.equal(maxPods, undefined);
  assert.match(configProblem ?? "", /maxPods/);
  assert.match(warnings.join(), /unknown fields are ignored: maxPodz/);
});
