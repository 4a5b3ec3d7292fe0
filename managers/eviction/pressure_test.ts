import assert from "@assert";
import { observe } from "./observations.ts";
import { isRelieved, lookAt, noPressure, type PressureState } from "./pressure.ts";
import { fs, Gi, hard, memory, Mi, snapshot } from "./testing.ts";
import { memoryFirst } from "./thresholds.ts";
import type { Threshold } from "./types.ts";

const plain = { ignorePageCache: false };

/** A node whose free memory, disk and processes are told step by step. */
class Node {
  state: PressureState = noPressure;
  constructor(readonly thresholds: readonly Threshold[], readonly transitionMs = 300_000) {}

  at(now: number, free: { memory?: number; disk?: number; pids?: number; read?: number }) {
    const at = free.read ?? now;
    const reading = snapshot(at, {
      sample: { at, memory: memory(10 * Gi - (free.memory ?? 5 * Gi)) },
      fs: fs(at, free.disk ?? 50 * Gi, 100 * Gi),
      rlimit: { at, maxPid: 1000, running: 1000 - (free.pids ?? 900) },
    });
    const { thresholds, transitionMs } = this;
    const found = lookAt(this.state, { thresholds, observations: observe(reading, plain), now, transitionMs });
    this.state = found.state;
    return { conditions: found.conditions, due: found.due.map(({ signal }) => signal) };
  }
}

Deno.test("a hard threshold is acted upon at once, and its condition stays for the transition period", () => {
  const node = new Node([hard("memory.available", "100Mi")]);
  assert.deepEqual(node.at(1000, {}), { conditions: [], due: [] });
  assert.deepEqual(node.at(11_000, { memory: 99 * Mi }), {
    conditions: ["MemoryPressure"],
    due: ["memory.available"],
  });
  assert.deepEqual(node.at(21_000, { memory: Gi }), { conditions: ["MemoryPressure"], due: [] });
  assert.deepEqual(node.at(310_999, { memory: Gi }).conditions, ["MemoryPressure"]);
  assert.deepEqual(node.at(311_000, { memory: Gi }).conditions, []);
});

Deno.test("a condition that comes back begins its period anew", () => {
  const node = new Node([hard("pid.available", "100")]);
  node.at(0, { pids: 50 });
  node.at(200_000, { pids: 99 });
  assert.deepEqual(node.at(499_999, {}).conditions, ["PIDPressure"]);
  assert.deepEqual(node.at(500_000, {}).conditions, []);
});

Deno.test("a soft threshold sets its condition at once and is acted upon after its grace, uninterrupted", () => {
  const node = new Node([hard("nodefs.available", "10Gi", { grace: 30_000 })]);
  assert.deepEqual(node.at(1, { disk: 9 * Gi }), { conditions: ["DiskPressure"], due: [] });
  assert.deepEqual(node.at(20_001, { disk: 11 * Gi }).due, []);
  assert.deepEqual(node.at(30_001, { disk: 9 * Gi }).due, [], "the grace began anew");
  assert.deepEqual(node.at(60_000, { disk: 9 * Gi }).due, []);
  assert.deepEqual(node.at(60_001, { disk: 9 * Gi }).due, ["nodefs.available"]);
});

Deno.test("minimum reclaim keeps a threshold that was acted upon until it is exceeded by that much", () => {
  const node = new Node([hard("memory.available", "1Gi", { reclaim: "500Mi" })]);
  assert.deepEqual(node.at(1, { memory: Gi + 400 * Mi }).due, [], "not met before");
  assert.deepEqual(node.at(10_001, { memory: Gi - 1 }).due, ["memory.available"]);
  assert.deepEqual(node.at(20_001, { memory: Gi + 499 * Mi }).due, ["memory.available"]);
  assert.deepEqual(node.at(30_001, { memory: Gi + 500 * Mi }).due, []);
  assert.deepEqual(node.at(40_001, { memory: Gi + 499 * Mi }).due, [], "resolved: only the threshold counts again");
});

Deno.test("minimum reclaim of a soft threshold holds only once its grace has passed", () => {
  const node = new Node([hard("memory.available", "1Gi", { grace: 15_000, reclaim: "1Gi" })]);
  node.at(1, { memory: Mi });
  assert.deepEqual(node.at(10_001, { memory: Gi + 1 }).due, []);
  assert.deepEqual(node.at(20_001, { memory: Gi + 1 }).due, []);
  node.at(30_001, { memory: Mi });
  assert.deepEqual(node.at(45_001, { memory: Mi }).due, ["memory.available"]);
  assert.deepEqual(node.at(55_001, { memory: Gi + 1 }).due, ["memory.available"]);
});

Deno.test("one reading is acted upon once", () => {
  const node = new Node([hard("memory.available", "1Gi")]);
  assert.deepEqual(node.at(10_000, { memory: Mi }).due, ["memory.available"]);
  const again = node.at(20_000, { memory: Mi, read: 10_000 });
  assert.deepEqual(again, { conditions: ["MemoryPressure"], due: [] });
  assert.deepEqual(node.at(30_000, { memory: Mi, read: 10_001 }).due, ["memory.available"]);
});

Deno.test("memory goes before disk and processes; conditions come in the node's order", () => {
  const thresholds = memoryFirst([
    hard("pid.available", "500"),
    hard("nodefs.available", "90%"),
    hard("memory.available", "9Gi"),
  ]);
  assert.deepEqual(new Node(thresholds).at(1, { pids: 1 }), {
    conditions: ["MemoryPressure", "DiskPressure", "PIDPressure"],
    due: ["memory.available", "pid.available", "nodefs.available"],
  });
});

Deno.test("a signal that cannot be read meets nothing, and drops what was met", () => {
  const threshold = hard("memory.available", "1Gi", { reclaim: "1Gi" });
  const node = new Node([threshold]);
  node.at(1, { memory: Mi });
  const blind = lookAt(node.state, { thresholds: [threshold], observations: new Map(), now: 2, transitionMs: 10 });
  assert.deepEqual(blind.due, []);
  assert.deepEqual(blind.state.met, []);
  assert.deepEqual(blind.conditions, ["MemoryPressure"], "for its period");
});

Deno.test("a clock that is set back neither holds up evictions nor keeps conditions for longer", () => {
  const node = new Node([hard("memory.available", "1Gi"), hard("pid.available", "100", { grace: 20_000 })]);
  node.at(10_000_000, { memory: Mi, pids: 50 });
  assert.deepEqual(node.at(1_000_000, { memory: Mi, pids: 50 }).due, ["memory.available"]);
  assert.deepEqual(node.at(1_020_000, { pids: 50 }).due, ["pid.available"]);
  assert.deepEqual(node.at(1_299_999, {}).conditions, ["MemoryPressure", "PIDPressure"]);
  assert.deepEqual(node.at(1_300_000, {}).conditions, ["PIDPressure"]);
});

Deno.test("without a transition period a condition holds as long as its threshold is met", () => {
  const node = new Node([hard("memory.available", "1Gi")], 0);
  assert.deepEqual(node.at(1, { memory: Mi }).conditions, ["MemoryPressure"]);
  assert.deepEqual(node.at(2, {}).conditions, []);
});

Deno.test("relieved is what exceeds every threshold by its minimum reclaim", () => {
  const thresholds = [hard("nodefs.available", "10Gi", { reclaim: "5Gi" }), hard("memory.available", "1Gi")];
  const free = (disk: number, bytes: number) =>
    observe(snapshot(1, { fs: fs(1, disk, 100 * Gi), sample: { at: 1, memory: memory(10 * Gi - bytes) } }), plain);
  assert.equal(isRelieved(thresholds, free(15 * Gi, Gi)), true);
  assert.equal(isRelieved(thresholds, free(15 * Gi - 1, Gi)), false);
  assert.equal(isRelieved(thresholds, free(15 * Gi, Gi - 1)), false);
});
