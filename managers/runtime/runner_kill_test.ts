import assert from "@assert";
import { grpcCode, RuntimeError } from "../../cri/api.ts";
import { type ObservedPod, unobserved } from "../../mod/pod/observed.ts";
import { container, makePod, seen, setUp, why } from "./runner_testing.ts";

const sandbox = (id: string) => ({
  id,
  attempt: 0,
  ready: true,
  createdAt: 0,
  ips: [],
  hostNetwork: false,
  hasNetwork: true,
  handler: "",
});

Deno.test("killing a pod stops its containers, then each sandbox; what is gone counts as stopped", async () => {
  const t = setUp();
  const observed: ObservedPod = {
    ...unobserved(makePod(), 0),
    containers: [seen("gone", "a", { state: "running" }), seen("dead", "b")],
    sandboxes: [sandbox("none")],
  };
  const { error } = await t.apply({ killPod: why }, observed);
  assert.equal(error, undefined);
  assert.deepEqual(t.calls(), ["StopContainer", "StopPodSandbox"]);
});

Deno.test("restarting all containers removes them but keeps their logs; old instances lose theirs", async () => {
  const t = setUp();
  await t.apply({
    remove: [{ id: "old", name: "a", ...why }],
    resetContainers: { ...why, reason: "RestartAll", containers: [{ id: "x", name: "a", live: false }] },
  });
  assert.deepEqual(t.removed, ["old false Test", "x true RestartAll"]);
});

Deno.test("only a regular container's kill says that it will be restarted", async () => {
  const pod = makePod({ initContainers: [container("s", { restartPolicy: "Always" })] });
  const t = setUp({ pod });
  const observed = {
    ...unobserved(pod, 0),
    containers: [seen("x", "a", { state: "running" }), seen("y", "s", { state: "running" })],
  };
  const kill = (id: string, name: string) => ({
    id,
    name,
    reason: "Unhealthy",
    message: `Container ${name} failed liveness probe`,
    restarts: true,
  });
  await t.apply({ kill: [kill("x", "a"), kill("y", "s")] }, observed);
  assert.deepEqual(t.events.events.map((e) => e.message), [
    "Container a failed liveness probe, will be restarted",
    "Container s failed liveness probe",
  ]);
});

Deno.test("a sandbox that cannot be stopped ends the pass only when the stop of the other has ended, too", async () => {
  const t = setUp();
  let stops = 0;
  t.fail((call) => {
    if (call !== "StopPodSandbox") return undefined;
    return stops++ === 0 ? { error: new RuntimeError(call, grpcCode.Unknown, "no") } : { delayMs: 5000 };
  });
  const { error } = await t.apply({ killPod: why }, {
    ...unobserved(makePod(), 0),
    sandboxes: [sandbox("s1"), sandbox("s2")],
  });
  assert.match(error!.message, /no/);
  const [failed, slow] = t.runtime.calls.filter((c) => c.call === "StopPodSandbox");
  assert.equal(failed!.endedAt, failed!.at);
  assert.ok(t.settled.at >= slow!.endedAt!, "the pass has waited");
});

Deno.test("a sandbox whose stop hangs has its pod's leftovers killed, and its stop fails", async () => {
  const t = setUp({ leftovers: [7] });
  t.fail((call) => call === "StopPodSandbox" ? { hang: true } : undefined);
  const error = await t.killPod({ ...unobserved(makePod(), 0), sandboxes: [sandbox("s")] });
  assert.match(error?.message ?? "", /StopPodSandbox s: no answer within 50000 ms/);
  assert.deepEqual(t.journal.records("1").map((r) => [r.action, r.target, r.reason, r.message]), [
    [
      "CgroupKill",
      "1",
      "Test",
      "test; StopPodSandbox did not end within 50 s, so what is left in the pod's group is killed",
    ],
  ]);
});
