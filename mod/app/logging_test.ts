import assert from "@assert";
import { getLogger } from "@logtape/logtape";
import { FakeClock } from "../base/fake_clock.ts";
import type { Logger } from "../base/log.ts";
import type { LoggingConfig } from "./config/kubelet_config.ts";
import { plain } from "./log_format.ts";
import { startLogging } from "./logging.ts";

const defaults: LoggingConfig = {
  format: "text",
  flushFrequencyMs: 5000,
  verbosity: 0,
  vmodule: [],
  splitStream: false,
  infoBufferBytes: 0,
};

/** What came out, by stream, of what `use` logged. */
function logged(config: Partial<LoggingConfig>, use: (log: Logger, clock: FakeClock) => void) {
  const out = { stdout: "", stderr: "" };
  const clock = new FakeClock(new Date(2026, 0, 2, 3, 4, 5, 678).getTime());
  using logging = startLogging({
    config: { ...defaults, ...config },
    clock,
    pid: 42,
    write: (stream, bytes) => {
      out[stream] += new TextDecoder().decode(bytes);
    },
  });
  use(logging.log, clock);
  return out;
}

const lines: [name: string, use: (log: Logger) => void, line: string][] = [
  ["info", (log) => log.info("Started"), 'I0102 03:04:05.678000      42 kubelet] "Started"\n'],
  ["warning", (log) => log.warn("Slow", { ms: 5 }), 'W0102 03:04:05.678000      42 kubelet] "Slow" ms=5\n'],
  [
    "error",
    (log) => log.error("Lost", { error: new Error("gone", { cause: new Error("cable") }) }),
    'E0102 03:04:05.678000      42 kubelet] "Lost" error="gone: cable"\n',
  ],
  [
    "fields of a child",
    (log) => log.with({ component: "pleg", pod: "a/b" }).info("Relisted", { n: 3, ok: true }),
    'I0102 03:04:05.678000      42 pleg] "Relisted" pod="a/b" n=3 ok=true\n',
  ],
  [
    "braces and newlines",
    (log) => log.info("a {b}\nI0102 forged", { b: "x\ny", o: { k: [1, null] } }),
    'I0102 03:04:05.678000      42 kubelet] "a {b}\\nI0102 forged" b="x\\ny" o={"k":[1,null]}\n',
  ],
  [
    "secrets",
    (log) =>
      log.info("Env", {
        token: "s3cret",
        nested: { password: "s3cret", bearerToken: "s3cret", secretName: "db" },
        headers: new Map([["Authorization", "s3cret"]]),
      }),
    'I0102 03:04:05.678000      42 kubelet] "Env" token="<masked>" nested={"password":"<masked>","bearerToken":"<masked>","secretName":"db"} headers={"Authorization":"<masked>"}\n',
  ],
  ["details above -v", (log) => log.detail(2, "Hidden"), ""],
];
for (const [name, use, line] of lines) {
  Deno.test(`text log: ${name}`, () => assert.deepEqual(logged({}, use), { stdout: "", stderr: line }));
}

Deno.test("JSON log lines", () => {
  const { stderr } = logged({ format: "json", verbosity: 2 }, (log) => {
    log.detail(2, "Seen", { component: "pleg", pod: "a" });
    log.error("Lost", { error: new Error("gone") });
  });
  const ts = new Date(2026, 0, 2, 3, 4, 5, 678).getTime();
  assert.deepEqual(stderr.trim().split("\n").map((line) => JSON.parse(line)), [
    { ts, caller: "pleg", msg: "Seen", v: 2, pod: "a" },
    { ts, caller: "kubelet", msg: "Lost", err: "gone" },
  ]);
});

Deno.test("-v and --vmodule choose details", () => {
  const use = (log: Logger) => {
    for (const component of ["pleg", "pod_workers", "gc"]) log.with({ component }).detail(4, component);
  };
  assert.match(logged({ verbosity: 4 }, use).stderr, /pleg.*pod_workers.*gc/s);
  const some = logged(
    { verbosity: 0, vmodule: [{ filePattern: "pl?g", verbosity: 4 }, { filePattern: "pod*", verbosity: 5 }] },
    use,
  ).stderr;
  assert.match(some, /pleg.*pod_workers/s);
  assert.doesNotMatch(some, /gc/);
  assert.equal(logged({ verbosity: 4, vmodule: [{ filePattern: "*", verbosity: 0 }] }, use).stderr, "");
});

Deno.test("the verbosity can change while running", () => {
  let text = "";
  using logging = startLogging({
    config: defaults,
    clock: new FakeClock(),
    pid: 1,
    write: (_, bytes) => text += new TextDecoder().decode(bytes),
  });
  logging.log.detail(3, "before");
  logging.setVerbosity(3);
  logging.log.detail(3, "after");
  assert.doesNotMatch(text, /before/);
  assert.match(text, /after/);
});

Deno.test("split streams: info to stdout, buffered until full, flushed, or an error comes", async () => {
  const out = { stdout: "", stderr: "" };
  const clock = new FakeClock();
  using logging = startLogging({
    config: { ...defaults, splitStream: true, infoBufferBytes: 150 },
    clock,
    pid: 1,
    write: (stream, bytes) => {
      out[stream] += new TextDecoder().decode(bytes);
    },
  });
  assert.equal(clock.pending, 0);
  logging.log.info("one");
  assert.equal(out.stdout, "");
  assert.equal(clock.pending, 1);
  await clock.advance(5000);
  assert.match(out.stdout, /one/);
  assert.equal(clock.pending, 0);
  logging.log.info("two");
  logging.log.error("three");
  assert.match(out.stdout, /two/);
  assert.match(out.stderr, /three/);
  logging.log.info("x".repeat(200));
  assert.match(out.stdout, /xxx/);
  logging.log.info("last");
  logging.flush();
  assert.match(out.stdout, /last/);
  assert.equal(clock.pending, 0);
});

Deno.test("what libraries log through LogTape lands here too", () => {
  const { stderr } = logged({}, () => getLogger(["lib", "part"]).warn("odd {n}", { n: 1 }));
  assert.match(stderr, /^W\d{4} .* lib\.part\] "odd 1" n=1\n$/);
});

Deno.test("nothing that is logged throws", () => {
  const cycle: Record<string, unknown> = { deep: {} };
  cycle.self = cycle;
  const hostile = {
    cycle,
    big: 10n ** 30n,
    nan: NaN,
    sym: Symbol("s"),
    fn: () => {},
    undef: undefined,
    date: new Date(NaN),
    bytes: new Uint8Array(1e6),
    map: new Map([[{}, 1]]),
    set: new Set([1]),
    proxy: new Proxy({}, {
      ownKeys: () => {
        throw new Error("no");
      },
    }),
    get getter(): string {
      throw new Error("no");
    },
  };
  for (const format of ["text", "json"] as const) {
    const { stderr } = logged({ format }, (log) => {
      log.info("hostile", { value: hostile, ...{ cycle } });
      log.info("hostile", hostile);
      log.with(hostile).error("hostile", { proxy: hostile.proxy });
      log.info("still here");
    });
    assert.match(stderr, /still here/);
  }
  assert.equal(String(plain("x".repeat(1e6))).length < 20_000, true);
});

Deno.test("a stream that can't be written to takes nothing down", () => {
  using logging = startLogging({
    config: defaults,
    clock: new FakeClock(),
    pid: 1,
    write: () => {
      throw new Error("EPIPE");
    },
  });
  logging.log.error("lost");
});
