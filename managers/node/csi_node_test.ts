import assert from "@assert";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { FakeApi } from "../../mod/kube/api/fake/fake_api.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import { ensureCsiNode } from "./csi_node.ts";

function world() {
  const clock = new FakeClock();
  const api = new FakeApi({ clock });
  const log = new RecordingLogger();
  const node = api.create(resources.nodes, { metadata: { name: "n1" } });
  const client = api.client("main", { node: "n1" });
  const { signal } = new AbortController();
  return {
    clock,
    api,
    log,
    node,
    ensure: () => ensureCsiNode({ client, node: () => Promise.resolve(node), clock, log }, signal),
    found: () => api.get(resources.csiNodes, { name: "n1" }),
  };
}

const migrated = /^kubernetes\.io\/aws-ebs,.*,kubernetes\.io\/vsphere-volume$/;

Deno.test("a CSINode without drivers belongs to the node, once it could be made", async () => {
  const w = world();
  w.api.faults.add({ kind: "unreachable" }, {}, 2);
  const done = w.ensure();
  await w.clock.advance(1500);
  await done;
  assert.deepEqual(w.found()?.spec, { drivers: [] });
  assert.deepEqual(w.found()?.metadata?.ownerReferences, [
    { apiVersion: "v1", kind: "Node", name: "n1", uid: w.node.metadata?.uid ?? "" },
  ]);
  assert.match(w.found()?.metadata?.annotations?.["storage.alpha.kubernetes.io/migrated-plugins"] ?? "", migrated);
  assert.equal(w.log.lines.length, 1);
  await w.ensure();
  assert.equal(w.api.calls.filter(({ verb }) => verb === "create").length, 1);
});

Deno.test("an existing one keeps its drivers", async () => {
  const w = world();
  const driver = { name: "d", nodeID: "x", topologyKeys: [] };
  w.api.create(resources.csiNodes, { metadata: { name: "n1" }, spec: { drivers: [driver] } });
  await w.ensure();
  assert.equal(w.found()?.spec.drivers[0]?.name, "d");
  assert.match(w.found()?.metadata?.annotations?.["storage.alpha.kubernetes.io/migrated-plugins"] ?? "", migrated);
});
