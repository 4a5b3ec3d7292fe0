import assert from "@assert";
import type { StatsSnapshot } from "../../../managers/stats/types.ts";
import { cadvisorPage } from "./cadvisor.ts";
import { resourcePage } from "./resource.ts";
import { summaryOf } from "./summary.ts";
import { MetricsPage } from "./text.ts";

const at = 1_796_041_788_719;

const memory = {
  usage: 700,
  workingSet: 600,
  rss: 500,
  cache: 4,
  mappedFile: 3,
  activeFile: 2,
  inactiveFile: 100,
  pageFaults: 11,
  majorPageFaults: 1,
  allPageFaults: 22,
  allMajorPageFaults: 2,
};

const snapshot: StatsSnapshot = {
  at,
  detail: "cadvisor",
  node: {
    name: "node1",
    startedAt: 1000,
    memoryCapacity: 10_000,
    swapCapacity: 0,
    cpus: 2,
    sample: { at, cpuNs: 2_500_000_000, memory, swap: { usage: 0 } },
    system: [],
  },
  pods: [
    {
      uid: "u1",
      name: 'we"b',
      namespace: "ns",
      startedAt: 4000,
      group: "/kubepods/podu1",
      sample: { at, cpuNs: 1_000_000_000, nanoCores: 5, memory },
      containers: [
        {
          name: "main",
          id: "c1",
          image: "busybox",
          startedAt: 5500,
          group: "/kubepods/podu1/c1",
          sample: { at, cpuNs: 39_338_117, memory: { ...memory, limit: 1000 }, swap: { usage: 3, limit: 10 } },
        },
        { name: "bare", id: "c2", image: "busybox", startedAt: 0, group: undefined, sample: undefined },
      ],
    },
  ],
};

const facts = { machineId: "m", systemUuid: "s", bootId: "b", kernelVersion: "6.1", osVersion: "Debian" };

/** The samples of a page, without its comments. */
function samples(page: string | Uint8Array): string[] {
  const text = typeof page === "string" ? page : new TextDecoder().decode(page);
  return text.split("\n").filter((line) => line !== "" && !line.startsWith("#"));
}

Deno.test("the text format: families by name, one head each, escapes, odd numbers, nothing of an empty family", () => {
  const page = new MetricsPage();
  page.family("b", "gauge", "what\nb \\ is");
  page.family("a", "counter", "a");
  page.family("empty", "gauge", "nothing");
  page.sample("b", { l: 'x"\\\n' }, Infinity);
  page.sample("a", {}, 1.5, 1234.9);
  page.sample("b", { l: "y" }, NaN);
  page.sample("b", { l: "z" }, undefined);
  assert.equal(
    page.text(),
    "# HELP a a\n# TYPE a counter\na 1.5 1234\n" +
      '# HELP b what\\nb \\\\ is\n# TYPE b gauge\nb{l="x\\"\\\\\\n"} +Inf\nb{l="y"} NaN\n',
  );
});

Deno.test("/metrics/resource: seconds and bytes, the time of the reading, nothing for what is not known", () => {
  assert.deepEqual(samples(resourcePage(snapshot)), [
    `container_cpu_usage_seconds_total{container="main",namespace="ns",pod="we\\"b"} 0.039338117 ${at}`,
    `container_memory_working_set_bytes{container="main",namespace="ns",pod="we\\"b"} 600 ${at}`,
    `container_start_time_seconds{container="main",namespace="ns",pod="we\\"b"} 5.5`,
    `container_swap_limit_bytes{container="main",namespace="ns",pod="we\\"b"} 10 ${at}`,
    `container_swap_usage_bytes{container="main",namespace="ns",pod="we\\"b"} 3 ${at}`,
    `node_cpu_usage_seconds_total 2.5 ${at}`,
    `node_memory_working_set_bytes 600 ${at}`,
    `node_swap_usage_bytes 0 ${at}`,
    `pod_cpu_usage_seconds_total{namespace="ns",pod="we\\"b"} 1 ${at}`,
    `pod_memory_working_set_bytes{namespace="ns",pod="we\\"b"} 600 ${at}`,
    "resource_scrape_error 0",
  ]);
  assert.deepEqual(samples(resourcePage(undefined)), ["resource_scrape_error 1"]);
});

Deno.test("/stats/summary: seconds, room below a limit or the node's memory, nothing for what is not known", () => {
  const summary = JSON.parse(JSON.stringify(summaryOf(snapshot, false)));
  const time = "2026-11-30T12:29:48Z";
  // The kernel tells nothing of lost time here: readers find zeros, as with the reference on cgroup v1.
  const none = { total: 0, avg10: 0, avg60: 0, avg300: 0 };
  const psi = { full: none, some: none };
  assert.deepEqual(summary.node, {
    nodeName: "node1",
    systemContainers: [],
    startTime: "1970-01-01T00:00:01Z",
    cpu: { time, usageCoreNanoSeconds: 2_500_000_000, psi },
    memory: {
      time,
      availableBytes: 9400,
      usageBytes: 700,
      workingSetBytes: 600,
      rssBytes: 500,
      pageFaults: 11,
      majorPageFaults: 1,
      psi,
    },
    io: { time, psi },
    swap: { time, swapAvailableBytes: 0, swapUsageBytes: 0 },
  });
  const [pod] = summary.pods;
  assert.deepEqual(pod.podRef, { name: 'we"b', namespace: "ns", uid: "u1" });
  assert.equal(pod.cpu.usageNanoCores, 5);
  assert.equal(pod.memory.availableBytes, undefined);
  assert.equal(pod.containers[0].memory.availableBytes, 400);
  assert.deepEqual(pod.containers[0].swap, { time, swapAvailableBytes: 7, swapUsageBytes: 3 });
  assert.deepEqual(pod.containers[1], { name: "bare", startTime: "1970-01-01T00:00:00Z" });
});

Deno.test("/metrics/cadvisor: six labels on everything, a time except on settings, an error tells itself", () => {
  const lines = samples(cadvisorPage(snapshot, facts));
  const labels = 'container="main",id="/kubepods/podu1/c1",image="busybox",name="c1",namespace="ns",pod="we\\"b"';
  const cpu = `${labels},cpu="total"`;
  assert.ok(lines.includes(`container_cpu_usage_seconds_total{${cpu}} 0.039338117 ${at}`), lines.join("\n"));
  assert.ok(lines.includes(`container_spec_memory_limit_bytes{${labels}} 1000`));
  assert.ok(lines.includes(`machine_memory_bytes{boot_id="b",machine_id="m",system_uuid="s"} 10000 ${at}`));
  const names = new TextDecoder().decode(cadvisorPage(snapshot, facts)).split("\n").flatMap((line) =>
    /^# TYPE (\S+)/.exec(line)?.[1] ?? []
  );
  assert.deepEqual(names, [...new Set(names)].sort(), "families by name, one head each");
  const failed = samples(cadvisorPage(undefined, facts));
  assert.ok(failed.includes("container_scrape_error 1") && failed.includes("machine_scrape_error 1"));
});
