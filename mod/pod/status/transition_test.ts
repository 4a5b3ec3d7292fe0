import assert from "@assert";
import type { BoundPod, ContainerState, ContainerStatus, PodSpec, PodStatus } from "../../kube/types.ts";
import { activeDeadline } from "./deadline.ts";
import { illegalTransition, mergeStatus, terminatedStatus } from "./transition.ts";

function podOf(spec: Partial<PodSpec> = {}, annotations: Record<string, string> = {}): BoundPod {
  return {
    metadata: { name: "web", namespace: "ns", uid: "u1", annotations },
    spec: { containers: [{ name: "c" }], ...spec },
  };
}
function status(name: string, state: ContainerState, over: Partial<ContainerStatus> = {}): ContainerStatus {
  return { name, state, lastState: {}, ready: true, restartCount: 0, image: "i", imageID: "", ...over };
}
const waiting = { waiting: { reason: "PodInitializing" } };
const running = { running: {} };
const ended = (exitCode: number) => ({ terminated: { exitCode } });
const lost = {
  terminated: {
    exitCode: 137,
    reason: "ContainerStatusUnknown",
    message: "The container could not be located when the pod was terminated",
  },
};

Deno.test("a container may leave its end only with the right to restart", () => {
  const rule = { action: "Restart", exitCodes: { operator: "In", values: [42] } };
  type Row = [spec: Partial<PodSpec>, code: number, to: ContainerState, legal: boolean];
  const own = (restartPolicy: string) => ({ containers: [{ name: "c", restartPolicy, restartPolicyRules: [rule] }] });
  const rows: Row[] = [
    [{ restartPolicy: "Always" }, 0, running, true],
    [{ restartPolicy: "OnFailure" }, 1, waiting, true],
    [{ restartPolicy: "OnFailure" }, 0, waiting, false],
    [{ restartPolicy: "Never" }, 1, running, false],
    [{ restartPolicy: "Never" }, 1, ended(2), true],
    [{ restartPolicy: "Never", ...own("Never") }, 42, running, true],
    [{ restartPolicy: "Never", ...own("Never") }, 1, running, false],
    [{ restartPolicy: "Never", ...own("Always") }, 0, running, true],
  ];
  for (const [spec, code, to, legal] of rows) {
    const why = illegalTransition(
      podOf(spec),
      { containerStatuses: [status("c", ended(code))] },
      { containerStatuses: [status("c", to)] },
    );
    assert.equal(why === undefined, legal, JSON.stringify([spec, code, to]));
  }
  const never = podOf({
    restartPolicy: "Never",
    initContainers: [{ name: "i" }, { name: "s", restartPolicy: "Always" }],
  });
  const from = { initContainerStatuses: [status("i", ended(0)), status("s", ended(0))] };
  const sidecar = { initContainerStatuses: [status("i", ended(0)), status("s", running)] };
  assert.equal(illegalTransition(never, from, sidecar), undefined);
  const back = { initContainerStatuses: [status("i", running), status("s", running)] };
  assert.match(illegalTransition(never, from, back) ?? "", /^terminated init container i /);
});

Deno.test("a terminated pod: what has no end is lost, the phase is Failed unless terminal or static", () => {
  const pod = podOf({ initContainers: [{ name: "i" }, { name: "j" }] });
  const begun: PodStatus = {
    phase: "Running",
    initContainerStatuses: [status("i", ended(0)), status("j", ended(0))],
    containerStatuses: [status("c", running)],
  };
  const after = terminatedStatus(pod, begun);
  assert.equal(after.phase, "Failed");
  assert.deepEqual(after.containerStatuses?.[0]?.state, lost);
  assert.equal(after.containerStatuses?.[0]?.ready, false);
  assert.deepEqual(after.initContainerStatuses, begun.initContainerStatuses);

  const early: PodStatus = {
    phase: "Pending",
    initContainerStatuses: [status("i", running), status("j", waiting)],
    containerStatuses: [status("c", waiting)],
  };
  const stopped = terminatedStatus(pod, early);
  assert.deepEqual(stopped.initContainerStatuses?.map((s) => s.state), [lost, waiting]);
  assert.deepEqual(stopped.containerStatuses, early.containerStatuses);
  const never = terminatedStatus(pod, {
    ...early,
    initContainerStatuses: [status("i", waiting), status("j", waiting)],
  });
  assert.deepEqual(never.initContainerStatuses?.map((s) => s.state), [lost, waiting]);

  assert.equal(terminatedStatus(pod, { ...begun, phase: "Succeeded" }).phase, "Succeeded");
  const fromFile = podOf({}, { "kubernetes.io/config.source": "file" });
  assert.equal(terminatedStatus(fromFile, begun).phase, "Running");
});

Deno.test("merging for the API: foreign conditions stay, an end is held back while containers may run", () => {
  const pod = podOf();
  const now = Date.UTC(2026, 0, 1);
  const reported: PodStatus = {
    phase: "Running",
    conditions: [{ type: "ex.io/g", status: "True" }, { type: "Ready", status: "True" }],
    resourceClaimStatuses: [{ name: "r" }],
  };
  const next: PodStatus = {
    phase: "Failed",
    reason: "Evicted",
    message: "why",
    conditions: [
      { type: "DisruptionTarget", status: "True" },
      { type: "Ready", status: "True", message: "stale" },
      { type: "ContainersReady", status: "False", reason: "PodFailed" },
    ],
  };
  const held = mergeStatus({ pod, reported, next, mayRun: true, now });
  assert.deepEqual([held.phase, held.reason, held.message], ["Running", undefined, undefined]);
  assert.deepEqual(held.conditions?.map((c) => `${c.type}=${c.status}`), [
    "ex.io/g=True",
    "Ready=True",
    "ContainersReady=False",
  ]);
  const done = mergeStatus({ pod, reported, next, mayRun: false, now });
  assert.deepEqual([done.phase, done.reason, done.message], ["Failed", "Evicted", "why"]);
  assert.deepEqual(done.conditions, [
    { type: "ex.io/g", status: "True" },
    { type: "DisruptionTarget", status: "True" },
    { type: "Ready", status: "False", reason: "PodFailed", lastTransitionTime: "2026-01-01T00:00:00Z" },
    { type: "ContainersReady", status: "False", reason: "PodFailed" },
  ]);
  assert.deepEqual(done.resourceClaimStatuses, [{ name: "r" }]);
});

Deno.test("the active deadline counts from the start time", () => {
  const startTime = "2026-01-01T00:00:00Z";
  const at = (s: number) => Date.parse(startTime) + s * 1000;
  const pod = podOf({ activeDeadlineSeconds: 30 });
  assert.deepEqual(activeDeadline(pod, { startTime }, at(10)), { exceeded: false, remainingMs: 20_000 });
  assert.deepEqual(activeDeadline(pod, { startTime }, at(30)), { exceeded: true, remainingMs: 0 });
  assert.deepEqual(activeDeadline(pod, { startTime }, at(99)), { exceeded: true, remainingMs: 0 });
  assert.deepEqual(activeDeadline({ ...pod, status: { startTime } }, undefined, at(29))?.remainingMs, 1000);
  for (const [p, s] of [[podOf(), { startTime }], [pod, {}], [pod, undefined], [pod, { startTime: "soon" }]] as const) {
    assert.equal(activeDeadline(p, s, at(99)), undefined);
  }
});
