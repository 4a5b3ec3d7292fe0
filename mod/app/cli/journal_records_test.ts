import assert from "@assert";
import { FakeHost } from "../../base/fake_host.ts";
import { parseRecord, readJournal } from "./journal_records.ts";

const line = (seq: number, uid: string) =>
  JSON.stringify({
    seq,
    at: new Date(seq * 1000).toISOString(),
    action: "StopContainer",
    reason: "R",
    message: "m",
    pod: { namespace: "n", name: "p", uid },
  });

Deno.test("the older file comes first; broken lines are passed over; one pod's are chosen by its UID", async () => {
  const host = new FakeHost({
    files: {
      "/r/journal.jsonl.1": `${line(1, "a")}\n${line(2, "b")}\n`,
      "/r/journal.jsonl": `half of a line\n${line(3, "a")}\n{"seq":4,"at":"20`,
    },
  });
  assert.deepEqual((await readJournal(host, "/r")).map(({ seq }) => seq), [1, 2, 3]);
  assert.deepEqual((await readJournal(host, "/r", "a")).map(({ seq }) => seq), [1, 3]);
  assert.deepEqual(await readJournal(host, "/none"), []);
});

for (const text of ["", "null", "7", "[]", "{}", '{"at":"x","action":"a"}', '{"at":"2026-01-01T00:00:00Z"}']) {
  Deno.test(`no record: ${text}`, () => assert.equal(parseRecord(text), undefined));
}
