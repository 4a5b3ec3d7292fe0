import assert from "@assert";
import { FakeHost } from "../base/fake_host.ts";
import { RecordingLogger, silent } from "../base/log.ts";
import { sysFacts } from "./sys_facts.ts";

Deno.test("sysfs: huge pages by size, hot CPUs, AppArmor", async () => {
  const huge = "/sys/kernel/mm/hugepages";
  const cpu = "/sys/devices/system/cpu";
  const host = new FakeHost({
    files: {
      [`${huge}/hugepages-1048576kB/nr_hugepages`]: "1\n",
      [`${huge}/hugepages-2048kB/nr_hugepages`]: "512\n",
      [`${huge}/hugepages-64kB/nr_hugepages`]: "x\n",
      [`${huge}/other/nr_hugepages`]: "4\n",
      [`${cpu}/cpu10/thermal_throttle/core_throttle_count`]: "0\n",
      [`${cpu}/cpu2/thermal_throttle/core_throttle_count`]: "0\n",
      [`${cpu}/cpu0/topology/core_id`]: "0\n",
      [`${cpu}/cpufreq/thermal_throttle/x`]: "0\n",
      "/sys/module/apparmor/parameters/enabled": "Y\n",
    },
  });
  assert.deepEqual(await sysFacts(host, silent), {
    hugePages: [
      { size: 64 * 1024, total: 0 },
      { size: 2 * 2 ** 20, total: 2 ** 30 },
      { size: 2 ** 30, total: 2 ** 30 },
    ],
    maskedPaths: [`${cpu}/cpu2/thermal_throttle`, `${cpu}/cpu10/thermal_throttle`],
    appArmor: true,
  });
});

Deno.test("sysfs: a machine that shows nothing of it has nothing of it", async () => {
  const none = { hugePages: [], maskedPaths: [], appArmor: false };
  assert.deepEqual(await sysFacts(new FakeHost(), silent), none);
  const host = new FakeHost({ files: { "/sys/module/apparmor/parameters/enabled": "Y\n" } });
  using _denied = host.denied("/sys");
  const log = new RecordingLogger();
  assert.deepEqual(await sysFacts(host, log), none);
  assert.equal(log.lines.length, 3);
});
