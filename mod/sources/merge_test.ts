import assert from "@assert";
import fc from "fast-check";
import { configSeen, configSource } from "../kube/pod.ts";
import { type Duplicate, Merger } from "./merge.ts";
import { boundPod } from "./testing.ts";
import type { PodChange, SourceName } from "./types.ts";

const start = Date.UTC(2026, 0, 1);
const make = () => {
  const clock = { time: start, now: () => clock.time };
  const duplicates: Duplicate[] = [];
  return { clock, duplicates, merger: new Merger({ clock, onDuplicate: (d) => duplicates.push(d) }) };
};
const short = (changes: readonly PodChange[]) => changes.map(({ op, pod }) => `${op} ${pod.metadata.uid}`);

Deno.test("a new pod is added with source and first-seen time, and stays quiet when nothing changes", () => {
  const { merger, clock } = make();
  const [added] = merger.apply({ source: "file", pods: [boundPod("a", "1")] });
  assert.equal(added?.op, "add");
  assert.equal(added?.pod.metadata.annotations?.[configSource], "file");
  assert.equal(added?.pod.metadata.annotations?.[configSeen], "2026-01-01T00:00:00.000Z");
  clock.time += 5000;
  assert.deepEqual(merger.apply({ source: "file", pods: [boundPod("a", "1")] }), []);
});

Deno.test("an update keeps the first-seen time", () => {
  const { merger, clock } = make();
  merger.apply({ source: "file", pods: [boundPod("a", "1")] });
  clock.time += 5000;
  const [change] = merger.apply({ source: "file", pods: [boundPod("a", "1", { image: "other:2" })] });
  assert.equal(change?.op, "update");
  assert.equal(change?.pod.metadata.annotations?.[configSeen], "2026-01-01T00:00:00.000Z");
});

Deno.test("a change of content under a new UID removes first, then adds, in one batch", () => {
  const { merger } = make();
  merger.apply({ source: "file", pods: [boundPod("a", "1")] });
  assert.deepEqual(short(merger.apply({ source: "file", pods: [boundPod("a", "2")] })), ["remove 1", "add 2"]);
});

Deno.test("status alone is a reconcile, a deletion time is a delete, a new name is a remove and an add", () => {
  const { merger } = make();
  merger.apply({ source: "api", pods: [boundPod("a", "1")] });
  const withStatus = boundPod("a", "1", { status: { phase: "Running" } });
  assert.deepEqual(short(merger.apply({ source: "api", pods: [withStatus] })), ["reconcile 1"]);
  const deleted = boundPod("a", "1", { deletionTimestamp: "2026-01-01T00:00:00Z" });
  assert.deepEqual(short(merger.apply({ source: "api", pods: [deleted] })), ["delete 1"]);
  assert.deepEqual(short(merger.apply({ source: "api", pods: [boundPod("b", "1")] })), ["remove 1", "add 1"]);
});

Deno.test("of two pods with one full name in a source the first wins, and it is told once", () => {
  const { merger, duplicates } = make();
  const pods = [boundPod("a", "1"), boundPod("a", "2"), boundPod("a", "3", { namespace: "other" })];
  assert.deepEqual(short(merger.apply({ source: "file", pods })), ["add 1", "add 3"]);
  merger.apply({ source: "file", pods });
  assert.deepEqual(duplicates.map(({ pod, same }) => [pod.metadata.uid, same]), [["2", "name"]]);
  assert.deepEqual(short(merger.apply({ source: "file", pods: pods.slice(1) })), ["remove 1", "add 2"]);
  merger.apply({ source: "file", pods });
  assert.equal(duplicates.length, 2, "it came back, so it is told again");
});

Deno.test("a UID wanted by two sources goes to the file, and to the other once the file drops it", () => {
  const { merger, duplicates } = make();
  assert.deepEqual(short(merger.apply({ source: "http", pods: [boundPod("a", "1")] })), ["add 1"]);
  assert.deepEqual(short(merger.apply({ source: "file", pods: [boundPod("b", "1")] })), ["remove 1", "add 1"]);
  assert.deepEqual(duplicates.map(({ source, same }) => [source, same]), [["http", "uid"]]);
  assert.deepEqual(short(merger.apply({ source: "file", pods: [] })), ["remove 1", "add 1"]);
  assert.equal(merger.pods[0]?.metadata.name, "a");
});

Deno.test("sources don't touch one another's pods", () => {
  const { merger } = make();
  merger.apply({ source: "file", pods: [boundPod("a", "1")] });
  assert.deepEqual(short(merger.apply({ source: "api", pods: [boundPod("b", "2")] })), ["add 2"]);
  assert.deepEqual(short(merger.apply({ source: "file", pods: [] })), ["remove 1"]);
});

Deno.test("the changes carried out one after another always give the wanted pods, and no op is out of place", () => {
  const uid = fc.constantFrom("1", "2", "3", "4");
  const pod = fc.record({ name: fc.constantFrom("a", "b", "c"), uid, image: fc.constantFrom("x", "y") })
    .map(({ name, uid, image }) => boundPod(name, uid, { image }));
  const snapshot = fc.record({
    source: fc.constantFrom<SourceName>("file", "http", "api"),
    pods: fc.array(pod, { maxLength: 5 }),
  });
  fc.assert(fc.property(fc.array(snapshot, { maxLength: 12 }), (snapshots) => {
    const { merger } = make();
    const running = new Map<string, string>();
    for (const one of snapshots) {
      const seen: string[] = [];
      for (const { op, pod } of merger.apply(one)) {
        const { uid } = pod.metadata;
        if (op === "remove") assert.ok(running.delete(uid));
        else {
          assert.equal(running.has(uid), op !== "add");
          running.set(uid, `${pod.metadata.name} ${pod.spec.containers[0]?.image}`);
        }
        seen.push(op);
      }
      const rank = seen.map((op) => ["remove", "add", "update", "delete", "reconcile"].indexOf(op));
      assert.deepEqual(rank, [...rank].sort());
      const wanted = merger.pods.map((p) => [p.metadata.uid, `${p.metadata.name} ${p.spec.containers[0]?.image}`]);
      assert.deepEqual(new Map(wanted as [string, string][]), running);
      const names = merger.pods.map((p) => `${p.metadata.annotations?.[configSource]} ${p.metadata.name}`);
      assert.equal(new Set(names).size, names.length);
    }
  }));
});

Deno.test("a change of status leaves the definition the very same object", () => {
  const { merger } = make();
  const [added] = merger.apply({ source: "api", pods: [boundPod("a", "1", { status: { phase: "Pending" } })] });
  const [changed] = merger.apply({ source: "api", pods: [boundPod("a", "1", { status: { phase: "Running" } })] });
  assert.deepEqual([added?.op, changed?.op, changed?.pod.status?.phase], ["add", "reconcile", "Running"]);
  assert.equal(changed?.pod.spec, added?.pod.spec);
  assert.equal(changed?.pod.metadata.annotations, added?.pod.metadata.annotations);
});
