import assert from "@assert";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import { FakeApi } from "../../mod/kube/api/fake/fake_api.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import { ApiError } from "../../mod/kube/api/types.ts";
import { microTime, NodeLease } from "./lease.ts";

const name = { namespace: "kube-node-lease", name: "n1" };

function world() {
  const clock = new FakeClock();
  const api = new FakeApi({ clock });
  api.create(resources.namespaces, { metadata: { name: "kube-node-lease" } });
  const log = new RecordingLogger();
  const scope = new Scope("test");
  const state: { uid: string | undefined } = { uid: "node-uid" };
  const lease = new NodeLease({
    client: api.client("heartbeat", { node: "n1", timeoutMs: 10_000 }),
    nodeName: "n1",
    durationSeconds: 40,
    nodeUid: () => Promise.resolve(state.uid),
    clock,
    random: () => 0,
    log,
  });
  scope.spawn("lease", (signal) => lease.run(signal));
  return {
    clock,
    api,
    log,
    scope,
    state,
    lease: () => api.get(resources.leases, name),
    verbs: () => api.calls.map(({ verb }) => verb),
    [Symbol.asyncDispose]: () => scope.close(),
  };
}

Deno.test("the lease is made with its holder, owner and times, and renewed each quarter of its duration", async () => {
  await using w = world();
  await w.clock.advance(0);
  assert.deepEqual(w.lease()?.spec, {
    holderIdentity: "n1",
    leaseDurationSeconds: 40,
    renewTime: microTime(w.clock.now()),
  });
  assert.deepEqual(w.lease()?.metadata?.ownerReferences, [
    { apiVersion: "v1", kind: "Node", name: "n1", uid: "node-uid" },
  ]);
  await w.clock.advance(30_000);
  assert.equal(w.lease()?.spec?.renewTime, microTime(w.clock.now()));
  assert.deepEqual(w.verbs(), ["get", "create", "update", "update", "update"]);
  assert.equal(microTime(Date.UTC(2026, 0, 2, 3, 4, 5, 67)), "2026-01-02T03:04:05.067000Z");
});

Deno.test("without the node's object there is no lease; it comes with the object", async () => {
  await using w = world();
  w.state.uid = undefined;
  await w.clock.advance(15_000);
  assert.equal(w.lease(), undefined);
  w.state.uid = "u";
  await w.clock.advance(10_000);
  assert.equal(w.lease()?.metadata?.ownerReferences?.[0]?.uid, "u");
});

Deno.test("a lease that others changed or deleted is taken up again", async () => {
  await using w = world();
  await w.clock.advance(0);
  w.api.merge(resources.leases, name, { spec: { leaseDurationSeconds: 7 } });
  await w.clock.advance(10_000);
  assert.equal(w.lease()?.spec?.leaseDurationSeconds, 40);
  assert.deepEqual(w.verbs().slice(2), ["update", "get", "update"]);
  w.api.remove(resources.leases, name);
  await w.clock.advance(10_000);
  assert(w.lease());
});

Deno.test("an existing lease is taken over at the start", async () => {
  await using w = world();
  w.api.create(resources.leases, { metadata: name, spec: { holderIdentity: "n1", renewTime: microTime(0) } });
  await w.clock.advance(0);
  assert.equal(w.lease()?.spec?.renewTime, microTime(w.clock.now()));
  assert.equal(w.lease()?.metadata?.ownerReferences?.[0]?.uid, "node-uid");
});

Deno.test("renewal fails: five tries, then waits of up to 7 s until the server is back", async () => {
  await using w = world();
  await w.clock.advance(0);
  const calls = w.api.calls.length;
  const fault = w.api.faults.add({ kind: "unreachable" });
  await w.clock.advance(10_000);
  assert.equal(w.verbs().slice(calls).filter((verb) => verb === "update").length, 5);
  await w.clock.advance(60_000);
  const gets = w.api.calls.slice(calls).filter(({ verb }) => verb === "get").map(({ at }) => at);
  assert.deepEqual(gets.slice(1, 4).map((at, i) => at - (gets[i] ?? 0)), [200, 400, 800]);
  assert.equal((gets.at(-1) ?? 0) - (gets.at(-2) ?? 0), 7000);
  fault[Symbol.dispose]();
  await w.clock.advance(7000);
  assert.equal(w.lease()?.spec?.renewTime?.slice(0, 10), microTime(w.clock.now()).slice(0, 10));
  assert((Date.parse(w.lease()?.spec?.renewTime ?? "") || 0) > w.clock.now() - 7001);
});

Deno.test("a server in trouble for one call costs nothing", async () => {
  await using w = world();
  await w.clock.advance(0);
  const error = new ApiError("etcd is away", { status: 500, reason: "InternalError" });
  w.api.faults.add({ kind: "status", error }, { verb: "update" }, 2);
  await w.clock.advance(10_000);
  assert.equal(w.lease()?.spec?.renewTime, microTime(w.clock.now()));
});
