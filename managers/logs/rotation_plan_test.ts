import assert from "@assert";
import { lastRotated, overBudget, planRotation, rotationStamp } from "./rotation_plan.ts";

const at = (hour: number, minute: number, second: number) => new Date(2026, 2, 4, hour, minute, second).getTime();
const day = "20260304";

Deno.test("a stamp is the local time, each part with its leading zeros", () => {
  assert.equal(rotationStamp(at(5, 6, 7)), `${day}-050607`);
  assert.equal(rotationStamp(new Date(2026, 11, 31, 23, 59, 59).getTime()), "20261231-235959");
});

interface Case {
  names: string[];
  maxFiles?: number;
  now?: number;
  remove?: string[];
  compress?: string[];
  rotated?: string;
}

const old = (second: number, suffix = "") => `0.log.${day}-0100${String(second).padStart(2, "0")}${suffix}`;

const cases: Record<string, Case> = {
  "the first rotation only renames": { names: ["0.log"] },
  "a plain one of before is compressed": { names: ["0.log", old(1)], compress: [old(1)] },
  "compressed ones stay": { names: [old(1, ".gz"), old(2, ".gz"), old(3)], compress: [old(3)] },
  "the oldest goes, as the log becomes one more and a new one is made": {
    names: [old(4), old(2, ".gz"), old(1, ".gz"), old(3, ".gz")],
    remove: [old(1, ".gz")],
    compress: [old(4)],
  },
  "fewer files than there were before": {
    names: [old(1, ".gz"), old(2, ".gz"), old(3, ".gz"), old(4)],
    maxFiles: 3,
    remove: [old(1, ".gz"), old(2, ".gz"), old(3, ".gz")],
    compress: [old(4)],
  },
  "two files: only the newest rotated one and the log": { names: [old(1)], maxFiles: 2, remove: [old(1)] },
  "what was left half done goes": {
    names: [old(1, ".tmp"), old(1), old(2), old(2, ".gz")],
    remove: [old(1, ".tmp"), old(2)],
    compress: [old(1)],
  },
  "half done files do not count": {
    names: [old(1, ".gz"), old(2, ".gz"), old(3, ".gz"), old(3), old(3, ".tmp")],
    remove: [old(3), old(3, ".tmp")],
  },
  "files of other names are left alone": {
    names: ["10.log.20260304-010001", "0.log.bak", "0.log.20260304-010001.bak", "0.log.gz", "x0.log.tmp", "0.logs"],
    maxFiles: 2,
  },
  "a name that is taken is not taken again": {
    names: [`0.log.${day}-020304`],
    now: at(2, 3, 4),
    compress: [`0.log.${day}-020304`],
    rotated: `0.log.${day}-020305`,
  },
  "nor that of a compressed one": {
    names: [`0.log.${day}-235959.gz`],
    now: at(23, 59, 59),
    rotated: "0.log.20260305-000000",
  },
  "a clock that was put back does not make the newest log the oldest": {
    names: [`0.log.${day}-090000.gz`],
    now: at(8, 0, 0),
    rotated: `0.log.${day}-090001`,
  },
  "a stamp that tells no moment is another name": {
    names: [
      "0.log.99999999-999999.gz",
      "0.log.20260230-000000",
      "0.log.99991231-235959.gz",
      "0.log.20260304-240000.bak",
    ],
    maxFiles: 2,
  },
};

for (const [name, { names, maxFiles = 5, now = at(2, 3, 4), ...want }] of Object.entries(cases)) {
  Deno.test(`rotation plan: ${name}`, () => {
    const plan = planRotation({ file: "0.log", names, maxFiles, now });
    assert.deepEqual(plan.remove.map((one) => one.name).sort(), (want.remove ?? []).toSorted());
    assert.deepEqual(plan.compress, want.compress ?? []);
    assert.equal(plan.rotated, want.rotated ?? `0.log.${rotationStamp(now)}`);
    const left = names.length - plan.remove.length + 1;
    if (!names.some((one) => one.includes("bak"))) assert(left <= maxFiles - 1, `${left} rotated files`);
  });
}

Deno.test("the last rotated log: the newest of its name, plain and whole", () => {
  const cases: [string[], string | undefined][] = [
    [[], undefined],
    [["0.log", "1.log.20260304-010001", "0.log.bak"], undefined],
    [[old(2), old(1, ".gz"), old(3, ".tmp")], old(2)],
    [[old(2), old(2, ".gz")], undefined],
    [[old(1), old(2, ".gz")], undefined],
  ];
  for (const [names, last] of cases) assert.equal(lastRotated("0.log", names), last, names.join());
});

Deno.test("a budget: the oldest files go until the rest fits, the log itself stays", () => {
  const sizes = (...parts: [string, number][]) => new Map(parts);
  const files = sizes(["0.log", 10], [old(1, ".gz"), 5], [old(3), 20], [old(2, ".gz"), 5], ["0.log.bak", 99], [
    "1.log",
    99,
  ]);
  const table: [budget: number, gone: string[]][] = [
    [40, []],
    [39, [old(1, ".gz")]],
    [30, [old(1, ".gz"), old(2, ".gz")]],
    [29, [old(1, ".gz"), old(2, ".gz"), old(3)]],
    [1, [old(1, ".gz"), old(2, ".gz"), old(3)]],
  ];
  for (const [budget, gone] of table) assert.deepEqual(overBudget("0.log", files, budget), gone, String(budget));
  assert.deepEqual(overBudget("0.log", sizes([old(1), 50]), 10), [old(1)]);
});
