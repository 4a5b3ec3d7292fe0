import assert from "@assert";
import fc from "fast-check";
import { KubeletError } from "../base/errors.ts";
import {
  addQuantities,
  canonicalQuantity,
  compareQuantities,
  formatQuantity,
  milliQuantityOf,
  milliValue,
  milliValueBig,
  parseQuantity,
  quantityOf,
  subtractQuantities,
  tryParseQuantity,
  value,
  valueBig,
  zeroQuantity,
} from "./quantity.ts";

// What k8s.io/apimachinery v0.36.3 answers: text, canonical text, value, milli value.
const known: [string, string, bigint, bigint][] = [
  ["0", "0", 0n, 0n],
  ["1", "1", 1n, 1000n],
  ["0.5", "500m", 1n, 500n],
  ["1024Mi", "1Gi", 1073741824n, 1073741824000n],
  ["1Gi", "1Gi", 1073741824n, 1073741824000n],
  ["1.5Gi", "1536Mi", 1610612736n, 1610612736000n],
  ["+5", "+5", 5n, 5000n],
  ["-5", "-5", -5n, -5000n],
  ["-0.5", "-500m", -1n, -500n],
  ["1.500", "1.500", 2n, 1500n],
  ["1.005", "1.005", 2n, 1005n],
  [".5", "500m", 1n, 500n],
  ["5.", "5.", 5n, 5000n],
  ["1e3", "1e3", 1000n, 1000000n],
  ["1E3", "1E3", 1000n, 1000000n],
  ["1e-3", "1e-3", 1n, 1n],
  ["12E6", "12E6", 12000000n, 12000000000n],
  ["100m", "100m", 1n, 100n],
  ["1500m", "1500m", 2n, 1500n],
  ["1n", "1n", 1n, 1n],
  ["0.1n", "1n", 1n, 1n],
  ["1u", "1u", 1n, 1n],
  ["1023", "1023", 1023n, 1023000n],
  ["1024", "1024", 1024n, 1024000n],
  ["1024Ki", "1Mi", 1048576n, 1048576000n],
  ["1000Ki", "1000Ki", 1024000n, 1024000000n],
  ["0.5Ki", "512", 512n, 512000n],
  ["0.0001Ki", "102400u", 1n, 103n],
  ["1.1Ki", "1126400m", 1127n, 1126400n],
  ["3.3Mi", "3460300800m", 3460301n, 3460300800n],
  ["-1Mi", "-1Mi", -1048576n, -1048576000n],
  ["-1.5Ki", "-1536", -1536n, -1536000n],
  ["100k", "100k", 100000n, 100000000n],
  ["1000k", "1M", 1000000n, 1000000000n],
  ["1000000", "1M", 1000000n, 1000000000n],
  ["12345678", "12345678", 12345678n, 12345678000n],
  ["0010", "0010", 10n, 10000n],
  ["00.10", "100m", 1n, 100n],
  ["1.0", "1", 1n, 1000n],
  ["1000", "1k", 1000n, 1000000n],
  ["1001", "1001", 1001n, 1001000n],
  ["2000m", "2", 2n, 2000n],
  ["0m", "0", 0n, 0n],
  ["0Ki", "0", 0n, 0n],
  ["1e+3", "1e+3", 1000n, 1000000n],
  ["10m", "10m", 1n, 10n],
  ["250m", "250m", 1n, 250n],
  ["1.25", "1250m", 2n, 1250n],
  ["0.25Gi", "256Mi", 268435456n, 268435456000n],
  ["1.2345678901", "1234567891n", 2n, 1235n],
  ["123456789m", "123456789m", 123457n, 123456789n],
  ["0.1Gi", "107374182400m", 107374183n, 107374182400n],
  ["0.123Gi", "132070244352m", 132070245n, 132070244352n],
  ["1025Mi", "1025Mi", 1074790400n, 1074790400000n],
  ["8193Mi", "8193Mi", 8590983168n, 8590983168000n],
  ["1.5e3", "1500", 1500n, 1500000n],
  ["1.5e2", "150", 150n, 150000n],
  ["15e1", "150", 150n, 150000n],
  ["100e0", "100e0", 100n, 100000n],
];

for (const [text, canonical, whole, milli] of known) {
  Deno.test(`quantity ${text} is ${canonical}`, () => {
    const quantity = parseQuantity(text);
    assert.equal(formatQuantity(quantity), canonical);
    assert.equal(valueBig(quantity), whole);
    assert.equal(milliValueBig(quantity), milli);
  });
}

// Where the reference overflows int64, this one stops at its ends instead of wrapping round.
const large: [string, string, bigint, bigint][] = [
  ["9223372036854775807", "9223372036854775807", 2n ** 63n - 1n, 2n ** 63n - 1n],
  ["9223372036854775808", "9223372036854775808", 2n ** 63n - 1n, 2n ** 63n - 1n],
  ["-9223372036854775809", "-9223372036854775809", -(2n ** 63n), -(2n ** 63n)],
  ["9Ei", "9223372036854775807", 2n ** 63n - 1n, 2n ** 63n - 1n],
  ["1E", "1E", 10n ** 18n, 2n ** 63n - 1n],
  ["1e19", "10e18", 2n ** 63n - 1n, 2n ** 63n - 1n],
  ["1000E", "1000E", 2n ** 63n - 1n, 2n ** 63n - 1n],
  ["-1.2345678901", "-1234567891n", -2n, -1235n],
  ["1e-999999999", "1e-9", 1n, 1n],
];
for (const [text, canonical, whole, milli] of large) {
  Deno.test(`quantity ${text} at the ends of the range`, () => {
    const quantity = parseQuantity(text);
    assert.equal(formatQuantity(quantity), canonical);
    assert.equal(valueBig(quantity), whole);
    assert.equal(milliValueBig(quantity), milli);
  });
}

const bad = [
  "",
  "1e",
  "1ki",
  "1KI",
  "1mi",
  "1 Gi",
  "100Mi100",
  "1i",
  "0x10",
  "1_000",
  "NaN",
  "Inf",
  ".",
  "-",
  "+",
  "1..5",
  "1.5.5",
  "--1",
  "5%",
  "1e1000",
  "1e99999999999999999999",
  "9".repeat(200),
  "__proto__",
  "1constructor",
];
for (const text of bad) {
  Deno.test(`quantity ${JSON.stringify(text.slice(0, 40))} is refused`, () => {
    assert.throws(() => parseQuantity(text, { what: "limits.cpu", code: "BadPod" }), (thrown: unknown) => {
      if (!(thrown instanceof KubeletError)) return false;
      assert.equal(thrown.code, "BadPod");
      assert.match(thrown.message, /^limits\.cpu: quantity ".*" .*for example 500m/s);
      return true;
    });
    assert.equal(tryParseQuantity(text), undefined);
  });
}

Deno.test("a JSON number is a quantity", () => {
  assert.equal(canonicalQuantity(2), "2");
  assert.equal(canonicalQuantity(0.5), "500m");
  assert.equal(canonicalQuantity(1e21), "1e+21");
  assert.throws(() => parseQuantity(NaN), KubeletError);
  assert.throws(() => parseQuantity(Infinity), KubeletError);
});

Deno.test("sums and differences keep the format of the first that isn't zero", () => {
  assert.equal(formatQuantity(addQuantities(parseQuantity("1Gi"), parseQuantity("1024Mi"))), "2Gi");
  assert.equal(formatQuantity(addQuantities(zeroQuantity, parseQuantity("512Mi"))), "512Mi");
  assert.equal(formatQuantity(addQuantities(parseQuantity("1"), parseQuantity("500m"))), "1500m");
  assert.equal(formatQuantity(subtractQuantities(parseQuantity("1Gi"), parseQuantity("100Mi"))), "924Mi");
  assert.equal(formatQuantity(subtractQuantities(parseQuantity("1"), parseQuantity("1"))), "0");
});

Deno.test("comparison goes by value, not by text", () => {
  assert.equal(compareQuantities(parseQuantity("1Gi"), parseQuantity("1024Mi")), 0);
  assert.equal(compareQuantities(parseQuantity("999m"), parseQuantity("1")), -1);
  assert.equal(compareQuantities(parseQuantity("1G"), parseQuantity("1Mi")), 1);
});

Deno.test("numbers become quantities", () => {
  assert.equal(formatQuantity(quantityOf(2n ** 30n, "BinarySI")), "1Gi");
  assert.equal(formatQuantity(milliQuantityOf(1500)), "1500m");
  assert.equal(formatQuantity(milliQuantityOf(2000)), "2");
  assert.equal(value(parseQuantity("100Mi")), 104857600);
  assert.equal(milliValue(parseQuantity("1.5")), 1500);
});

Deno.test("property: any text gives a quantity whose own text gives the same quantity, or a KubeletError", () => {
  const text = fc.oneof(
    fc.string(),
    fc.stringMatching(/^[+-]?[0-9]{0,12}(\.[0-9]{0,9})?(n|u|m|k|M|G|T|P|E|Ki|Mi|Gi|Ti|Pi|Ei|e[+-]?[0-9]{1,2})?$/),
  );
  fc.assert(fc.property(text, (input) => {
    let quantity;
    try {
      quantity = parseQuantity(input);
    } catch (thrown) {
      assert(thrown instanceof KubeletError, `${thrown}`);
      return;
    }
    const again = parseQuantity(formatQuantity(quantity));
    assert.equal(compareQuantities(quantity, again), 0);
    const canonical = formatQuantity({ nano: quantity.nano, format: quantity.format });
    assert.equal(compareQuantities(parseQuantity(canonical), quantity), 0);
  }));
});
