import assert from "@assert";
import type { BoundPod } from "../../mod/kube/types.ts";
import { StatusManager } from "./status_manager.ts";

const pod = (uid: string): BoundPod => ({
  metadata: { name: "a", namespace: "default", uid },
  spec: { containers: [] },
});

Deno.test("an unchanged status is told once", () => {
  const told: number[] = [];
  const manager = new StatusManager({ onChange: (e) => told.push(e.version) });
  manager.set(pod("1"), { phase: "Pending" });
  manager.set(pod("1"), { phase: "Pending" });
  manager.set(pod("1"), { phase: "Running" });
  assert.deepEqual(told, [1, 2]);
  assert.equal(manager.get("1")?.phase, "Running");
});

Deno.test("a pod that is gone is forgotten, and starts anew", () => {
  const manager = new StatusManager();
  manager.set(pod("1"), { phase: "Failed" });
  manager.remove("1");
  assert.equal(manager.get("1"), undefined);
  manager.set(pod("1"), { phase: "Pending" });
  assert.equal([...manager.all()][0]?.version, 1);
});
