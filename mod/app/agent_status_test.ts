import assert from "@assert";
import { FakeClock } from "../base/fake_clock.ts";
import type { BoundPod } from "../kube/types.ts";
import type { ObservedPod } from "../pod/observed.ts";
import { statusOf } from "./agent_status.ts";

const pod: BoundPod = {
  metadata: { name: "p", namespace: "ns", uid: "u" },
  spec: { restartPolicy: "Never", containers: [{ name: "main", image: "i" }] },
};
const observed: ObservedPod = {
  uid: "u",
  name: "p",
  namespace: "ns",
  readAt: 5000,
  sandboxes: [{
    id: "s",
    attempt: 0,
    createdAt: 1000,
    ready: true,
    handler: "",
    hostNetwork: false,
    hasNetwork: true,
    ips: ["10.0.0.1"],
  }],
  containers: [],
};

Deno.test("a pod that was stopped has no sandbox to start in, whatever the runtime still lists", () => {
  const facts = {
    clock: new FakeClock(10_000),
    probes: () => ({}),
    runtimeName: "containerd",
    hostIPs: () => [],
  };
  const startErrors = new Map();
  const told = (stopped: boolean) =>
    statusOf(facts, pod, observed, {
      previous: undefined,
      actions: undefined,
      failed: undefined,
      podIPs: [],
      startErrors,
      terminating: true,
      stopped,
    }).conditions
      ?.find(({ type }) => type === "PodReadyToStartContainers")?.status;
  assert.equal(told(false), "True");
  assert.equal(told(true), "False");
});
