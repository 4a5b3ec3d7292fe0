import assert from "@assert";
import { kernelTunables } from "../../managers/node/tunables.ts";
import { FakeClock } from "../base/fake_clock.ts";
import { FakeHost } from "../base/fake_host.ts";
import { RecordingLogger } from "../base/log.ts";
import { RecordingEvents } from "../kube/events.ts";
import { checkMachine, requireRoot, swapDevices } from "./start_checks.ts";

const heading = "Filename\t\t\t\tType\t\tSize\t\tUsed\t\tPriority\n";

function setUp(swaps: string) {
  const host = new FakeHost({
    clock: new FakeClock(),
    files: {
      "/proc/swaps": heading + swaps,
      "/proc/self/oom_score_adj": "0\n",
      ...Object.fromEntries(kernelTunables.map(([name]) => [`/proc/sys/${name}`, "0\n"])),
    },
  });
  const log = new RecordingLogger();
  const events = new RecordingEvents();
  const check = (
    config: { failSwapOn: boolean; oomScoreAdj: number; protectKernelDefaults?: boolean },
    version: 1 | 2 = 2,
  ) =>
    checkMachine({ config: { protectKernelDefaults: false, ...config }, host, hierarchies: { version }, events, log });
  return { host, log, events, check };
}

Deno.test("whoever is not root is told plainly", () => {
  requireRoot(0);
  assert.throws(() => requireRoot(1000), {
    message: /^the agent must run as root, and this is user 1000; start it as root/,
  });
});

Deno.test("the table of swaps is read without its heading", () => {
  assert.deepEqual(swapDevices(`${heading}/dev/sda2  partition 1 0 -2\n/swap file 1 0 -3\n`), ["/dev/sda2", "/swap"]);
  assert.deepEqual(swapDevices(heading), []);
});

Deno.test("swap is refused by name with the remedy, unless it is allowed", async () => {
  const t = setUp("/dev/sda2  partition 1 0 -2\n");
  await assert.rejects(t.check({ failSwapOn: true, oomScoreAdj: 0 }), /\/dev\/sda2.*failSwapOn: false/);
  await t.check({ failSwapOn: false, oomScoreAdj: 0 });
});

Deno.test("the agent's own OOM score is set; a machine that refuses it is told and runs on", async () => {
  const t = setUp("");
  await t.check({ failSwapOn: true, oomScoreAdj: -999 });
  assert.equal((await t.host.readText("/proc/self/oom_score_adj")).trim(), "-999");
  using _denied = t.host.denied("/proc/self/oom_score_adj");
  await t.check({ failSwapOn: true, oomScoreAdj: -999 });
  assert.match(t.log.lines.at(-1)!.message, /OOM score cannot be set/);
});

Deno.test("cgroup v1 is told as a node event", async () => {
  const t = setUp("");
  await t.check({ failSwapOn: true, oomScoreAdj: 0 }, 1);
  await t.check({ failSwapOn: true, oomScoreAdj: 0 }, 2);
  assert.deepEqual(t.events.nodeEvents.map((e) => e.reason), ["CgroupV1"]);
});

Deno.test("the kernel's tunables are set at the start, or refused", async () => {
  const t = setUp("");
  const config = { failSwapOn: true, oomScoreAdj: 0 };
  await assert.rejects(t.check({ ...config, protectKernelDefaults: true }), /kernel\/panic, expected value: 10/);
  await t.check(config);
  assert.equal((await t.host.readText("/proc/sys/kernel/panic")).trim(), "10");
});
