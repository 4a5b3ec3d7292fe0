import assert from "@assert";
import type { BoundPod, PodSpec } from "../kube/types.ts";
import { graceSeconds, killPlan, killWaitMs, podOfContainer, stopSeconds, workerGrace } from "./kill.ts";
import type { ObservedContainer } from "./observed.ts";

function podWith(spec: Partial<PodSpec>, deletionGracePeriodSeconds?: number): BoundPod {
  return {
    metadata: {
      name: "web",
      namespace: "default",
      uid: "u1",
      ...(deletionGracePeriodSeconds === undefined ? {} : { deletionGracePeriodSeconds }),
    },
    spec: { containers: [{ name: "c" }], ...spec },
  };
}
const probed = {
  name: "c",
  livenessProbe: { terminationGracePeriodSeconds: 7 },
  startupProbe: { terminationGracePeriodSeconds: 9 },
};

Deno.test("base grace: override, deletion, probe, spec, 2 s", () => {
  const rows: [Parameters<typeof graceSeconds>[0], number][] = [
    [{ pod: podWith({}) }, 2],
    [{ pod: podWith({ terminationGracePeriodSeconds: 30 }) }, 30],
    [{ pod: podWith({ terminationGracePeriodSeconds: 30 }, 5) }, 5],
    [{ pod: podWith({ terminationGracePeriodSeconds: 30 }, 0) }, 0],
    [{ pod: podWith({ terminationGracePeriodSeconds: 30 }), container: probed, probe: "liveness" }, 7],
    [{ pod: podWith({ terminationGracePeriodSeconds: 30 }), container: probed, probe: "startup" }, 9],
    [{ pod: podWith({ terminationGracePeriodSeconds: 30 }), container: { name: "c" }, probe: "liveness" }, 30],
    [{ pod: podWith({ terminationGracePeriodSeconds: 30 }), container: probed }, 30],
    [{ pod: podWith({ terminationGracePeriodSeconds: 30 }, 5), container: probed, probe: "liveness" }, 5],
    [{ pod: podWith({ terminationGracePeriodSeconds: 30 }, 5), override: 1 }, 1],
    [{ pod: podWith({ terminationGracePeriodSeconds: 30 }, 5), override: 0 }, 0],
  ];
  for (const [input, want] of rows) assert.equal(graceSeconds(input), want, JSON.stringify(input));
});

Deno.test("StopContainer gets what preStop and waiting left, in whole seconds, at least 2 s", () => {
  const rows: [grace: number, preStop: number, waited: number, want: number][] = [
    [30, 0, 0, 30],
    [30, 4_900, 0, 26],
    [30, 4_900, 3_200, 23],
    [30, 29_500, 0, 2],
    [30, 60_000, 0, 2],
    [1, 0, 0, 2],
    [0, 0, 0, 2],
    [-5, 0, 0, 2],
  ];
  for (const [grace, preStop, waited, want] of rows) assert.equal(stopSeconds(grace, preStop, waited), want);
});

Deno.test("sidecars wait for regular containers and for later sidecars; nothing else waits", () => {
  const pod = podWith({
    terminationGracePeriodSeconds: 30,
    initContainers: [
      { name: "s1", restartPolicy: "Always" },
      { name: "setup" },
      { name: "s2", restartPolicy: "Always" },
      { name: "s3", restartPolicy: "Always" },
    ],
    containers: [{ name: "a", lifecycle: { preStop: { sleep: { seconds: 1 } } } }, { name: "b" }],
  });
  const live = ["s1", "s2", "s3", "a"].map((name) => ({ id: `id-${name}`, name }));
  const plan = new Map(killPlan({ pod, live }).map((k) => [k.name, k]));
  assert.deepEqual(plan.get("a")?.waitFor, []);
  assert.deepEqual(plan.get("a")?.preStop, { sleep: { seconds: 1 } });
  assert.deepEqual(plan.get("s3")?.waitFor, ["id-a"]);
  assert.deepEqual(plan.get("s2")?.waitFor, ["id-a", "id-s3"]);
  assert.deepEqual(plan.get("s1")?.waitFor, ["id-a", "id-s3", "id-s2"]);

  const atOnce = killPlan({ pod, live, override: 0 });
  assert.ok(atOnce.every((k) => k.waitFor.length === 0 && k.preStop === undefined && k.graceSeconds === 0));
  const gone = killPlan({ pod, live: live.filter((c) => c.name === "s1") });
  assert.deepEqual(gone.map((k) => k.waitFor), [[]]);
});

Deno.test("a container that the spec no longer has is killed with the pod's grace and no hook", () => {
  const plan = killPlan({ pod: podWith({ terminationGracePeriodSeconds: 30 }), live: [{ id: "x", name: "old" }] });
  assert.deepEqual(plan, [{ id: "x", name: "old", graceSeconds: 30, waitFor: [] }]);
});

Deno.test("a worker's grace is the smallest it has seen, at least 1 s", () => {
  const spec = { terminationGracePeriodSeconds: 30 };
  const rows: [Parameters<typeof workerGrace>[0], number, boolean][] = [
    [{ pod: podWith({}) }, 1, false],
    [{ pod: podWith(spec) }, 30, false],
    [{ pod: podWith(spec, 10) }, 10, false],
    [{ pod: podWith(spec, 60) }, 60, false],
    [{ pod: podWith(spec, 0) }, 1, false],
    [{ pod: podWith({ terminationGracePeriodSeconds: -3 }) }, 1, false],
    [{ pod: podWith(spec, 10), override: 3 }, 3, false],
    [{ pod: podWith(spec, 10), override: 20 }, 10, false],
    [{ pod: podWith(spec, 10), current: 30 }, 10, true],
    [{ pod: podWith(spec, 10), current: 5 }, 5, false],
    [{ pod: podWith(spec), current: 30, override: 1 }, 1, true],
    [{ pod: podWith(spec), current: 30 }, 30, false],
  ];
  for (const [input, seconds, shortened] of rows) {
    assert.deepEqual(workerGrace(input), { seconds, shortened }, JSON.stringify(input));
  }
  assert.deepEqual([killWaitMs(1), killWaitMs(30)], [10_000, 45_000]);
});

Deno.test("what a kill takes is read back from a container's annotations, whatever is in them", () => {
  const base: ObservedContainer = {
    id: "i",
    name: "c",
    restartCount: 0,
    sandboxId: "s",
    state: "running",
    createdAt: 1,
    startedAt: 1,
    finishedAt: 0,
    exitCode: 0,
    reason: "",
    message: "",
    image: "img",
    imageRef: "ref",
    hash: undefined,
    annotations: {},
    logPath: "",
    mounts: [],
  };
  const ref = { name: "web", namespace: "default", uid: "u1" };
  const pod = podOfContainer({
    ...base,
    annotations: {
      "io.kubernetes.pod.terminationGracePeriod": "12",
      "io.kubernetes.pod.deletionGracePeriod": "4",
      "io.kubernetes.container.preStopHandler": '{"exec":{"command":["x"]}}',
    },
  }, ref);
  assert.equal(graceSeconds({ pod }), 4);
  assert.deepEqual(killPlan({ pod, live: [base] })[0]?.preStop, { exec: { command: ["x"] } });
  const bad = podOfContainer({
    ...base,
    annotations: {
      "io.kubernetes.pod.terminationGracePeriod": "1e9999",
      "io.kubernetes.container.preStopHandler": "{not json",
    },
  }, ref);
  assert.equal(graceSeconds({ pod: bad }), 2);
  assert.equal(killPlan({ pod: bad, live: [base] })[0]?.preStop, undefined);
});
