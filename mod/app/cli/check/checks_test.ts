import assert from "@assert";
import { checkText, judgeMachine } from "./checks.ts";
import type { CheckFacts, CheckResult } from "./types.ts";

const well: CheckFacts = {
  configWarnings: [],
  configUnused: [],
  agentRuns: false,
  isRoot: true,
  runtime: { endpoint: "unix:///c.sock", name: "containerd", version: "v2.1.4" },
  cgroups: { version: 2, controllers: ["cpu", "cpuset", "memory", "pids"], failV1: true, root: "/", rootThere: true },
  swap: { devices: [], failOn: true },
  ports: [{ what: "port", address: "0.0.0.0", port: 10250 }],
  rootDir: {
    path: "/var/lib/kubelet",
    nearest: "/var/lib/kubelet",
    kind: "directory",
    readOnly: false,
    noexec: false,
    shared: true,
    space: { total: 100 * 2 ** 30, free: 50 * 2 ** 30, available: 50 * 2 ** 30, inodes: 10, inodesFree: 9 },
    short: [],
  },
  tunables: {
    "vm/overcommit_memory": "1",
    "vm/panic_on_oom": "0",
    "kernel/panic": "10",
    "kernel/panic_on_oops": "1",
    "kernel/pid_max": "4194304",
    "net/ipv4/ip_forward": "1",
    "fs/inotify/max_user_instances": "8192",
  },
  protectKernelDefaults: false,
  timeKeeper: "chrony",
  missingPrograms: [],
};

Deno.test("check: a machine that is as it should be", () => {
  const results = judgeMachine(well);
  assert.deepEqual(results.filter(({ level, remedy }) => level !== "ok" || remedy !== ""), []);
  assert.match(
    checkText(results),
    /^ok +configuration +can be used\n[^]*\n0 failed, 0 warnings: this machine can be a node\n$/,
  );
});

Deno.test("check: a configuration with unknown fields is not called ok, one with fields without effect is", () => {
  const ok = (more: Partial<CheckFacts>) =>
    judgeMachine({ ...well, ...more }).filter(({ what, level }) => what === "configuration" && level === "ok").length;
  assert.deepEqual([ok({ configWarnings: ["maxPodz"] }), ok({ configUnused: ["x"] })], [0, 1]);
});

type Case = [name: string, facts: Partial<CheckFacts>, level: CheckResult["level"], what: string, text: RegExp];
const cgroups = {
  version: 2,
  controllers: ["cpu", "cpuset", "memory", "pids"],
  failV1: true,
  root: "/",
  rootThere: true,
} as const;
const root = well.rootDir;
const runtime = { endpoint: "unix:///c.sock", name: "containerd", version: "v2" };
const port = { what: "port", address: "0.0.0.0", port: 10250, error: "Address already in use" };
const cases: Case[] = [
  ["configuration", { configProblem: "maxPods: no" }, "fail", "configuration", /maxPods: no/],
  ["field nobody knows", { configWarnings: ["file c.yaml: maxPodz"] }, "warn", "configuration", /c\.yaml: maxPodz/],
  ["field without effect", { configUnused: ["Set, but: x"] }, "warn", "configuration", /^Set, but: x$/],
  ["no root", { isRoot: false }, "fail", "user", /not root/],
  [
    "no runtime",
    { runtime: { endpoint: "unix:///c.sock", error: "ENOENT" } },
    "fail",
    "runtime",
    /c\.sock does not answer: ENOENT/,
  ],
  ["runtime not ready", { runtime: { ...runtime, notReady: "why" } }, "fail", "runtime", /is not ready: why/],
  ["no network", { runtime: { ...runtime, noNetwork: "cni" } }, "fail", "network", /cni/],
  [
    "driver",
    { runtime: { ...runtime, driverComplaint: { fatal: true, text: "differs" } } },
    "fail",
    "cgroup driver",
    /differs/,
  ],
  [
    "driver told",
    { runtime: { ...runtime, driverComplaint: { fatal: false, text: "used" } } },
    "warn",
    "cgroup driver",
    /used/,
  ],
  ["no cgroups", { cgroups: { error: "none" } }, "fail", "cgroups", /none/],
  ["cgroup v1", { cgroups: { ...cgroups, version: 1 } }, "fail", "cgroups", /failCgroupV1/],
  ["cgroup v1 allowed", { cgroups: { ...cgroups, version: 1, failV1: false } }, "warn", "cgroups", /version 1/],
  [
    "controllers",
    { cgroups: { ...cgroups, controllers: ["cpu", "memory"] } },
    "fail",
    "controllers",
    /cpuset, pids missing/,
  ],
  ["cgroup root", { cgroups: { ...cgroups, root: "/k", rootThere: false } }, "fail", "cgroupRoot", /\/k is not there/],
  ["swap", { swap: { devices: ["/dev/sda2"], failOn: true } }, "fail", "swap", /\/dev\/sda2/],
  ["swap allowed", { swap: { devices: ["/dev/sda2"], failOn: false } }, "ok", "swap", /failSwapOn: false allows/],
  ["port", { ports: [port] }, "fail", "port 10250", /cannot be had \(port\): Address already in use/],
  ["port of the agent", { ports: [port], agentRuns: true }, "ok", "port 10250", /as the agent runs/],
  ["root is a file", { rootDir: { ...root, kind: "file" } }, "fail", "root directory", /is no directory/],
  ["root is read-only", { rootDir: { ...root, readOnly: true } }, "fail", "root directory", /read-only/],
  ["root is noexec", { rootDir: { ...root, noexec: true } }, "warn", "root directory", /noexec/],
  [
    "root is short",
    { rootDir: { ...root, short: ["nodefs.available is below its threshold"] } },
    "warn",
    "root directory",
    /little room/,
  ],
  [
    "root is not there yet",
    { rootDir: { ...root, nearest: "/var/lib" } },
    "ok",
    "root directory",
    /will be made in \/var\/lib/,
  ],
  [
    "private mount with one below",
    { rootDir: { ...root, shared: false, mountBelow: "/var/lib/kubelet/x" } },
    "warn",
    "mount propagation",
    /x below it keeps/,
  ],
  ["private mount", { rootDir: { ...root, shared: false } }, "ok", "mount propagation", /mounts it over itself/],
  [
    "overcommit",
    { tunables: { "vm/overcommit_memory": "0" } },
    "warn",
    "kernel",
    /vm\.overcommit_memory is 0, a kubelet wants 1/,
  ],
  [
    "protected",
    { tunables: { "kernel/panic": "0" }, protectKernelDefaults: true },
    "fail",
    "kernel",
    /kernel\.panic is 0/,
  ],
  ["forwarding", { tunables: { "net/ipv4/ip_forward": "0" } }, "warn", "kernel", /ip_forward is 0/],
  ["time", { timeKeeper: undefined }, "warn", "time", /nothing is seen/],
  ["programs", { missingPrograms: ["/usr/bin/mount"] }, "fail", "programs", /mount missing/],
];
for (const [name, facts, level, what, text] of cases) {
  Deno.test(`check: ${name}`, () => {
    const results = judgeMachine({ ...well, ...facts });
    const found = results.filter((each) => each.what === what && text.test(each.text));
    assert.deepEqual(found.map((each) => [each.level, each.level === "ok" || each.remedy !== ""]), [[level, true]]);
    assert.deepEqual(results.filter((each) => each.level === "fail").length, level === "fail" ? 1 : 0);
  });
}
