import { at, container, ended, isReady, ready, record, running, testCases } from "./testing.ts";

testCases([
  {
    name: "being ended, by the agent's own means",
    status: running(ready, isReady),
    records: [
      record(90, "StopContainer", {
        container: "web",
        reason: "SourceRemoved",
        message: "its manifest is gone",
        error: "no answer",
        tookMs: 60_000,
      }),
      record(20, "CgroupKill", {
        container: "web",
        reason: "SourceRemoved",
        message: "its manifest is gone; the 3 processes of its control group killed, as StopContainer did not end it",
        tookMs: 200,
      }),
    ],
    says: [
      /being ended since 1m30s ago: its manifest was removed; the runtime did not end web, so the agent killed/,
      /StopContainer web \(1m0s\): its manifest is gone FAILED: no answer/,
      /CgroupKill web \(200ms\): its manifest is gone; the 3 processes of its control group killed/,
    ],
  },
  {
    name: "being ended",
    status: running(ready, isReady),
    records: [record(10, "StopContainer", { reason: "SourceRemoved", message: "m", error: "timeout" })],
    says: [/being ended since 10s ago: its manifest was removed; the last step failed: timeout/],
  },
  {
    name: "gone",
    records: [
      record(10, "StopContainer", { reason: "SourceRemoved" }),
      record(8, "RemovePodSandbox", { reason: "PodRemoved" }),
    ],
    says: [/: no status\n/, /The pod is gone \(8s ago\)/],
  },
  {
    name: "being ended, and the runtime has not answered yet",
    status: running(ready, isReady),
    leaving: true,
    spec: { terminationGracePeriodSeconds: 600 },
    says: [/being ended: no source wants it any more; its containers were asked to end and have 600 s/, /SIGTERM/],
    never: /Nothing is wrong/,
  },
  {
    name: "being ended, and nothing of it runs any more",
    status: { phase: "Succeeded", containerStatuses: [container(ended(0))] },
    leaving: true,
    says: [/being ended: no source wants it any more; none of its containers runs/, /unmounted/],
    never: /asked to end/,
  },
  {
    name: "deleted, and its grace is not over",
    status: running(ready, isReady),
    more: { deletionTimestamp: at(-20), deletionGracePeriodSeconds: 25 },
    says: [/being ended: it was deleted; its containers were asked to end and have 25 s for that\./],
    never: /not answered/,
  },
  {
    name: "deleted, and its grace is long over",
    status: running(ready, isReady),
    more: { deletionTimestamp: at(45), deletionGracePeriodSeconds: 25 },
    says: [/have 25 s for that, which were over 45s ago, but the runtime has not answered yet/, /kubelet check/],
  },
  {
    name: "being ended, a stop is not confirmed while later steps go well",
    status: running(ready, isReady),
    records: [
      record(90, "StopContainer", { container: "web", reason: "PodDeleted", message: "m", error: "no answer" }),
      record(60, "CgroupKill", { container: "web", reason: "PodDeleted", message: "m" }),
      record(50, "StopPodSandbox", { reason: "PodDeleted", message: "m" }),
    ],
    says: [
      /it was deleted; the runtime did not end web, .*; the runtime has not confirmed the end of web \(no answer\)/,
      /kubelet check/,
    ],
  },
]);
