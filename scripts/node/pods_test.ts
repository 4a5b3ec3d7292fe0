import assert from "@assert";
import type { ContainerState, ContainerStatus, PodStatus } from "../../mod/kube/types.ts";
import { age, podRows, type SeenContainer, type SeenPod } from "./pods.ts";

function pod(containers: Partial<SeenContainer>[], more: Partial<SeenPod> = {}): SeenPod {
  const base = { id: "c", restarts: 0, exitCode: undefined, reason: "" };
  return {
    namespace: "default",
    name: "p",
    uid: "u",
    sandbox: "s",
    ready: true,
    ip: "10.1.2.3",
    createdAt: 1_000_000_000n,
    containers: containers.map((one, i) => ({ ...base, name: `c${i}`, state: "running", ...one })),
    labels: {},
    annotations: {},
    ...more,
  };
}

Deno.test("pods: a row tells what the pod does", () => {
  const table: [SeenPod, string[]][] = [
    [pod([{}]), ["?/1", "Running", "0", "10.1.2.3"]],
    [pod([{}, { state: "exited", exitCode: 0, restarts: 2 }]), ["?/2", "Running", "2", "10.1.2.3"]],
    [pod([{ state: "exited", exitCode: 3, reason: "Error" }]), ["?/1", "c0: Error (exit code 3)", "0", "10.1.2.3"]],
    [pod([{}, { state: "exited", exitCode: 137, reason: "OOMKilled", restarts: 1 }]), [
      "?/2",
      "c1: OOMKilled (exit code 137)",
      "1",
      "10.1.2.3",
    ]],
    [pod([{ state: "exited", exitCode: 0 }], { ready: false, ip: "" }), ["?/1", "Completed", "0", "-"]],
    [pod([]), ["?/0", "Starting", "0", "10.1.2.3"]],
    [pod([], { ready: false }), ["?/0", "Ended", "0", "10.1.2.3"]],
  ];
  for (const [one, [running, state, restarts, ip]] of table) {
    assert.deepEqual(podRows([one], 43_000), [["default/p", running, state, restarts, "42s", ip]]);
  }
});

Deno.test("pods: a row goes by the status that the agent keeps", () => {
  const of = (name: string, ready: boolean, state: ContainerState, restartCount = 0): ContainerStatus => ({
    name,
    ready,
    state,
    restartCount,
    image: "",
    imageID: "",
  });
  const running = { running: { startedAt: "2026-01-01T00:00:00Z" } };
  const done = { terminated: { exitCode: 0 } };
  const table: [PodStatus, string[]][] = [
    [{ phase: "Running", podIP: "10.9.9.9", containerStatuses: [of("a", false, running)] }, [
      "0/1",
      "Running",
      "0",
      "10.9.9.9",
    ]],
    [{
      phase: "Running",
      initContainerStatuses: [of("i", true, done), of("s", true, running, 1)],
      containerStatuses: [of("a", true, running)],
    }, ["2/2", "Running", "1", "10.1.2.3"]],
    [{ phase: "Running", containerStatuses: [of("a", false, { waiting: { reason: "CrashLoopBackOff" } }, 3)] }, [
      "0/1",
      "CrashLoopBackOff",
      "3",
      "10.1.2.3",
    ]],
  ];
  for (const [status, [ready, state, restarts, ip]] of table) {
    const rows = podRows([pod([{}])], 43_000, { statuses: new Map([["u", status]]) });
    assert.deepEqual(rows, [["default/p", ready, state, restarts, "42s", ip]]);
  }
});

Deno.test("pods: what is ending is Terminating, whatever its status and its containers say", () => {
  const both = [pod([{}], { uid: "old" }), pod([{}], { uid: "new" }), pod([{}], { uid: "old2" })];
  const running = { phase: "Running" } as const;
  const words = podRows(both, 0, {
    statuses: new Map([["old", running], ["new", running]]),
    leaving: new Set(["old", "old2"]),
  }).map((row) => row[2]);
  assert.deepEqual(words, ["Terminating", "Running", "Terminating"]);
});

Deno.test("pods: ages", () => {
  const table: [number, string][] = [[-5, "0s"], [119_000, "119s"], [120_000, "2m"], [7_199_000, "119m"], [
    7_200_000,
    "2h",
  ], [200_000_000, "2d"]];
  for (const [milliseconds, text] of table) assert.equal(age(milliseconds), text);
});
