import assert from "@assert";
import { FakeClock } from "./fake_clock.ts";
import { Journal } from "./journal.ts";

const pod = { namespace: "default", name: "a", uid: "1" };

Deno.test("an action leaves one record with its reason, duration and outcome", async () => {
  const clock = new FakeClock(0);
  const sunk: number[] = [];
  const journal = new Journal({ clock, sink: (r) => sunk.push(r.seq) });
  const acting = journal.act(
    "StopContainer",
    { pod, reason: "Unhealthy", message: "liveness" },
    "c1",
    () => clock.sleep(5),
  );
  await clock.advance(5);
  await acting;
  await assert.rejects(
    journal.act("RemoveContainer", { pod, reason: "Old", message: "old" }, "c1", () => Promise.reject(new Error("no"))),
  );
  assert.deepEqual(journal.records("1").map((r) => [r.action, r.reason, r.target, r.tookMs, r.error]), [
    ["StopContainer", "Unhealthy", "c1", 5, undefined],
    ["RemoveContainer", "Old", "c1", 0, "no"],
  ]);
  assert.deepEqual(sunk, [1, 2]);
});

Deno.test("the journal keeps the newest records", () => {
  const journal = new Journal({ clock: new FakeClock(0), limit: 10 });
  for (let i = 0; i < 100; i++) journal.note("Reject", { pod, reason: `r${i}`, message: "" });
  const kept = journal.records();
  assert.ok(kept.length >= 10 && kept.length <= 11);
  assert.equal(kept.at(-1)?.reason, "r99");
});
