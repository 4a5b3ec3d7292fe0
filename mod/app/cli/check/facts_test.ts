import assert from "@assert";
import { create } from "@bufbuild/protobuf";
import {
  RuntimeConfigResponseSchema,
  StatusResponseSchema,
  VersionResponseSchema,
} from "../../../../cri/gen/runtime_pb.ts";
import { grpcCode, RuntimeError } from "../../../../cri/api.ts";
import { FakeClock } from "../../../base/fake_clock.ts";
import { FakeHost } from "../../../base/fake_host.ts";
import { silent } from "../../../base/log.ts";
import { loadConfig } from "../../config/load.ts";
import { gatherFacts, type GatherOptions } from "./facts.ts";

const files = {
  "/sys/fs/cgroup/cgroup.controllers": "cpu cpuset memory pids\n",
  "/proc/swaps": "Filename Type Size\n/dev/sda2 partition 1\n",
  "/proc/sys/kernel/panic": "10\n",
  "/run/chrony/chronyd.pid": "7\n",
  "/usr/bin/mount": "",
};
const runtime: GatherOptions["runtime"] = {
  version: () => Promise.resolve(create(VersionResponseSchema, { runtimeName: "containerd", runtimeVersion: "v2" })),
  status: () =>
    Promise.resolve(create(StatusResponseSchema, {
      status: {
        conditions: [
          { type: "RuntimeReady", status: true },
          { type: "NetworkReady", status: false, reason: "NetworkPluginNotReady", message: "no cni" },
        ],
      },
    })),
  runtimeConfig: () => Promise.resolve(create(RuntimeConfigResponseSchema, {})),
};

async function gather(more: Partial<GatherOptions> = {}) {
  const host = new FakeHost({ files });
  const { config } = await loadConfig({ argv: ["--read-only-port=0"], host, log: silent });
  return await gatherFacts({
    config,
    endpoint: "unix:///c.sock",
    rootDir: "/var/lib/kubelet",
    agentRuns: false,
    isRoot: true,
    runtime,
    host,
    clock: new FakeClock(),
    portProblem: (_address, port) => port === 10250 ? "taken" : undefined,
    signal: new AbortController().signal,
    ...more,
  });
}

Deno.test("check: facts of a machine", async () => {
  const facts = await gather();
  assert.deepEqual(facts.runtime, {
    endpoint: "unix:///c.sock",
    name: "containerd",
    version: "v2",
    noNetwork: "NetworkPluginNotReady: no cni",
  });
  assert.deepEqual(facts.swap, { devices: ["/dev/sda2"], failOn: true });
  assert.deepEqual(facts.ports.map(({ port, error }) => [port, error]), [[10250, "taken"], [10248, undefined]]);
  assert.deepEqual([facts.rootDir.nearest, facts.rootDir.kind], ["/", "directory"]);
  assert.equal(facts.tunables["kernel/panic"], "10");
  assert.equal(facts.tunables["kernel/pid_max"], undefined);
  assert.equal(facts.timeKeeper, "chrony");
  assert(!facts.missingPrograms.includes("/usr/bin/mount"));
  assert(facts.missingPrograms.includes("/usr/bin/umount"));
});

Deno.test("check: a runtime and a configuration that are not there leave the other facts", async () => {
  const down = { ...runtime, version: () => Promise.reject(new Error("no socket")) };
  const facts = await gather({ runtime: down, config: undefined, configProblem: "bad" });
  assert.deepEqual(facts.runtime, { endpoint: "unix:///c.sock", error: "no socket" });
  assert.deepEqual([facts.configProblem, facts.ports, facts.swap.devices.length], ["bad", [], 1]);
  const error = new RuntimeError("Version", grpcCode.Unavailable, "the socket does not exist");
  const silent = await gather({ runtime: { ...runtime, version: () => Promise.reject(error) } });
  assert.deepEqual(silent.runtime, { endpoint: "unix:///c.sock", error: "the socket does not exist" });
});

Deno.test("check: a mount below a private root directory is found", async () => {
  const host = new FakeHost({ files: { ...files, "/var/lib/kubelet/pods/x": "" } });
  await host.mkdir("/var/lib/kubelet/m");
  await host.mount({ source: "tmpfs", target: "/var/lib/kubelet/m", type: "tmpfs" });
  const { rootDir } = await gather({ host });
  assert.deepEqual([rootDir.nearest, rootDir.shared, rootDir.mountBelow], [
    "/var/lib/kubelet",
    false,
    "/var/lib/kubelet/m",
  ]);
});
