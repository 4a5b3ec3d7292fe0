import assert from "@assert";
import { formatQuantity } from "../../mod/kube/quantity.ts";
import { observe } from "./observations.ts";
import { fs, Gi, memory, Mi, snapshot } from "./testing.ts";

const seen = (...given: Parameters<typeof observe>) =>
  Object.fromEntries(
    [...observe(...given)].map(([signal, { available, capacity, at }]) => [
      signal,
      `${formatQuantity(available)} of ${formatQuantity(capacity)} at ${at}`,
    ]),
  );
const plain = { ignorePageCache: false };

Deno.test("signals: memory, the pods' memory below its limit, disks, processes, each with the time of its reading", () => {
  const pods = { name: "pods", group: "/kubepods", startedAt: 0 } as const;
  const reading = snapshot(100, {
    sample: { at: 101, memory: memory(4 * Gi) },
    system: [{ ...pods, sample: { at: 102, memory: memory(3 * Gi, { limit: 8 * Gi }) } }],
    fs: fs(103, 10 * Gi, 100 * Gi),
    imageFs: fs(104, 20 * Gi, 200 * Gi, { inodesFree: 5, inodes: 50 }),
    rlimit: { at: 105, maxPid: 32_768, running: 768 },
  });
  assert.deepEqual(seen(reading, plain), {
    "memory.available": "6Gi of 10Gi at 101",
    "allocatableMemory.available": "5Gi of 8Gi at 102",
    "nodefs.available": "10Gi of 100Gi at 103",
    "nodefs.inodesFree": "900 of 1k at 103",
    "imagefs.available": "20Gi of 200Gi at 104",
    "imagefs.inodesFree": "5 of 50 at 104",
    "containerfs.available": "20Gi of 200Gi at 104",
    "containerfs.inodesFree": "5 of 50 at 104",
    "pid.available": "32k of 32768 at 105",
  });
});

Deno.test("signals: what is not known is left out", () => {
  const pods = { name: "pods", group: "/kubepods", startedAt: 0, sample: { at: 1, memory: memory(Gi) } } as const;
  const { fs: _fs, imageFs: _imageFs, rlimit: _rlimit, ...node } = snapshot(1).node;
  const bare = { ...snapshot(1), node: { ...node, sample: { at: 1 }, system: [pods] } };
  assert.deepEqual(seen(bare, plain), {});
  const strange = { ...bare, node: { ...bare.node, fs: { at: 1, available: NaN, capacity: Infinity, inodes: 0 } } };
  assert.deepEqual(seen(strange, plain), {});
  // A file system that makes inodes when it needs them tells 0 of 0.
  const btrfs = snapshot(1, { fs: fs(1, Gi, 10 * Gi, { inodes: 0, inodesFree: 0 }) });
  assert.equal(seen(btrfs, plain)["nodefs.inodesFree"], undefined);
});

Deno.test("signals: use beyond the capacity leaves nothing, not less", () => {
  const reading = snapshot(1, { sample: { at: 1, memory: memory(11 * Gi) } });
  assert.equal(seen(reading, plain)["memory.available"], "0 of 11Gi at 1");
});

Deno.test("signals: with the option, file cache in use counts as available; never more than there is", () => {
  const reading = snapshot(1, { sample: { at: 1, memory: memory(9 * Gi, { activeFile: 4 * Gi }) } });
  assert.equal(seen(reading, plain)["memory.available"], "1Gi of 10Gi at 1");
  assert.equal(seen(reading, { ignorePageCache: true })["memory.available"], "5Gi of 10Gi at 1");
  const odd = snapshot(1, { sample: { at: 1, memory: memory(Mi, { activeFile: Gi }) } });
  assert.equal(seen(odd, { ignorePageCache: true })["memory.available"], "10Gi of 10Gi at 1");
});

Deno.test("signals: time lost for want of memory, as the share that is left", () => {
  const line = (avg10: number) => ({ total: 0, avg10, avg60: 1, avg300: 0 });
  const psi = { memory: { some: line(12.34), full: line(99.99) } };
  const found = seen(snapshot(1, { sample: { at: 7, psi } }), plain);
  assert.equal(found["memory.some.avg10"], "87660m of 100 at 7");
  assert.equal(found["memory.full.avg10"], "10m of 100 at 7");
  assert.equal(found["memory.full.avg60"], "99 of 100 at 7");
});
