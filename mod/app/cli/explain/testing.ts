import assert from "@assert";
import type { JournalRecord } from "../../../base/journal.ts";
import type { Container, ContainerState, ContainerStatus, PodSpec, PodStatus } from "../../../kube/types.ts";
import { explainPod } from "./pod.ts";
import type { ExplainedPod } from "./types.ts";

export const now = Date.UTC(2026, 0, 1, 12);
export const at = (secondsAgo: number): string => new Date(now - secondsAgo * 1000).toISOString();
export const web: Container = { name: "web", image: "localhost/web:1", resources: {} };
export const pod = (spec: Partial<PodSpec> = {}): ExplainedPod => ({
  metadata: { name: "web-n", namespace: "default", uid: "u1" },
  spec: { containers: [web], ...spec },
});
export const container = (state: ContainerState, more: Partial<ContainerStatus> = {}): ContainerStatus => ({
  name: "web",
  state,
  lastState: {},
  ready: false,
  restartCount: 0,
  image: "localhost/web:1",
  imageID: "",
  ...more,
});
export const waits = (reason: string, message = "", more: Partial<ContainerStatus> = {}): PodStatus => ({
  phase: "Pending",
  startTime: at(90),
  containerStatuses: [container({ waiting: { reason, message } }, more)],
});
export const ended = (exitCode: number, more: object = {}): ContainerState => ({
  terminated: { exitCode, finishedAt: at(30), reason: exitCode === 0 ? "Completed" : "Error", ...more },
});
export const loop = (last: ContainerState): PodStatus =>
  waits("CrashLoopBackOff", "back-off 40s restarting failed container=web pod=web-n_default(u1)", {
    restartCount: 3,
    lastState: last,
  });
export const running = (more: Partial<ContainerStatus> = {}, status: Partial<PodStatus> = {}): PodStatus => ({
  phase: "Running",
  containerStatuses: [container({ running: { startedAt: at(300) } }, more)],
  ...status,
});
let seq = 0;
export const record = (secondsAgo: number, action: string, more: Partial<JournalRecord> = {}): JournalRecord => ({
  seq: ++seq,
  at: now - secondsAgo * 1000,
  action,
  reason: "R",
  message: "because",
  pod: { namespace: "default", name: "web-n", uid: "u1" },
  ...more,
});
export const stop = (reason: string, message: string, secondsAgo = 31): JournalRecord =>
  record(secondsAgo, "StopContainer", { container: "web", reason, message, tookMs: 1000 });
export const ready = { ready: true };
export const isReady = { conditions: [{ type: "Ready", status: "True", lastTransitionTime: at(240) }] };

/** A pod, what was done to it, and what its explanation must say. */
export interface Case {
  readonly name: string;
  readonly status?: PodStatus;
  readonly spec?: Partial<PodSpec>;
  readonly more?: Partial<ExplainedPod["metadata"]>;
  readonly leaving?: true;
  readonly records?: readonly JournalRecord[];
  readonly says: readonly RegExp[];
  readonly never?: RegExp;
}

/** Makes a test of each case. */
export function testCases(cases: readonly Case[]): void {
  for (const { name, status, spec, more, leaving, records = [], says, never } of cases) {
    Deno.test(`explain: ${name}`, () => {
      const explained = pod(spec);
      const text = explainPod(
        { ...explained, metadata: { ...explained.metadata, ...more }, ...(leaving ? { leaving } : {}) },
        status,
        records,
        now,
      );
      for (const words of says) assert.match(text, words);
      if (never) assert.doesNotMatch(text, never);
    });
  }
}
