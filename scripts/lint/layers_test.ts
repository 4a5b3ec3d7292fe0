import assert from "@assert";
import { importFault, layerOf, resolveImport } from "./layers.ts";
import plugin from "./plugin.ts";

Deno.test("layers: the import table", () => {
  const table: [from: string, to: string, typeOnly: boolean, allowed: boolean][] = [
    ["mod/base/clock.ts", "mod/base/errors.ts", false, true],
    ["mod/base/clock.ts", "mod/kube/types.ts", true, false],
    ["mod/kube/pod.ts", "mod/base/errors.ts", false, true],
    ["mod/kube/pod.ts", "cri/api.ts", true, false],
    ["cri/grpc.ts", "mod/base/scope.ts", false, true],
    ["cri/grpc.ts", "mod/kube/types.ts", false, false],
    ["mod/pod/decide/x.ts", "cri/api.ts", true, true],
    ["mod/pod/decide/x.ts", "cri/api.ts", false, false],
    ["mod/pod/decide/x.ts", "cri/gen/runtime_pb.ts", false, true],
    ["mod/pod/decide/x.ts", "managers/probes/types.ts", true, false],
    ["managers/probes/worker.ts", "managers/probes/types.ts", false, true],
    ["managers/probes/worker.ts", "managers/status/types.ts", true, true],
    ["managers/probes/worker.ts", "managers/status/types.ts", false, false],
    ["managers/probes/worker.ts", "managers/status/manager.ts", true, false],
    ["managers/probes/worker.ts", "mod/sync/pleg.ts", false, false],
    ["mod/sources/file.ts", "mod/kube/pod.ts", false, true],
    ["mod/sources/file.ts", "cri/api.ts", false, false],
    ["mod/sync/pleg.ts", "managers/probes/manager.ts", false, true],
    ["mod/sync/pleg.ts", "mod/app/run.ts", false, false],
    ["mod/server/x.ts", "mod/sync/pleg.ts", false, true],
    ["mod/app/run.ts", "mod/server/x.ts", false, true],
    ["mod/app/run.ts", "scripts/lib/table.ts", false, false],
    ["mod/app/run.ts", "tests/node/harness.ts", true, false],
    ["main.ts", "mod/app/run.ts", false, true],
    ["main.ts", "mod/base/clock.ts", false, false],
    ["scripts/dev.ts", "mod/base/clock.ts", false, true],
    ["tests/node/x_test.ts", "mod/app/run.ts", false, true],
  ];
  for (const [from, to, typeOnly, allowed] of table) {
    assert.equal(importFault(from, to, typeOnly) === undefined, allowed, `${from} → ${to} (type only: ${typeOnly})`);
  }
});

Deno.test("layers: a fault says who, what and what is allowed", () => {
  assert.match(
    importFault("mod/kube/a.ts", "mod/sync/b.ts", false) ?? "",
    /mod\/kube must not import mod\/sync\/b.ts.*only base/,
  );
});

Deno.test("layers: paths", () => {
  assert.equal(layerOf("mod/constructor/x.ts"), "outside");
  assert.equal(layerOf("docs/x.ts"), "outside");
  assert.equal(resolveImport("mod/sync/pleg.ts", "../../cri/api.ts"), "cri/api.ts");
  assert.equal(resolveImport("main.ts", "./mod/app/run.ts"), "mod/app/run.ts");
  assert.equal(resolveImport("main.ts", "npm:yaml"), undefined);
});

Deno.test("layers: the lint rule reports imports, re-exports and dynamic imports, each once", () => {
  const file = new URL("../../mod/kube/made_up.ts", import.meta.url).pathname;
  const report = (source: string) => Deno.lint.runPlugin(plugin, file, source).map((one) => one.message);
  assert.equal(report('import { a } from "../sync/pleg.ts";').length, 1);
  assert.equal(report('export * from "../sync/pleg.ts";').length, 1);
  assert.equal(report('export { a } from "../sync/pleg.ts";').length, 1);
  assert.equal(report('const a = await import("../sync/pleg.ts");').length, 1);
  assert.deepEqual(report('import { a } from "../base/clock.ts"; import y from "yaml"; export { a, y };'), []);
  const pod = new URL("../../mod/pod/made_up.ts", import.meta.url).pathname;
  const types = 'import { type A } from "../../cri/api.ts"; import type { B } from "../../cri/api.ts";';
  assert.deepEqual(Deno.lint.runPlugin(plugin, pod, types), []);
});
