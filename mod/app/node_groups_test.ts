import assert from "@assert";
import { FakeClock } from "../base/fake_clock.ts";
import { RecordingLogger } from "../base/log.ts";
import { Scope } from "../base/scope.ts";
import { RecordingEvents } from "../kube/events.ts";
import { setUpNodeGroups } from "./node_groups.ts";

function setUp(answers: (string | undefined)[], cgroupsPerQOS = true) {
  const clock = new FakeClock(0);
  const log = new RecordingLogger();
  const events = new RecordingEvents();
  const scope = new Scope("test");
  let calls = 0;
  const setUpNode = () => {
    const answer = answers[calls++];
    return answer === undefined ? Promise.resolve() : Promise.reject(new Error(answer));
  };
  const config = {
    cgroupsPerQOS,
    enforceNodeAllocatable: ["pods", "system-reserved-compressible"],
    systemReservedCgroup: "/system",
    kubeReservedCgroup: "",
  };
  const run = () => setUpNodeGroups({ cgroups: { setUpNode }, config, scope, clock, log, events });
  return { clock, log, events, scope, run, calls: () => calls };
}

const tooSmall = 'Failed to update Node Allocatable Limits "/kubepods": busy';

Deno.test("limits that do not fit yet are told once as an event and tried each minute until they are set", async () => {
  const t = setUp([tooSmall, tooSmall, "another fault"]);
  await t.run();
  assert.deepEqual(t.events.nodeEvents.map((e) => e.reason), ["FailedNodeAllocatableEnforcement"]);
  await t.clock.advance(60_000);
  await t.clock.advance(60_000);
  await t.clock.advance(60_000);
  await t.clock.advance(600_000);
  assert.deepEqual([t.calls(), t.scope.size], [4, 0]);
  assert.deepEqual(t.events.nodeEvents.slice(1), [
    { type: "Normal", reason: "NodeAllocatableEnforced", message: "Updated Node Allocatable limit across pods" },
    { type: "Normal", reason: "NodeAllocatableEnforced", message: "Updated limits on system reserved cgroup /system" },
  ]);
  await t.scope.close();
});

Deno.test("a root that is missing ends the start", async () => {
  const t = setUp(["cgroup /x does not exist"]);
  await assert.rejects(t.run(), /does not exist/);
});

Deno.test("without cgroupsPerQOS no group is made", async () => {
  const t = setUp([], false);
  await t.run();
  assert.equal(t.calls(), 0);
});
