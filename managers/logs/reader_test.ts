import assert from "@assert";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { FakeHost } from "../../mod/base/fake_host.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { readLogs } from "./reader.ts";
import { instantOf } from "./reader_stamp.ts";
import type { LogOptions, ReadLogsOptions } from "./reader_types.ts";

const path = "/var/log/pods/c/0.log";
const line = (content: string, stream = "stdout", tag = "F", second = 5) =>
  `2026-01-02T03:04:0${second}.123456789Z ${stream} ${tag} ${content}\n`;

/** A log that is being read: what came out so far, and how to go on. */
class Reading {
  readonly host: FakeHost;
  readonly clock = new FakeClock();
  readonly stop = new AbortController();
  readonly log = new RecordingLogger();
  running = true;
  asked = 0;
  parts: string[] = [];
  done: Promise<void> = Promise.resolve();
  ended = false;

  constructor(files: Record<string, string>) {
    this.host = new FakeHost({ files });
  }

  start(options: LogOptions, more: Partial<ReadLogsOptions> = {}): this {
    const decoder = new TextDecoder();
    this.done = readLogs({
      path,
      options,
      host: this.host,
      clock: this.clock,
      log: this.log,
      signal: this.stop.signal,
      isRunning: () => {
        this.asked++;
        return Promise.resolve(this.running);
      },
      out: (bytes) => {
        this.parts.push(decoder.decode(bytes, { stream: true }));
        return Promise.resolve();
      },
      ...more,
    }).finally(() => this.ended = true);
    return this;
  }

  get text(): string {
    return this.parts.join("");
  }

  async settle(): Promise<void> {
    for (let i = 0; i < 20; i++) await turn();
  }

  /** Lets the reader look once more at least. */
  async look(): Promise<void> {
    await this.settle();
    await this.clock.advance(250);
    await this.settle();
  }

  append(text: string): void {
    this.host.put(path, (this.host.text(path) ?? "") + text);
  }
}

async function read(text: string | Uint8Array, options: LogOptions): Promise<string> {
  const reading = new Reading({});
  reading.host.put(path, text);
  await reading.start(options).done;
  return reading.text;
}

Deno.test("lines, parts and what is none, by every option", async () => {
  const log = line("a", "stdout", "F", 1) + line("b1", "stderr", "P", 2) + line("b2", "stderr", "F:x", 3) +
    line("c", "stdout", "F", 4);
  const stamp = (second: number) => `2026-01-02T03:04:0${second}.123456789Z `;
  const since = (text: string) => ({ since: instantOf(text)! });
  const cases: [string, LogOptions, string][] = [
    ["", {}, ""],
    [log, {}, "a\nb1b2\nc\n"],
    [log, { timestamps: true }, `${stamp(1)}a\n${stamp(2)}b1b2\n${stamp(4)}c\n`],
    [log, { tailLines: 0 }, ""],
    [log, { tailLines: 1 }, "c\n"],
    [log, { tailLines: 2 }, "b2\nc\n"],
    [log, { tailLines: 4 }, "a\nb1b2\nc\n"],
    [log, { tailLines: 9 }, "a\nb1b2\nc\n"],
    [log + "2026-01-02T03:04:05Z stdout F no end", { tailLines: 1 }, "c\n"],
    [log + "2026-01-02T03:04:05Z stdout F no end", {}, "a\nb1b2\nc\nno end"],
    [log, { limitBytes: 1 }, "a"],
    [log, { limitBytes: 2 }, "a\n"],
    [log, { limitBytes: 5 }, "a\nb1b"],
    [log, { limitBytes: 500 }, "a\nb1b2\nc\n"],
    [log, { limitBytes: 34, timestamps: true }, `${stamp(1)}a\n2`],
    [log, { stream: "stderr" }, "b1b2\n"],
    [log, { stream: "stdout", limitBytes: 3 }, "a\nc"],
    [log, since("2026-01-02T03:04:03Z"), "b2\nc\n"],
    [log, since("2026-01-02T03:04:03.123456789Z"), "b2\nc\n"],
    [log, since("2026-01-02T03:04:03.12345679Z"), "c\n"],
    [log, since("2026-01-02T05:04:03.1234567890+02:00"), "b2\nc\n"],
    [line("a") + "garbage\n" + line("b"), {}, "a\nb\n"],
    [line("a") + "2026-13-02T03:04:05Z stdout F bad month\n" + line("b"), {}, "a\nb\n"],
    [line("a") + "2026-02-29T03:04:05Z stdout F no such day\n" + line("b"), {}, "a\nb\n"],
    [line("a") + "2026-01-02T03:04:05Z stdin F x\n" + line("b"), {}, "a\nb\n"],
    [line("a") + "2026-01-02T03:04:05Z stdout F\n" + line("b"), {}, "a\nb\n"],
    [line(""), { timestamps: true }, `${stamp(5)}\n`],
    [line("", "stdout", "P") + line("x"), { timestamps: true }, `${stamp(5)}${stamp(5)}x\n`],
    ["2026-01-02T03:04:05Z stdout F x\n", { timestamps: true }, "2026-01-02T03:04:05.000000000Z x\n"],
    ["2026-01-02T03:04:05.1+00:00 stdout F x\n", { timestamps: true }, "2026-01-02T03:04:05.100000000Z x\n"],
    ["2026-01-02T03:04:05.1-07:30 stdout F x\n", { timestamps: true }, "2026-01-02T03:04:05.100000000-07:30 x\n"],
  ];
  for (const [given, options, want] of cases) {
    assert.equal(await read(given, options), want, `${JSON.stringify(options)} of ${JSON.stringify(given)}`);
  }
});

Deno.test("Docker's JSON lines", async () => {
  const log = [
    '{"log":"one\\n","stream":"stdout","time":"2016-10-20T18:39:20.57606443Z"}',
    '{"log":"half ","stream":"stderr","time":"2016-10-20T18:39:21Z"}',
    "{nonsense",
    '{"log":"ünd \\u0000ende\\n","stream":"stderr","time":"2016-10-20T18:39:22Z"}',
    '{"log":"x\\n","stream":"other","time":"2016-10-20T18:39:22Z"}',
    '{"log":{"__proto__":1},"stream":"stdout","time":"2016-10-20T18:39:22Z"}',
    '{"log":"three\\n","stream":"stdout"}',
    "",
  ].join("\n");
  assert.equal(await read(log, {}), "one\nhalf ünd \0ende\nthree\n");
  const time = "2016-10-20T18:39:2";
  assert.equal(
    await read(log, { timestamps: true }),
    `${time}0.576064430Z one\n${time}1.000000000Z half ünd \0ende\n0001-01-01T00:00:00.000000000Z three\n`,
  );
  assert.equal(await read(log, { since: instantOf("2016-10-20T18:39:21Z")! }), "half ünd \0ende\n");
});

Deno.test("what is no log is refused, what is not there too", async () => {
  await assert.rejects(read("what\n", {}), /failed to get parse function: unsupported log format: "what/);
  const reading = new Reading({});
  await assert.rejects(reading.start({}).done, /realPath .*0\.log/);
  reading.host.putNode(path, "fifo");
  await assert.rejects(reading.start({}).done, /EINVAL|Invalid argument/);
});

Deno.test("long lines: a line of megabytes comes in pieces, parts of 16 KiB are joined, the end of the file is found", async () => {
  const long = "abcdefgh".repeat(200_000);
  const reading = new Reading({ [path]: line(long) + line("next") }).start({ timestamps: true });
  await reading.done;
  const stamp = "2026-01-02T03:04:05.123456789Z ";
  assert.equal(reading.text, `${stamp}${long}\n${stamp}next\n`);
  assert.ok(reading.parts.length > 5);
  assert.ok(reading.parts.every((p) => p.length < 400_000));

  const part = "x".repeat(16_384);
  const parts = line(part, "stdout", "P").repeat(300) + line("end");
  assert.equal(await read(parts, {}), `${part.repeat(300)}end\n`);
  assert.equal(await read(parts, { limitBytes: 20_000 }), part + part.slice(0, 20_000 - 16_384));
  assert.equal(await read(line(long) + parts, { tailLines: 2 }), `${part}end\n`);
  assert.equal(await read(line(long, "stdout", "P") + line("next"), {}), `${long}next\n`);
  assert.equal(await read(line(long, "stderr") + line("next"), { stream: "stdout" }), "next\n");

  const json = (log: string) => `${JSON.stringify({ log, stream: "stdout", time: "2016-10-20T18:39:20Z" })}\n`;
  assert.equal(await read(json(`${long}\n`) + json("next\n"), {}), `${long}\nnext\n`);
  assert.equal(await read(json("first\n") + json("y".repeat(17 * 2 ** 20)) + json("next\n"), {}), "first\nnext\n");
});

Deno.test("follow: new lines come as they are written, an unfinished one when it is whole, until the container ended", async () => {
  const reading = new Reading({ [path]: line("a") }).start({ follow: true });
  await reading.settle();
  assert.equal(reading.text, "a\n");
  reading.append(line("b") + "2026-01-02T03:04:05Z stdout F ha");
  await reading.look();
  assert.equal(reading.text, "a\nb\n");
  reading.append("lf\n");
  await reading.look();
  assert.equal(reading.text, "a\nb\nhalf\n");
  assert.equal(reading.asked, 1);
  await reading.clock.advance(1_000);
  await reading.settle();
  assert.equal(reading.asked, 2);
  reading.running = false;
  reading.append(line("last"));
  for (let i = 0; i < 60 && !reading.text.endsWith("last\n"); i++) await reading.look();
  while (reading.asked < 3) await reading.look();
  // On a busy machine the runtime writes the last of it a moment after it has said that the container ended.
  reading.append(line("late"));
  await reading.look();
  assert.equal(reading.text, "a\nb\nhalf\nlast\nlate\n");
  await reading.clock.advance(40);
  await reading.settle();
  assert.equal(reading.ended, false, "290 ms are not quiet");
  reading.append(line("later"));
  await reading.look();
  assert.equal(reading.ended, false);
  await reading.clock.advance(300);
  await reading.done;
  assert.equal(reading.text, "a\nb\nhalf\nlast\nlate\nlater\n");
  assert.equal(reading.clock.pending, 0);
});

Deno.test("follow of a container that has ended gives everything and ends at once; tailLines and limitBytes hold", async () => {
  const reading = new Reading({ [path]: line("a") + line("b") });
  reading.running = false;
  await reading.start({ follow: true, tailLines: 1 }).done;
  assert.equal(reading.text, "b\n");

  const limited = new Reading({ [path]: line("a") + line("b") }).start({ follow: true, tailLines: 1, limitBytes: 4 });
  await limited.settle();
  limited.append(line("cdef"));
  await limited.look();
  await limited.done;
  assert.equal(limited.text, "b\ncd");
});

Deno.test("follow of a container that ended while its log is rotated waits for the new file, but not for ever", async () => {
  for (const comes of [true, false]) {
    const reading = new Reading({ [path]: line("a") });
    reading.running = false;
    await reading.host.rename(path, `${path}.20260102-030405`);
    await reading.host.symlink(`${path}.20260102-030405`, "/log");
    reading.start({ follow: true }, {
      path: "/log",
      host: {
        realPath: () => Promise.resolve(path),
        open: (name) => reading.host.open(reading.host.text(path) === undefined ? "/log" : name),
        stat: (name) => reading.host.stat(name),
      },
    });
    await reading.settle();
    await reading.clock.advance(1_000);
    await reading.settle();
    assert.deepEqual([reading.text, reading.ended], ["a\n", false]);
    if (comes) reading.host.put(path, line("b"));
    for (let i = 0; i < 100 && !reading.ended; i++) {
      await reading.clock.advance(300);
      await reading.settle();
    }
    assert.deepEqual([reading.text, reading.ended], [comes ? "a\nb\n" : "a\n", true]);
  }
});

Deno.test("follow goes from a rotated file to the new one and loses nothing of either", async () => {
  const reading = new Reading({ [path]: line("a") }).start({ follow: true });
  await reading.settle();
  await reading.host.rename(path, `${path}.20260102-030405`);
  await reading.settle();
  // The runtime writes to the old file until it was told to open the new one.
  const old = `${path}.20260102-030405`;
  reading.host.put(old, reading.host.text(old) + line("b"));
  await reading.clock.advance(1_000);
  await reading.settle();
  assert.equal(reading.text, "a\nb\n");
  reading.host.put(path, line("d"));
  await reading.settle();
  reading.host.put(old, reading.host.text(old) + line("c"));
  await reading.clock.advance(500);
  await reading.settle();
  assert.equal(reading.text, "a\nb\nc\nd\n");
  reading.append(line("e"));
  await reading.look();
  assert.equal(reading.text, "a\nb\nc\nd\ne\n");
  // Cut short in place.
  reading.host.put(path, "");
  await reading.look();
  reading.append(line("f"));
  await reading.look();
  assert.equal(reading.text, "a\nb\nc\nd\ne\nf\n");
  reading.stop.abort();
  await assert.rejects(reading.done, { code: "Aborted" });
});

Deno.test("links are resolved once, at the start", async () => {
  const reading = new Reading({ "/data/real.log": line("a") });
  reading.host.putNode(path, "symlink", "/data/real.log");
  reading.start({ follow: true });
  await reading.settle();
  reading.host.put("/data/real.log", line("a") + line("b"));
  await reading.look();
  assert.equal(reading.text, "a\nb\n");
  reading.stop.abort();
  await assert.rejects(reading.done, { code: "Aborted" });
});

Deno.test("a receiver that does not take more holds up the reading; one that fails ends it", async () => {
  const reading = new Reading({ [path]: line("x".repeat(1000)).repeat(2_000) });
  const gate = Promise.withResolvers<void>();
  let given = 0;
  reading.start({}, {
    out: (bytes) => {
      given += bytes.length;
      return gate.promise;
    },
  });
  await reading.settle();
  assert.ok(given > 0 && given < 300_000, String(given));
  gate.reject(new Error("gone"));
  await assert.rejects(reading.done, /gone/);
});

Deno.test("a runtime that fails ends the following", async () => {
  const reading = new Reading({ [path]: line("a") });
  let up = true;
  reading.start({ follow: true }, {
    isRunning: () => up ? Promise.resolve(true) : Promise.reject(new Error("no runtime")),
  });
  await reading.settle();
  reading.append(line("b"));
  await reading.clock.advance(1_000);
  await reading.settle();
  assert.equal(reading.text, "a\nb\n");
  up = false;
  const failed = assert.rejects(reading.done, /no runtime/);
  await reading.clock.advance(1_000);
  await failed;
});

Deno.test("follow looks often while something comes, seldom when nothing does, and then with one question", async () => {
  const reading = new Reading({ [path]: "" });
  const asked: string[] = [];
  reading.start({ follow: true }, {
    host: {
      realPath: (name) => reading.host.realPath(name),
      async open(name) {
        const file = await reading.host.open(name);
        return {
          read: (into, at) => (asked.push("read"), file.read(into, at)),
          info: () => (asked.push("info"), file.info()),
          [Symbol.dispose]: () => file[Symbol.dispose](),
        };
      },
      stat: (name) => (asked.push("stat"), reading.host.stat(name)),
    },
  });
  await reading.settle();
  let all = "";
  for (let i = 0; i < 50; i++) {
    reading.append(line(`${i}`));
    all += `${i}\n`;
    await reading.clock.advance(20);
    await reading.settle();
    assert.equal(reading.text, all);
  }
  for (let i = 0; i < 100; i++) {
    await reading.clock.advance(20);
    await reading.settle();
  }
  asked.length = 0;
  for (let i = 0; i < 100; i++) {
    await reading.clock.advance(20);
    await reading.settle();
  }
  assert.ok(asked.length <= 8, `${asked.length} looks in 2 s`);
  assert.deepEqual([...new Set(asked)], ["stat"]);
  reading.stop.abort();
  await assert.rejects(reading.done);
  assert.equal(reading.clock.pending, 0);
});

Deno.test("instants", () => {
  const cases: [string, [number, number] | undefined][] = [
    ["1970-01-01T00:00:00Z", [0, 0]],
    ["1970-01-01T01:00:00.5+01:00", [0, 500_000_000]],
    ["2024-02-29T23:59:59.000000001Z", [1_709_251_199, 1]],
    ["0001-01-01T00:00:00Z", [-62_135_596_800, 0]],
    ["9999-12-31T23:59:59.9999999999Z", [253_402_300_799, 999_999_999]],
    ["2024-02-30T00:00:00Z", undefined],
    ["2024-02-01T24:00:00Z", undefined],
    ["2024-02-01T00:00:00", undefined],
    ["2024-02-01 00:00:00Z", undefined],
    ["2024-02-01T00:00:00.Z", undefined],
    ["2024-02-01T00:00:00+1:00", undefined],
    ["2024-02-01T00:00:00Zx", undefined],
    ["", undefined],
  ];
  for (const [given, want] of cases) {
    const got = instantOf(given);
    assert.deepEqual(got && [got.seconds, got.nanos], want, given);
  }
});
