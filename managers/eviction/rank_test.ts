import assert from "@assert";
import type { BoundPod } from "../../mod/kube/types.ts";
import type { PodSample } from "../stats/types.ts";
import { rank } from "./rank.ts";
import { reclaimFor } from "./reclaim.ts";
import { containerStats, memory, Mi, pod, podStats } from "./testing.ts";
import type { DiskLayout, Signal } from "./types.ts";

interface Case {
  readonly pod: BoundPod;
  readonly stats: PodSample | undefined;
}

function order(cases: readonly Case[], signal: Signal, layout: DiskLayout = "single", ignorePageCache = false) {
  const stats = new Map(cases.flatMap(({ stats: each }) => each ? [[each.uid, each] as const] : []));
  const ranked = (pods: readonly Case[]) =>
    rank({ pods: pods.map((each) => each.pod), stats, signal, layout, ignorePageCache }).map((p) => p.metadata.name);
  const forwards = ranked(cases);
  assert.deepEqual(ranked(cases.toReversed()), forwards, "the order of the input does not matter");
  return forwards;
}

function asking(resource: string, amount: string | undefined, priority?: number, name = ""): BoundPod {
  return pod(name, {
    containers: [{
      name: "main",
      image: "i",
      ...(amount === undefined ? {} : { resources: { requests: { [resource]: amount } } }),
    }],
    ...(priority === undefined ? {} : { priority }),
  });
}

const using = (name: string, mebibytes: number, request?: string, priority?: number, activeFile = 0): Case => ({
  pod: asking("memory", request, priority, name),
  stats: podStats(name, { sample: { at: 1, memory: memory(mebibytes * Mi, { activeFile: activeFile * Mi }) } }),
});

Deno.test("memory: unknown first, then above the request, then by priority, then by what is above the request", () => {
  assert.deepEqual(
    order([
      using("below-important", 100, "200Mi", 1000),
      using("below", 100, "300Mi"),
      using("below-near", 100, "101Mi"),
      using("above-important", 900, "100Mi", 1000),
      using("above", 300, "100Mi"),
      using("above-more", 301, "100Mi"),
      using("best-effort", 150),
      { pod: pod("unknown", { priority: 5000 }), stats: undefined },
      using("exactly", 100, "100Mi", -1),
    ], "memory.available"),
    [
      "unknown",
      "above-more",
      "above",
      "best-effort",
      "above-important",
      "exactly",
      "below-near",
      "below",
      "below-important",
    ],
  );
});

Deno.test("memory: the pods' own shortage ranks the same; the option leaves file cache out", () => {
  const cases = [using("cache", 500, undefined, 0, 450), using("heap", 300, undefined, 0, 10)];
  assert.deepEqual(order(cases, "allocatableMemory.available"), ["cache", "heap"]);
  assert.deepEqual(order(cases, "memory.full.avg10"), ["cache", "heap"]);
  assert.deepEqual(order(cases, "memory.available", "single", true), ["heap", "cache"]);
});

Deno.test("memory: what a sandbox takes counts for pods that ask for anything", () => {
  const overhead = { memory: "100Mi" };
  const asks = using("asks", 150, "100Mi");
  const asksNothing = using("asks-nothing", 150);
  assert.deepEqual(
    order([
      { ...asks, pod: { ...asks.pod, spec: { ...asks.pod.spec, overhead } } },
      { ...asksNothing, pod: { ...asksNothing.pod, spec: { ...asksNothing.pod.spec, overhead } } },
    ], "memory.available"),
    ["asks-nothing", "asks"],
  );
});

Deno.test("processes: by priority, then by how many; unknown ones before known of the same priority", () => {
  const running = (name: string, pids: number, priority?: number): Case => ({
    pod: pod(name, priority === undefined ? {} : { priority }),
    stats: podStats(name, { sample: { at: 1, pids } }),
  });
  assert.deepEqual(
    order([
      running("few", 2),
      running("many", 200),
      running("important", 900, 10),
      running("unimportant", 1, -10),
      { pod: pod("unknown"), stats: undefined },
    ], "pid.available"),
    ["unimportant", "unknown", "many", "few", "important"],
  );
});

/** A pod with so much in its writable layer, its logs, an emptyDir, a memory-backed one, a hostPath and a Secret. */
function keeping(
  name: string,
  kept: Partial<Record<"root" | "logs" | "dir" | "ram" | "host" | "secret", number>>,
): Case {
  const part = (amount = 0) => ({ at: 1, used: amount * Mi, inodesUsed: amount });
  const { root, logs, dir, ram, host, secret } = kept;
  const volumes = [
    { name: "dir", emptyDir: {} },
    { name: "ram", emptyDir: { medium: "Memory" } },
    { name: "host", hostPath: { path: "/srv" } },
    { name: "secret", secret: { secretName: "s" } },
  ];
  return {
    pod: pod(name, { volumes }),
    stats: podStats(name, {
      containers: [containerStats("main", { rootfs: part(root), logs: part(logs) })],
      volumes: [["dir", dir], ["ram", ram], ["host", host], ["secret", secret]].map(([volume, amount]) => ({
        name: String(volume),
        ...part(Number(amount ?? 0)),
      })),
    }),
  };
}

Deno.test("disk: only what lies on the disk in question counts", () => {
  const cases = [
    keeping("layer", { root: 50 }),
    keeping("logs", { logs: 40 }),
    keeping("dir", { dir: 30 }),
    keeping("host", { host: 20 }),
    keeping("elsewhere", { ram: 900, secret: 900, dir: 1 }),
  ];
  const all = ["layer", "logs", "dir", "host", "elsewhere"];
  const nodeOnly = ["logs", "dir", "host", "elsewhere", "layer"];
  for (
    const [layout, signal, want] of [
      ["single", "nodefs.available", all],
      ["single", "imagefs.available", all],
      ["single", "containerfs.inodesFree", all],
      ["imagefs", "nodefs.available", nodeOnly],
      ["imagefs", "nodefs.inodesFree", nodeOnly],
      ["split", "nodefs.available", all],
      ["split", "containerfs.available", all],
    ] as const
  ) assert.deepEqual(order(cases, signal, layout), want, `${layout} ${signal}`);
  for (const signal of ["imagefs.available", "containerfs.inodesFree"] as const) {
    assert.equal(order(cases.slice(0, 2), signal, "imagefs")[0], "layer");
  }
});

Deno.test("disk: above the request first, then priority, then what is above; inodes have no request", () => {
  const storing = (name: string, mebibytes: number, request?: string, priority?: number): Case => ({
    pod: asking("ephemeral-storage", request, priority, name),
    stats: podStats(name, {
      containers: [containerStats("main", { logs: { at: 1, used: mebibytes * Mi, inodesUsed: 5 } })],
    }),
  });
  const cases = [
    storing("below", 90, "100Mi"),
    storing("above", 110, "100Mi"),
    storing("above-important", 900, "100Mi", 7),
    storing("no-request", 20),
  ];
  assert.deepEqual(order(cases, "nodefs.available"), ["no-request", "above", "above-important", "below"]);
  assert.deepEqual(order(cases.filter((_, at) => at !== 1), "nodefs.inodesFree"), [
    "no-request",
    "below",
    "above-important",
  ]);
});

Deno.test("what is given back before a pod goes", () => {
  const want: Readonly<Record<DiskLayout, Readonly<Record<string, readonly string[]>>>> = {
    single: {
      nodefs: ["containers", "images"],
      imagefs: ["containers", "images"],
      containerfs: ["containers", "images"],
    },
    imagefs: { nodefs: [], imagefs: ["containers", "images"], containerfs: ["containers", "images"] },
    split: { nodefs: ["containers"], imagefs: ["images"], containerfs: ["containers"] },
  };
  for (const layout of ["single", "imagefs", "split"] as const) {
    for (const fs of ["nodefs", "imagefs", "containerfs"] as const) {
      assert.deepEqual(reclaimFor(`${fs}.available`, layout), want[layout][fs], `${layout} ${fs}`);
      assert.deepEqual(reclaimFor(`${fs}.inodesFree`, layout), want[layout][fs], `${layout} ${fs}`);
    }
    assert.deepEqual(reclaimFor("memory.available", layout), []);
    assert.deepEqual(reclaimFor("pid.available", layout), []);
  }
});
