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

Deno.test("what an earlier life kept stands until there is something newer, and goes with the pod", () => {
  const removed: string[] = [];
  const manager = new StatusManager({ onRemove: (uid) => removed.push(uid) });
  manager.restore(new Map([["1", { phase: "Running" }], ["2", { phase: "Failed" }]]));
  assert.equal(manager.get("1")?.phase, "Running");
  manager.set(pod("1"), { phase: "Succeeded" });
  assert.deepEqual([manager.get("1")?.phase, [...manager.uids()].sort()], ["Succeeded", ["1", "2"]]);
  manager.remove("2");
  manager.remove("3");
  assert.deepEqual([removed, manager.get("2")], [["2"], undefined]);
});

Deno.test("the end of a pod that nobody wants is told but not kept; a later pod of its UID is kept again", () => {
  const told: [string | undefined, boolean][] = [];
  const removed: string[] = [];
  const manager = new StatusManager({
    onChange: (e) => told.push([e.status.phase, e.keep]),
    onRemove: (uid) => removed.push(uid),
  });
  manager.set(pod("1"), { phase: "Running" });
  manager.leave("1");
  assert.deepEqual(removed, ["1"]);
  manager.set(pod("1"), { phase: "Failed" });
  assert.equal(manager.get("1")?.phase, "Failed");
  manager.remove("1");
  manager.set(pod("1"), { phase: "Pending" });
  assert.deepEqual(told, [["Running", true], ["Failed", false], ["Pending", true]]);
});

Deno.test("what the API server knows counts only while this agent knows nothing", () => {
  const manager = new StatusManager();
  manager.restore(new Map([["kept", { phase: "Running" }]]));
  manager.set(pod("own"), { phase: "Running" });
  for (const uid of ["kept", "own", "new"]) manager.adopt(uid, { phase: "Failed" });
  assert.deepEqual(["kept", "own", "new"].map((uid) => manager.get(uid)?.phase), ["Running", "Running", "Failed"]);
});

Deno.test("that a pod is finished is told once and stays so; a pod that is gone is told to be forgotten", () => {
  const told: [number, boolean][] = [];
  const forgotten: string[] = [];
  const manager = new StatusManager({
    onChange: (e) => told.push([e.version, e.finished]),
    onForget: (uid) => forgotten.push(uid),
  });
  manager.set(pod("1"), { phase: "Failed" });
  manager.set(pod("1"), { phase: "Failed" }, { finished: true });
  manager.set(pod("1"), { phase: "Failed" });
  manager.set(pod("1"), { phase: "Failed", reason: "x" });
  assert.deepEqual(told, [[1, false], [2, true], [3, true]]);
  manager.leave("1");
  assert.deepEqual(forgotten, []);
  manager.remove("1");
  assert.deepEqual(forgotten, ["1"]);
});
