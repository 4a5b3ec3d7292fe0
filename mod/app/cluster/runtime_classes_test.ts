import assert from "@assert";
import { FakeClock, turn } from "../../base/fake_clock.ts";
import { silent } from "../../base/log.ts";
import { seeded } from "../../base/random.ts";
import { Scope } from "../../base/scope.ts";
import { FakeApi } from "../../kube/api/fake/fake_api.ts";
import { resources } from "../../kube/api/resources.ts";
import { runtimeClassesPart } from "./runtime_classes.ts";
import type { ClusterContext } from "./types.ts";

const { signal } = new AbortController();

function world() {
  const clock = new FakeClock();
  const api = new FakeApi({ clock });
  const scope = new Scope("test");
  const client = api.client("main", { node: "n1" });
  const clients = { main: client, heartbeat: client, events: client };
  const part = runtimeClassesPart(
    { clients, clock, random: seeded(1), log: silent, scope } as unknown as ClusterContext,
  );
  const start = () => part.start?.(undefined as never, {});
  const handler = (name: string) => part.runtimeHandler?.(name, signal) ?? Promise.reject(new Error("none"));
  return { clock, api, scope, start, handler };
}

const settle = async () => {
  for (let i = 0; i < 50; i++) await turn();
};

Deno.test("runtime classes: the handler by name, as classes come and go", async () => {
  const { api, scope, start, handler } = world();
  api.create(resources.runtimeClasses, { metadata: { name: "kata" }, handler: "kata-qemu" });
  start();
  await settle();
  assert.equal(await handler("kata"), "kata-qemu");
  await assert.rejects(handler("gvisor"), /^KubeletError: runtimeclass\.node\.k8s\.io "gvisor" not found$/);
  api.create(resources.runtimeClasses, { metadata: { name: "gvisor" }, handler: "runsc" });
  api.delete(resources.runtimeClasses, { name: "kata" });
  await settle();
  assert.equal(await handler("gvisor"), "runsc");
  await assert.rejects(handler("kata"), /not found/);
  await scope.close();
});

Deno.test("runtime classes: a pod waits a moment for the first list, then its sandbox fails", async () => {
  const { clock, api, scope, start, handler } = world();
  api.create(resources.runtimeClasses, { metadata: { name: "kata" }, handler: "kata-qemu" });
  api.reach = "refused";
  start();
  await settle();
  const failing = assert.rejects(
    handler("kata"),
    /failed to lookup RuntimeClass kata: the API server has not been heard/,
  );
  await settle();
  await clock.advance(5_000);
  await failing;
  const waiting = handler("kata");
  api.reach = "up";
  for (let i = 0; i < 100; i++) {
    await clock.advance(40);
    await settle();
  }
  assert.equal(await waiting, "kata-qemu");
  await scope.close();
});
