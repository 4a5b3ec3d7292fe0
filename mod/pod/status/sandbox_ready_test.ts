import assert from "@assert";
import type { BoundPod } from "../../kube/types.ts";
import { withSandboxReady } from "./sandbox_ready.ts";

const pod: BoundPod = {
  metadata: { name: "a", namespace: "default", uid: "1", generation: 3 },
  spec: { containers: [] },
};
const ready = {
  type: "PodReadyToStartContainers",
  observedGeneration: 3,
  status: "True",
  lastTransitionTime: "2026-01-01T00:00:01Z",
};

Deno.test("the condition turns true once, in its place, with its time and generation", () => {
  const now = Date.UTC(2026, 0, 1, 0, 0, 1, 7);
  const other = { type: "Ready", status: "False" };
  const status = { phase: "Pending", conditions: [{ ...ready, status: "False" }, other] };
  assert.deepEqual(withSandboxReady(pod, status, now), { phase: "Pending", conditions: [ready, other] });
  assert.deepEqual(withSandboxReady(pod, {}, now), { conditions: [ready] });
  assert.equal(withSandboxReady(pod, { conditions: [ready] }, now + 5000), undefined);
});
