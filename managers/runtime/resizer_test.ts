import assert from "@assert";
import { grpcCode, type ResourcesInit, RuntimeError } from "../../cri/api.ts";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { silent } from "../../mod/base/log.ts";
import type { BoundPod, ResourceRequirements } from "../../mod/kube/types.ts";
import type { GroupState } from "../../mod/pod/resize/group_plan.ts";
import type { ResizeAction } from "../../mod/pod/resize/needs.ts";
import { type PodCgroupLimits, podCgroupLimits } from "../../mod/pod/resources.ts";
import { Resizer } from "./resizer.ts";

const mebi = 2n ** 20n;
const { signal } = new AbortController();
const gates = { podLevel: true, initContainers: true };
const sized = (cpu: string, memory: string): BoundPod => ({
  metadata: { name: "web", namespace: "default", uid: "u" },
  spec: {
    containers: [{ name: "c", resources: { requests: { cpu, memory }, limits: { cpu, memory } } }],
  },
});
const figures = (cpu: bigint, memory: bigint) => ({
  memoryLimit: memory * mebi,
  memoryRequest: memory * mebi,
  cpuLimit: cpu,
  cpuRequest: cpu,
});
/** From half a CPU and 64 MiB to a whole one and 128 MiB. */
const update = { id: "i", name: "c", from: figures(500n, 64n), to: figures(1000n, 128n) };
const action: ResizeAction = { memory: [update], cpu: [update], podLevel: false, restarts: false };
const state: GroupState = { memoryLimit: 64n * mebi, cpuQuota: 50_000, cpuPeriod: 100_000, cpuShares: 512 };

/** What fails, by the beginning of the call's words. */
function setUp(fails: Readonly<Record<string, Error>> = {}) {
  const did: string[] = [];
  const recorded: ResourceRequirements[] = [];
  const done = (words: string): Promise<void> => {
    did.push(words);
    const fault = Object.entries(fails).find(([start]) => words.startsWith(start))?.[1];
    return fault ? Promise.reject(fault) : Promise.resolve();
  };
  const figuresOf = (r: ResourcesInit) => `${r.cpuShares} ${r.cpuQuota} ${(r.memoryLimitInBytes ?? 0n) / mebi}Mi`;
  const durations: boolean[] = [];
  const resizer = new Resizer({
    clock: new FakeClock(),
    log: silent,
    runtime: {
      updateContainerResources: (id, resources) => done(`update ${id} ${figuresOf(resources)}`),
      updatePodSandboxResources: ({ id, resources }) => done(`tell ${id} ${figuresOf(resources)}`),
    },
    groups: {
      wantedLimits: (pod) => podCgroupLimits(pod, { cpuCfsQuota: true }),
      readLimits: () => Promise.resolve(state),
      setLimits: (_pod, limits: Partial<PodCgroupLimits>) => done(`limit ${Object.keys(limits).join(" ")}`),
      memoryInUse: () => Promise.resolve(4096n),
    },
    actuated: {
      gates,
      get: () => undefined,
      setContainer: (_pod, _name, resources) => {
        recorded.push(resources);
        return done("record");
      },
      setPod: () => done("record pod"),
      allocationKept: () => done("kept"),
    },
    policy: {
      cpuCfsQuota: true,
      cgroupVersion: 1,
      memorySwap: "NoSwap",
      swapAvailable: false,
      nodeMemory: 2n ** 33n,
      nodeSwap: 0,
      hugePageSizes: [],
    },
    onDone: ({ success }) => durations.push(success),
  });
  return { resizer, did, recorded, durations };
}

Deno.test("a resize goes in its order; each step is recorded once the runtime has taken it", async () => {
  const { resizer, did, recorded, durations } = setUp();
  assert.equal(await resizer.apply(sized("1", "128Mi"), action, "s", signal), undefined);
  assert.deepEqual(did, [
    "kept",
    "tell s 512 50000 128Mi",
    "limit memoryLimit",
    "update i 512 50000 128Mi",
    "record",
    "tell s 512 100000 128Mi",
    "limit cpuQuota cpuPeriod",
    "tell s 1024 100000 128Mi",
    "limit cpuShares",
    "update i 1024 100000 128Mi",
    "record",
  ]);
  assert.deepEqual(recorded.map((r) => [r.limits?.cpu, r.limits?.memory]), [["500m", "128Mi"], ["1", "128Mi"]]);
  assert.deepEqual(durations, [true]);
});

Deno.test("a runtime without the sandbox's call is no obstacle; one that refuses is", async () => {
  for (const fault of [[grpcCode.Unimplemented, "x"], [grpcCode.Unknown, "not implemented yet"]] as const) {
    const { resizer } = setUp({ tell: new RuntimeError("UpdatePodSandboxResources", fault[0], fault[1]) });
    assert.equal(await resizer.apply(sized("1", "128Mi"), action, "s", signal), undefined);
  }
  const { resizer, did, durations } = setUp({
    tell: new RuntimeError("UpdatePodSandboxResources", grpcCode.Internal, "no"),
  });
  assert.match(await resizer.apply(sized("1", "128Mi"), action, "s", signal) ?? "", /UpdatePodSandboxResources: no/);
  assert.deepEqual([did.length, durations], [2, [false]]);
});

Deno.test("a group that cannot be set: the runtime takes it back, and nothing after it is done", async () => {
  const { resizer, did } = setUp({ "limit memoryLimit": new Error("EBUSY") });
  assert.equal(await resizer.apply(sized("1", "128Mi"), action, "s", signal), "EBUSY");
  assert.deepEqual(did.slice(1), ["tell s 512 50000 128Mi", "limit memoryLimit", "tell s 512 50000 64Mi"]);
});

Deno.test("a container that cannot be updated is not recorded, and the rest waits for the next try", async () => {
  const { resizer, did } = setUp({ update: new Error("no such container") });
  assert.equal(await resizer.apply(sized("1", "128Mi"), action, "s", signal), "no such container");
  assert.deepEqual(did.slice(-1), ["update i 512 50000 128Mi"]);
});
