import assert from "@assert";
import { create } from "@bufbuild/protobuf";
import {
  FilesystemIdentifierSchema,
  FilesystemUsageSchema,
  ImageFsInfoResponseSchema,
} from "../../cri/gen/runtime_pb.ts";
import { FakeClock } from "../base/fake_clock.ts";
import { FakeHost } from "../base/fake_host.ts";
import type { MountEntry } from "../base/host.ts";
import { silent } from "../base/log.ts";
import { snapshot } from "../../managers/eviction/testing.ts";
import { diskLayout, evictionPolicy, wasEvicted, withPressure } from "./agent_eviction.ts";
import { loadConfig } from "./config/load.ts";

function mount(id: number, source: string, target: string): MountEntry {
  return { id, source, target, type: "ext4", root: "/", options: [], propagation: [] };
}

async function layout(mounts: readonly MountEntry[], images: string | undefined) {
  const usage = create(FilesystemUsageSchema, {
    fsId: create(FilesystemIdentifierSchema, { mountpoint: images ?? "" }),
  });
  return await diskLayout({
    images: {
      imageFsInfo: () =>
        Promise.resolve(
          create(ImageFsInfoResponseSchema, { imageFilesystems: images === undefined ? [] : [usage] }),
        ),
    },
    host: { mounts: () => Promise.resolve([...mounts]) },
    rootDir: "/var/lib/kubelet",
    signal: AbortSignal.timeout(10_000),
  });
}

Deno.test("where images lie: on the node's disk, also when that is bound a second time, or on one of their own", async () => {
  const images = "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs";
  const root = mount(1, "/dev/vda", "/");
  assert.equal(await layout([root], images), "single");
  assert.equal(await layout([root, mount(2, "/dev/vda", "/var/lib/kubelet")], images), "single");
  assert.equal(await layout([root, mount(2, "/dev/vdb", "/var/lib/containerd")], images), "imagefs");
  assert.equal(await layout([root, mount(2, "/dev/vdb", "/var/lib")], images), "single");
  // Two file systems without a device, such as tmpfs, are two.
  assert.equal(await layout([mount(1, "none", "/"), mount(2, "none", "/var/lib/containerd")], images), "imagefs");
});

Deno.test("where images lie: a runtime that does not tell is an error", async () => {
  for (const images of [undefined, ""]) {
    await assert.rejects(layout([mount(1, "/dev/vda", "/")], images), /does not tell where it keeps its images/);
  }
  await assert.rejects(layout([], "/var/lib/containerd"), /does not tell where it keeps its images/);
});

const standalone = [
  "--config=/etc/kubelet.yaml",
  "--authorization-mode=AlwaysAllow",
  "--authentication-token-webhook=false",
];

async function policy(yaml: string, ...argv: string[]) {
  const host = new FakeHost({ clock: new FakeClock() });
  host.put("/etc/kubelet.yaml", `apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n${yaml}`);
  host.put("/proc/cpuinfo", "processor: 0\n");
  const loaded = await loadConfig({ argv: [...standalone, ...argv], host, log: silent });
  return evictionPolicy(loaded.config, loaded.flags);
}

Deno.test("the policy of a configuration, with what flags of this agent add", async () => {
  const plain = await policy("failCgroupV1: false\n");
  assert.deepEqual(plain.thresholds.map(({ signal }) => signal).toSorted(), [
    "imagefs.available",
    "imagefs.inodesFree",
    "memory.available",
    "nodefs.available",
    "nodefs.inodesFree",
  ]);
  const { thresholds: _thresholds, ...rest } = plain;
  assert.deepEqual(rest, {
    allocatableEnforced: true,
    transitionMs: 300_000,
    maxPodGraceSeconds: 0,
    storageLimits: true,
    ignorePageCache: false,
    dryRun: false,
    staticPods: false,
  });
  const own = await policy(
    "failCgroupV1: false\nevictionHard: {pid.available: 10%}\nevictionSoft: {memory.available: 1Gi}\n" +
      'evictionSoftGracePeriod: {memory.available: 90s}\nevictionMinimumReclaim: {pid.available: "100"}\n' +
      "evictionMaxPodGracePeriod: 60\nlocalStorageCapacityIsolation: false\nenforceNodeAllocatable: [none]\n",
    "--denolet-eviction-psi=memory.full.avg10=20",
    "--denolet-eviction-psi=memory.some.avg60=50",
    "--denolet-eviction-dry-run",
    "--denolet-eviction-static-pods",
    "--denolet-eviction-ignore-page-cache",
  );
  assert.deepEqual(own.thresholds.map(({ signal, gracePeriodMs }) => [signal, gracePeriodMs]), [
    ["pid.available", 0],
    ["memory.available", 90_000],
    ["memory.full.avg10", 0],
    ["memory.some.avg60", 0],
  ]);
  assert.ok(own.thresholds[0]?.minReclaim);
  const { ignorePageCache, dryRun, staticPods, storageLimits, maxPodGraceSeconds, allocatableEnforced } = own;
  assert.deepEqual([ignorePageCache, dryRun, staticPods, storageLimits, maxPodGraceSeconds, allocatableEnforced], [
    true,
    true,
    true,
    false,
    60,
    false,
  ]);
  await assert.rejects(
    policy("failCgroupV1: false\n", "--denolet-eviction-psi=memory.full.avg10=200"),
    /--denolet-eviction-psi: the pressure "memory\.full\.avg10" is "200"; it must be more than 0 and at most 100/,
  );
});

Deno.test("an evicted pod is one that has failed for that reason", () => {
  assert.equal(wasEvicted({ phase: "Failed", reason: "Evicted" }), true);
  assert.equal(wasEvicted({ phase: "Running", reason: "Evicted" }), false);
  assert.equal(wasEvicted({ phase: "Failed", reason: "Error" }), false);
  assert.equal(wasEvicted(undefined), false);
});

Deno.test("lost time is the machine's where groups tell of none", () => {
  const host = new FakeHost({ clock: new FakeClock() });
  const reading = snapshot(1);
  assert.equal(withPressure(host, reading).node.sample.psi, undefined, "a kernel without PSI");
  const line = "avg10=1.50 avg60=2.00 avg300=0.10 total=7";
  host.put("/proc/pressure/memory", `some ${line}\nfull ${line}\n`);
  assert.equal(withPressure(host, reading).node.sample.psi?.memory?.full.avg10, 1.5);
  const psi = { memory: { some: time(9), full: time(9) } };
  const own = snapshot(1, { sample: { at: 1, psi } });
  assert.equal(withPressure(host, own), own, "a group that tells is not asked twice");
  host.fault((operation) => {
    if (operation === "readText") throw new Error("EOPNOTSUPP");
    return undefined;
  });
  assert.equal(withPressure(host, reading), reading, "PSI that is switched off");
});

function time(avg10: number) {
  return { total: 0, avg10, avg60: 0, avg300: 0 };
}
