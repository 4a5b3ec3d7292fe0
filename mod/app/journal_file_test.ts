import assert from "@assert";
import type { JournalRecord } from "../base/journal.ts";
import { turn } from "../base/fake_clock.ts";
import { RecordingLogger } from "../base/log.ts";
import { JournalFile } from "./journal_file.ts";

const record = (seq: number): JournalRecord => ({ seq, at: 0, action: "StopContainer", reason: "Test", message: "m" });

function setUp(maxBytes?: number) {
  const files = new Map<string, string>();
  const fail = { now: false };
  const log = new RecordingLogger();
  const journal = new JournalFile({
    path: "/j",
    log,
    ...(maxBytes === undefined ? {} : { maxBytes }),
    store: {
      append: (path, text) => {
        if (fail.now) return Promise.reject(new Error("no space left"));
        files.set(path, (files.get(path) ?? "") + text);
        return Promise.resolve(files.get(path)!.length);
      },
      rename: (from, to) => {
        files.set(to, files.get(from)!);
        files.delete(from);
        return Promise.resolve();
      },
    },
  });
  const abort = new AbortController();
  const running = journal.run(abort.signal);
  const end = async () => {
    abort.abort();
    await running;
  };
  return { files, fail, log, journal, end };
}

Deno.test("records are written as lines, in order, also those that come while it ends", async () => {
  const t = setUp();
  t.journal.sink(record(1));
  await turn();
  t.journal.sink(record(2));
  t.journal.sink(record(3));
  await t.end();
  const lines = t.files.get("/j")!.trimEnd().split("\n").map((l) => JSON.parse(l));
  assert.deepEqual(
    lines.map((l) => [l.seq, l.at, l.action]),
    [1, 2, 3].map((n) => [n, "1970-01-01T00:00:00.000Z", "StopContainer"]),
  );
});

Deno.test("a file that has grown to its limit gives way to a new one", async () => {
  const t = setUp(10);
  t.journal.sink(record(1));
  await turn();
  t.journal.sink(record(2));
  await turn();
  assert.match(t.files.get("/j.1")!, /"seq":2/);
  assert.equal(t.files.has("/j"), false);
  await t.end();
});

Deno.test("a disk that takes nothing is told once, and writing goes on when it can", async () => {
  const t = setUp();
  t.fail.now = true;
  for (const n of [1, 2]) {
    t.journal.sink(record(n));
    await turn();
  }
  assert.equal(t.log.lines.length, 1);
  t.fail.now = false;
  t.journal.sink(record(3));
  await t.end();
  assert.match(t.files.get("/j")!, /"seq":3/);
});
