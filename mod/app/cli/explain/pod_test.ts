import assert from "@assert";
import { explainPod } from "./pod.ts";
import {
  at,
  type Case,
  container,
  ended,
  isReady,
  loop,
  now,
  pod,
  ready,
  record,
  running,
  stop,
  testCases,
  waits,
  web,
} from "./testing.ts";

const cases: Case[] = [
  {
    name: "crash loop by an exit code",
    status: loop(ended(3, { message: "cannot open /data\n" })),
    says: [
      /: CrashLoopBackOff, 0 of 1 containers ready\n/,
      /Why: Container web ends again and again: its command ended with exit code 3; its last words: cannot open \/data \(30s ago\); it was started 4 times and ended each time\. It is started again 40s after its last end\.\nRemedy: Read what it wrote: kubelet logs -p -c web web-n/,
    ],
  },
  {
    name: "crash loop by success",
    status: loop(ended(0)),
    says: [/its command ended by itself, with success/, /Remedy: A container that is to go on must not end/],
  },
  {
    name: "crash loop by memory",
    status: loop(ended(137, { reason: "OOMKilled" })),
    says: [
      /exit code 137, killed by the kernel: it took more memory than its limit/,
      /Raise resources\.limits\.memory/,
    ],
  },
  {
    name: "crash loop by a liveness probe",
    status: loop(ended(137)),
    records: [stop("LivenessProbe", "Container web failed liveness probe")],
    says: [
      /the agent ended it, as its liveness probe failed \(exit code 137, killed \(SIGKILL\)\)/,
      /Remedy: Find out why the liveness probe fails: kubelet logs -p -c web web-n/,
    ],
  },
  {
    name: "crash loop by a startup probe",
    status: loop(ended(143)),
    records: [stop("StartupProbe", "Container web failed startup probe")],
    says: [/as its startup probe failed \(exit code 143, ended by SIGTERM\)/, /raise startupProbe\.failureThreshold/],
  },
  {
    name: "a probe's kill of long ago does not explain this end",
    status: loop(ended(3)),
    records: [stop("LivenessProbe", "Container web failed liveness probe", 4000)],
    says: [/its command ended with exit code 3/],
    never: /Why:.*probe/,
  },
  {
    name: "crash loop by a command that is not there",
    status: loop(ended(128, { reason: "StartError", message: 'exec: "nope": not found' })),
    says: [/it could not be started: exec: "nope": not found/, /Correct command or args/],
  },
  {
    name: "rejected, as the status tells",
    status: { phase: "Failed", reason: "OutOfcpu", message: "Node didn't have enough resource: cpu" },
    records: [record(60, "Reject", { reason: "OutOfcpu", message: "Node didn't have enough resource: cpu" })],
    says: [
      /: OutOfcpu\n/,
      /Why: This node did not take the pod \(1m ago\): OutOfcpu: Node didn't have enough resource: cpu\.\nRemedy: Lower resources\.requests/,
    ],
  },
  {
    name: "rejected, as only the journal tells",
    records: [record(60, "Reject", { reason: "NodeAffinity", message: "no match" })],
    says: [/: rejected\n/, /NodeAffinity: no match/, /--node-labels/],
  },
  {
    name: "rejected, critical, and nothing to preempt",
    status: {
      phase: "Failed",
      reason: "UnexpectedAdmissionError",
      message:
        "preemption: no set of running pods found to reclaim resources: [(res: cpu, q: 997000), (res: memory, q: 1), ].",
    },
    says: [
      /requests more cpu and memory than is free, and ending less important pods/,
      /Remedy: Lower resources\.requests/,
    ],
  },
  {
    name: "too many pods",
    status: { phase: "Failed", reason: "OutOfpods", message: "m" },
    says: [/Raise maxPods/],
  },
  {
    name: "deadline",
    status: { phase: "Failed", reason: "DeadlineExceeded", message: "m" },
    spec: { activeDeadlineSeconds: 5 },
    says: [/ran longer than its activeDeadlineSeconds \(5\)/],
  },
  {
    name: "evicted",
    status: { phase: "Failed", reason: "Evicted", message: "The node was low on resource: memory. " },
    says: [/to save the node: The node was low on resource: memory/],
  },
  {
    name: "evicted for a limit of its own",
    status: { phase: "Failed", reason: "Evicted", message: 'Usage of EmptyDir volume "a" exceeds the limit "1Mi". ' },
    says: [/kept more on the node's disk than it may/, /raise the limit that the message names/],
    never: /save the node/,
  },
  {
    name: "turned away under pressure",
    status: {
      phase: "Failed",
      reason: "Evicted",
      message: "Pod was rejected: The node had condition: [DiskPressure]. ",
    },
    says: [
      /his node did not take the pod: Evicted: The node had condition: \[DiskPressure\]/,
      /its condition names it/,
    ],
    never: /ended the pod/,
  },
  {
    name: "preempted",
    status: { phase: "Failed", reason: "Preempting", message: "Preempted in order to admit critical pod" },
    says: [/to make room for a critical one/],
  },
  {
    name: "failed for good",
    status: { phase: "Failed", containerStatuses: [container(ended(7))] },
    spec: { restartPolicy: "Never" },
    says: [
      /: Failed\n/,
      /Why: Container web has ended: its command ended with exit code 7 \(30s ago\)/,
      /kubelet logs -c web/,
    ],
  },
  {
    name: "an init container that fails",
    status: {
      phase: "Pending",
      initContainerStatuses: [
        container({ waiting: { reason: "CrashLoopBackOff", message: "" } }, { name: "db", lastState: ended(1) }),
      ],
      containerStatuses: [container({ waiting: { reason: "PodInitializing" } })],
    },
    spec: { initContainers: [{ ...web, name: "db" }] },
    says: [/Why: Init container db ends again and again/],
  },
  {
    name: "an init container that goes on",
    status: {
      phase: "Pending",
      initContainerStatuses: [container({ running: { startedAt: at(300) } }, { name: "db" })],
      containerStatuses: [container({ waiting: { reason: "PodInitializing" } })],
    },
    spec: { initContainers: [{ ...web, name: "db" }] },
    says: [/Init container db runs since 5m; what comes after it waits for its end/],
  },
  {
    name: "not ready",
    status: running(),
    spec: { containers: [{ ...web, readinessProbe: { exec: { command: ["false"] } } }] },
    says: [/Container web runs since 5m, but its readiness probe does not succeed/],
  },
  {
    name: "not started up",
    status: running({ started: false }),
    spec: { containers: [{ ...web, startupProbe: { exec: { command: ["false"] } } }] },
    says: [/its startup probe has not succeeded yet/],
  },
  {
    name: "readiness gate",
    status: running(ready, {
      conditions: [
        { type: "Ready", status: "False", message: 'the status of pod readiness gate "x" is not "True"' },
        { type: "ContainersReady", status: "True" },
      ],
    }),
    says: [/Every container is ready, but the pod is not: the status of pod readiness gate "x"/],
  },
  {
    name: "restarted by a probe, well now",
    status: running({ ...ready, restartCount: 2, lastState: ended(137) }, isReady),
    records: [stop("LivenessProbe", "Container web failed liveness probe")],
    says: [
      /Why: Container web was restarted 2 times; the last time, 30s ago, the agent ended it, as its liveness probe failed/,
    ],
  },
  {
    name: "restarted because its definition changed",
    status: running({ ...ready, restartCount: 1, lastState: ended(0) }, isReady),
    records: [stop("DefinitionChanged", "Container web definition changed")],
    says: [/was restarted once; the last time, 30s ago, the agent ended it: Container web definition changed/],
  },
  {
    name: "well",
    status: running(ready, isReady),
    says: [/Why: Nothing is wrong: every container runs and is ready \(ready since 4m\)\./],
    never: /Remedy:/,
  },
  {
    name: "done",
    status: { phase: "Succeeded", containerStatuses: [container(ended(0))] },
    says: [/Every container has ended with success; the pod is done/],
  },
  {
    name: "no network",
    status: waits("ContainerCreating"),
    records: [record(5, "RunPodSandbox", { error: "failed to setup network: cni plugin not initialized" })],
    says: [
      /The pod waits since 1m30s, as the runtime cannot make its sandbox and network/,
      /\/etc\/cni\/net\.d/,
    ],
  },
  {
    name: "no sandbox",
    status: waits("ContainerCreating"),
    records: [record(5, "RunPodSandbox", { error: "runc create failed" })],
    says: [/cannot make its sandbox: runc create failed/, /kubelet check/],
  },
  {
    name: "nothing asked of the runtime yet",
    status: waits("ContainerCreating"),
    spec: { volumes: [{ name: "data" }] },
    says: [/nothing has been asked of the runtime yet; its volumes \(data\)/, /FailedMount/],
  },
  {
    name: "a volume that cannot be set up; one that could be after all is not told",
    status: waits("ContainerCreating"),
    spec: { volumes: [{ name: "data" }, { name: "late" }] },
    records: [
      record(9, "MountVolume", { target: "late", error: "not yet" }),
      record(7, "MountVolume", { target: "data", error: "hostPath type check failed: /srv is not a directory" }),
      record(5, "MountVolume", { target: "late" }),
    ],
    says: [/a volume that cannot be set up: data: hostPath type check failed: \/srv is not a directory/, /tries again/],
  },
  {
    name: "starting",
    status: waits("ContainerCreating"),
    records: [record(2, "RunPodSandbox", { tookMs: 500 })],
    says: [/its sandbox is there, its images and containers come next/],
  },
  { name: "never known", says: [/Nothing is known of this pod/, /staticPodPath/, /nothing that is recorded/] },
];

testCases(cases);

Deno.test("explain: history is in order, the pod's own, relative, bounded, and on one line each", () => {
  const many = Array.from(
    { length: 30 },
    (_, n) => record(100 - n, "StartContainer", { message: `start ${n}\u001b[31m\nx` }),
  );
  const other = record(1, "StopContainer", { message: "another pod's", pod: { namespace: "a", name: "b", uid: "u2" } });
  const text = explainPod(pod(), running(ready, isReady), [...many.toReversed(), other], now);
  assert.match(text, /What the agent did \(10 earlier records left out\):\n +1m30s ago {2}StartContainer: start 10/);
  assert.match(text, /1m11s ago {2}StartContainer: start 29 \[31m x$/);
  assert.doesNotMatch(text, /another pod's/);
});

Deno.test("explain: what is wrong comes before what only happened", () => {
  const text = explainPod(
    pod({ containers: [web, { ...web, name: "side" }] }),
    {
      phase: "Running",
      containerStatuses: [
        container({ running: { startedAt: at(9) } }, { ...ready, restartCount: 1, lastState: ended(1) }),
        container({ waiting: { reason: "ErrImageNeverPull" } }, { name: "side" }),
      ],
    },
    [],
    now,
  );
  assert(text.indexOf("needs the image") < text.indexOf("was restarted once"));
});
