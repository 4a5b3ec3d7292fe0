import assert from "@assert";
import type { LocalPod } from "../../server/local/types.ts";
import { explainImage } from "./explain/image.ts";
import { podList, podTable } from "./ps.ts";

const now = Date.UTC(2026, 0, 1);
const one = (name: string, more: Partial<LocalPod> = {}): LocalPod => ({
  pod: {
    metadata: { name, namespace: "default", uid: `uid-${name}` },
    spec: { containers: [{ name: "c", image: "docker.io/library/web:1", resources: {} }] },
  },
  ...more,
});

Deno.test("ps: a table by name, with rejected and leaving pods", () => {
  const pods = [
    one("b", { status: { phase: "Failed", reason: "OutOfcpu", startTime: new Date(now - 65_000).toISOString() } }),
    one("a", { leaving: true, status: { phase: "Running", podIP: "10.0.0.1" } }),
  ];
  assert.deepEqual(podTable({ pods, left: 3 }, now).split("\n"), [
    "NAMESPACE   NAME   READY   STATUS        RESTARTS   AGE    IP         UID",
    "default     a      0/1     Terminating   0          -      10.0.0.1   uid-a",
    "default     b      0/1     OutOfcpu      0          1m5s   -          uid-b",
    "and 3 pods more",
    "",
  ]);
  assert.equal(podTable({ pods: [], left: 0 }, now), "No pods.\n");
  const [first] = JSON.parse(podList({ pods, left: 0 })).items;
  assert.deepEqual([first.kind, first.metadata.name, first.status.reason], ["Pod", "b", "OutOfcpu"]);
});

Deno.test("explain image: who uses it, under whichever of its names", () => {
  assert.match(explainImage("web:1", [one("a")]), /is used by:\n {2}default\/a, container c/);
  assert.equal(explainImage("web:2", [one("a")]), "Image web:2: no pod of this agent uses it.");
});
