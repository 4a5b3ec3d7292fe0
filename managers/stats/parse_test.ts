import assert from "@assert";
import { count, limitOf, lookUp, parseBlkio, parseIoStat, parseNetDev, parsePsi } from "./parse.ts";
import { Rates } from "./rates.ts";

Deno.test("numbers of kernel files: only whole ones, limits without the ones that mean none", () => {
  for (
    const [text, value] of [
      ["12\n", 12],
      ["max\n", undefined],
      ["", undefined],
      ["-1", undefined],
      ["1e3", undefined],
      [
        undefined,
        undefined,
      ],
    ] as const
  ) assert.equal(count(text), value, String(text));
  assert.equal(limitOf("9223372036854771712"), undefined);
  assert.equal(limitOf("64"), 64);
  const of = lookUp("a 1\nb x\n c 2\n__proto__ 3\nna 4\nd");
  assert.deepEqual(["a", "b", "c", "__proto__", "na", "d", "nothing", "toString"].map(of), [
    1,
    undefined,
    undefined,
    3,
    4,
    undefined,
    undefined,
    undefined,
  ]);
  assert.equal(lookUp("")("a"), undefined);
});

Deno.test("pressure: the total in nanoseconds; a kernel without the full line of the CPU tells zeros", () => {
  assert.deepEqual(parsePsi("some avg10=0.12 avg60=3.00 avg300=0.00 total=15\n"), {
    some: { total: 15_000, avg10: .12, avg60: 3, avg300: 0 },
    full: { total: 0, avg10: 0, avg60: 0, avg300: 0 },
  });
  assert.equal(parsePsi(undefined), undefined);
  assert.equal(parsePsi("rubbish"), undefined);
});

Deno.test("interfaces: all but the loopback and the node's ends of pods' links", () => {
  const line = (name: string) => `${name}:1 2 3 4 0 0 0 0 5 6 7 8 0 0 0 0`;
  const found = parseNetDev(
    ["head | er", line("    lo"), line("veth12"), line("docker0"), line("  eth0"), "x: 1"].join("\n"),
  );
  assert.deepEqual(found, [{
    name: "eth0",
    rxBytes: 1,
    rxPackets: 2,
    rxErrors: 3,
    rxDropped: 4,
    txBytes: 5,
    txPackets: 6,
    txErrors: 7,
    txDropped: 8,
  }]);
});

Deno.test("device traffic of both versions", () => {
  const traffic = [{ device: "8:0", readBytes: 10, writtenBytes: 20, reads: 1, writes: 2 }];
  assert.deepEqual(
    parseIoStat("8:0 rbytes=10 wbytes=20 rios=1 wios=2 dbytes=0 dios=0\n8:16 \nx\n").slice(0, 1),
    traffic,
  );
  const [costly] = parseIoStat("8:0 rbytes=1 cost.usage=5 cost.wait=6 cost.indebt=7 cost.indelay=8\n");
  assert.deepEqual(costly?.cost, { usageUs: 5, waitUs: 6, indebtUs: 7, indelayUs: 8 });
  const served = "8:0 Read 1\n8:0 Write 2\n8:0 Total 3\nTotal 3\n";
  assert.deepEqual(parseBlkio("8:0 Read 10\n8:0 Write 20\n8:0 Total 30\nTotal 30\n", served), traffic);
});

Deno.test("rates: between two readings at least half a second apart; a count that fell or a clock set back tells none", () => {
  const rates = new Rates();
  assert.equal(rates.next("g", { at: 0, cpuNs: 0 }), undefined);
  assert.equal(rates.next("g", { at: 1000, cpuNs: 500_000_000 }), 500_000_000);
  assert.equal(rates.next("g", { at: 1100, cpuNs: 900_000_000 }), 500_000_000, "too soon: the last one");
  assert.equal(rates.next("g", { at: 2000, cpuNs: 600_000_000 }), 100_000_000);
  assert.equal(rates.next("g", { at: 3000, cpuNs: 1 }), undefined);
  assert.equal(rates.next("g", { at: 2000, cpuNs: 2 }), undefined);
  assert.equal(rates.next("g", { at: 2000 }), undefined);
  rates.keep(new Set());
  assert.equal(rates.next("g", { at: 9000, cpuNs: 5 }), undefined);
});
