import assert from "@assert";
import fc from "fast-check";
import { formatDuration, formatDurationNanos, parseDuration, parseDurationNanos } from "./duration.ts";
import { KubeletError } from "./errors.ts";

// What Go's time package answers: text, as it prints it, nanoseconds.
const known: [string, string, bigint][] = [
  ["1h2m3.5s", "1h2m3.5s", 3723500000000n],
  ["100ms", "100ms", 100000000n],
  ["-1s", "-1s", -1000000000n],
  ["0", "0s", 0n],
  ["-0", "0s", 0n],
  ["+5s", "5s", 5000000000n],
  ["0s", "0s", 0n],
  ["1.s", "1s", 1000000000n],
  [".5s", "500ms", 500000000n],
  ["1.5h", "1h30m0s", 5400000000000n],
  ["1us", "1µs", 1000n],
  ["1µs", "1µs", 1000n],
  ["1μs", "1µs", 1000n],
  ["1ns", "1ns", 1n],
  ["1.0005ms", "1.0005ms", 1000500n],
  ["300s", "5m0s", 300000000000n],
  ["5m0s", "5m0s", 300000000000n],
  ["24h", "24h0m0s", 86400000000000n],
  ["9223372036854775807ns", "2562047h47m16.854775807s", 9223372036854775807n],
  ["-9223372036854775808ns", "-2562047h47m16.854775808s", -9223372036854775808n],
  ["2562047h47m16.854775807s", "2562047h47m16.854775807s", 9223372036854775807n],
  ["0.000000001s", "1ns", 1n],
  ["0.0000000001s", "0s", 0n],
  ["1h1h", "2h0m0s", 7200000000000n],
  ["90m", "1h30m0s", 5400000000000n],
  ["1500ms", "1.5s", 1500000000n],
  ["1.5ms", "1.5ms", 1500000n],
  ["1234us", "1.234ms", 1234000n],
];
for (const [text, printed, nanos] of known) {
  Deno.test(`duration ${text} is ${printed}`, () => {
    assert.equal(parseDurationNanos(text), nanos);
    assert.equal(formatDurationNanos(nanos), printed);
    assert.equal(parseDuration(text), Number(nanos) / 1e6);
  });
}

for (
  const text of [
    "",
    "-",
    "1",
    ".s",
    "1d",
    "1s1",
    " 1s",
    "1 s",
    "9223372036854775808ns",
    "--1s",
    "1.2.3s",
    "NaN",
    "5m ",
    "1h-1m",
    "9".repeat(300) + "s",
    "99999999999h",
    "1__proto__",
    "1constructor",
  ]
) {
  Deno.test(`duration ${JSON.stringify(text.slice(0, 40))} is refused`, () => {
    assert.throws(() => parseDuration(text, { what: "syncFrequency" }), (thrown: unknown) => {
      if (!(thrown instanceof KubeletError)) return false;
      assert.equal(thrown.code, "BadConfig");
      assert.match(thrown.message, /^syncFrequency: duration ".*" .*for example 1m30s/s);
      return true;
    });
  });
}

Deno.test("milliseconds print as Go prints them", () => {
  assert.equal(formatDuration(60_000), "1m0s");
  assert.equal(formatDuration(1_500), "1.5s");
  assert.equal(formatDuration(0.0015), "1.5µs");
  assert.equal(formatDuration(-90_000), "-1m30s");
  assert.equal(formatDuration(NaN), "0s");
});

Deno.test("property: what is printed reads back", () => {
  fc.assert(fc.property(fc.bigInt(-(2n ** 63n), 2n ** 63n - 1n), (nanos) => {
    assert.equal(parseDurationNanos(formatDurationNanos(nanos)), nanos);
  }));
});

Deno.test("property: any text is a duration or a KubeletError", () => {
  fc.assert(fc.property(fc.oneof(fc.string(), fc.stringMatching(/^[-+0-9.nuµmsh]{0,20}$/)), (text) => {
    try {
      assert.equal(typeof parseDuration(text), "number");
    } catch (thrown) {
      assert(thrown instanceof KubeletError, `${thrown}`);
    }
  }));
});
