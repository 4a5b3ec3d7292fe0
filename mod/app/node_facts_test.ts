import assert from "@assert";
import { FakeHost } from "../base/fake_host.ts";
import { silent } from "../base/log.ts";
import { loadConfig } from "./config/load.ts";
import { nodeFacts, nodeName } from "./node_facts.ts";

const kernel = { "/proc/sys/kernel/osrelease": "6.1.0\n", "/etc/resolv.conf": "nameserver 10.0.0.53\n" };

async function facts(
  files: Record<string, string>,
  memoryV2?: string,
  more: { argv?: string[]; ignoreEviction?: boolean } = {},
) {
  const host = new FakeHost({ files: { ...kernel, ...files } });
  host.putDir("/var/lib/kubelet");
  const { config } = await loadConfig({ argv: more.argv ?? [], host, log: silent });
  return await nodeFacts({
    host,
    log: silent,
    config,
    rootDir: "/var/lib/kubelet",
    hostnameOverride: "",
    nodeIp: "",
    interfaces: () => [],
    arch: "x86_64",
    memoryV2,
    ...(more.ignoreEviction === undefined ? {} : { ignoreEviction: more.ignoreEviction }),
  });
}

Deno.test("swap can be limited where the agent's own group has the file; the root group never has it", async () => {
  const root = "/sys/fs/cgroup";
  const table: [string, Record<string, string>, boolean][] = [
    ["of a service", { "/proc/self/cgroup": "0::/system.slice/kubelet.service\n" }, true],
    ["of a group that has none", { "/proc/self/cgroup": "0::/other\n" }, false],
    ["of the root", { "/proc/self/cgroup": "0::/\n" }, false],
  ];
  for (const [name, files, expected] of table) {
    const there = { [`${root}/system.slice/kubelet.service/memory.swap.max`]: "max\n", ...files };
    assert.equal((await facts(there, root)).swapController, expected, name);
  }
  assert.equal((await facts({})).swapController, false, "v1");
});

Deno.test("the number of processes is the lower of the kernel's limits", async () => {
  const table: [Record<string, string>, number | undefined][] = [
    [{ pid_max: "4194304\n", "threads-max": "23233\n" }, 23233],
    [{ pid_max: "32768\n", "threads-max": "99999\n" }, 32768],
    [{ pid_max: "32768\n" }, 32768],
    [{}, undefined],
    [{ pid_max: "many\n" }, undefined],
  ];
  for (const [limits, expected] of table) {
    const files = Object.fromEntries(Object.entries(limits).map(([name, text]) => [`/proc/sys/kernel/${name}`, text]));
    assert.equal((await facts(files)).pids, expected);
  }
});

Deno.test("hard eviction thresholds count against what pods may have, unless they are to be left out", async () => {
  const argv = ["--eviction-hard=memory.available<1Gi,nodefs.available<1Gi"];
  const less = await facts({}, undefined, { argv });
  const all = await facts({}, undefined, { argv, ignoreEviction: true });
  assert.notDeepEqual(less.allocatable, all.allocatable);
  assert.equal(all.allocatable.memory, all.capacity.memory);
  assert.equal(all.allocatable["ephemeral-storage"], all.capacity["ephemeral-storage"]);
});

Deno.test("without local storage isolation the node has no ephemeral storage to give", async () => {
  const on = await facts({}), off = await facts({}, undefined, { argv: ["--local-storage-capacity-isolation=false"] });
  assert.ok(on.capacity["ephemeral-storage"] && on.allocatable["ephemeral-storage"]);
  assert.equal(off.capacity["ephemeral-storage"], undefined);
  assert.equal(off.allocatable["ephemeral-storage"], undefined);
});

Deno.test("the node's name: as given or the machine's, lower-cased; a name that can be none is refused", () => {
  assert.equal(nodeName("", "Host-1\n"), "host-1");
  assert.equal(nodeName("Other.example", "host"), "other.example");
  for (const bad of ["my_host", "", "a..b", "-a", "a".repeat(254)]) {
    assert.throws(() => nodeName("", bad), { code: "BadConfig", message: /give one with --hostname-override/ });
  }
});
