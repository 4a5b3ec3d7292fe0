import assert from "@assert";
import type { BoundPod, ContainerStatus, PodStatus } from "../kube/types.ts";
import { expectAnnotation } from "./expectation.ts";
import { judge, table } from "./run_once.ts";

const pod = (expect?: string): BoundPod => ({
  metadata: {
    name: "web",
    namespace: "default",
    uid: "1",
    ...(expect === undefined ? {} : { annotations: { [expectAnnotation]: expect } }),
  },
  spec: { containers: [{ name: "c", resources: {} }] },
});
const container = (state: ContainerStatus["state"], ready = false, restartCount = 0): ContainerStatus => ({
  name: "c",
  state: state ?? {},
  lastState: {},
  ready,
  restartCount,
  image: "i",
  imageID: "",
});
const now = Date.UTC(2026, 0, 1);
const never: Partial<BoundPod> = { spec: { containers: [{ name: "c", resources: {} }], restartPolicy: "Never" } };
const runningFor = (ms: number): PodStatus => ({
  phase: "Running",
  conditions: [{ type: "Ready", status: "True" }],
  containerStatuses: [container({ running: { startedAt: new Date(now - ms).toISOString() } }, true)],
});
const readyCondition = [{ type: "Ready", status: "True" }];
const waiting = (reason: string) => container({ waiting: { reason, message: `because of ${reason}` } });

const cases: {
  name: string;
  status?: PodStatus;
  expect?: string;
  ok: boolean | undefined;
  reason?: RegExp;
  pod?: Partial<BoundPod>;
}[] = [
  { name: "no status yet", ok: undefined },
  { name: "ready", status: { phase: "Running", conditions: readyCondition }, ok: true },
  {
    name: "running, not ready",
    status: { phase: "Running", containerStatuses: [container({ running: {} })] },
    ok: undefined,
  },
  { name: "succeeded", status: { phase: "Succeeded" }, ok: true },
  { name: "failed", status: { phase: "Failed", message: "exit 3" }, ok: false, reason: /exit 3/ },
  { name: "creating", status: { phase: "Pending", containerStatuses: [waiting("ContainerCreating")] }, ok: undefined },
  {
    name: "crash loop",
    status: { phase: "Running", containerStatuses: [waiting("CrashLoopBackOff")] },
    ok: false,
    reason: /because of CrashLoopBackOff/,
  },
  {
    name: "image that will not come",
    status: { phase: "Pending", containerStatuses: [waiting("ErrImageNeverPull")] },
    ok: false,
  },
  {
    name: "first failed pull may still come right",
    status: { phase: "Pending", containerStatuses: [waiting("ErrImagePull")] },
    ok: undefined,
  },
  { name: "may end by itself, has just become ready", pod: never, status: runningFor(1000), ok: undefined },
  { name: "may end by itself, goes on", pod: never, status: runningFor(11_000), ok: true },
  {
    name: "expected crash loop",
    expect: "crashloop",
    status: { phase: "Running", containerStatuses: [waiting("CrashLoopBackOff")] },
    ok: true,
  },
  { name: "expected crash loop not there yet", expect: "crashloop", status: { phase: "Running" }, ok: undefined },
  { name: "expected failure", expect: "failed", status: { phase: "Failed" }, ok: true },
  { name: "expected failure that succeeds", expect: "failed", status: { phase: "Succeeded" }, ok: false },
];

for (const c of cases) {
  Deno.test(`run-once judges: ${c.name}`, () => {
    const verdict = judge({ ...pod(c.expect), ...c.pod }, c.status, now);
    assert.equal(verdict.ok, c.ok);
    if (c.reason) assert.match(verdict.reason, c.reason);
  });
}

Deno.test("the table shows what ails a pod", () => {
  const rows = [
    judge(pod(), { phase: "Failed", message: "exit 3" }, now),
    judge(pod(), { phase: "Running", conditions: readyCondition, podIP: "10.0.0.1" }, now),
  ];
  const text = table(rows);
  assert.match(text, /^NAME +READY +STATUS +RESTARTS +IP\n/);
  assert.match(text, /default\/web +0\/1 +Failed +0 +- +exit 3\n/);
  assert.match(text, /10\.0\.0\.1\n$/);
});

Deno.test("sidecars count among the ready", () => {
  const spec = {
    containers: [{ name: "c", resources: {} }],
    initContainers: [{ name: "s", restartPolicy: "Always", resources: {} }],
  };
  const status: PodStatus = {
    phase: "Running",
    containerStatuses: [container({ running: {} }, true)],
    initContainerStatuses: [{ ...container({ running: {} }, true), name: "s" }],
  };
  assert.equal(judge({ ...pod(), spec }, status, now).ready, "2/2");
});
