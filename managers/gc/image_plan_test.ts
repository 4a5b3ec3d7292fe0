import assert from "@assert";
import { type ImageGcInput, type ImageRecord, planImageGC, showBytes } from "./image_plan.ts";

const minute = 60_000;
const now = 1000 * minute;
const policy = { highPercent: 85, lowPercent: 80, minAgeMs: 2 * minute, maxAgeMs: 0 };
const full = { capacity: 1000, available: 100 };

function image(id: string, more: Partial<ImageRecord> = {}): ImageRecord {
  return {
    id,
    names: [`${id}:1`],
    sizeBytes: 60,
    pinned: false,
    handler: "",
    firstSeen: 0,
    lastUsed: undefined,
    usedBy: undefined,
    ...more,
  };
}

interface Case extends Partial<Omit<ImageGcInput, "now">> {
  /** Ids in the order in which they are removed. */
  go: string[];
  /** Reasons of some images. */
  why?: Record<string, [string, RegExp]>;
  toFree?: number;
}

const cases: Record<string, Case> = {
  "below the high threshold nothing goes": {
    images: [image("a")],
    disk: { capacity: 1000, available: 160 },
    go: [],
    why: { a: ["NotNeeded", /84 % of the image file system \(1000 B\) are in use, less than .* \(85\)/] },
    toFree: 0,
  },
  "at the high threshold": {
    images: [image("a")],
    disk: { capacity: 1000, available: 150 },
    go: ["a"],
    why: { a: ["DiskUse", /^never used; 85 % .* imageGCHighThresholdPercent is 85, imageGCLowThresholdPercent 80$/] },
    toFree: 50,
  },
  "a part of a percent counts as a whole one": {
    images: [image("a")],
    disk: { capacity: 1000, available: 159 },
    go: ["a"],
  },
  "down to the low threshold, and no further": {
    images: ["a", "b", "c"].map((id) => image(id)),
    go: ["a", "b"],
    why: { c: ["NotNeeded", /free the 100 B that are wanted/] },
    toFree: 100,
  },
  "the longest unused first, then the one seen first": {
    images: [
      image("used-late", { lastUsed: 900 * minute }),
      image("used-early", { lastUsed: 100 * minute, firstSeen: 50 * minute }),
      image("seen-late", { firstSeen: 90 * minute }),
      image("seen-early", { firstSeen: 10 * minute }),
      image("used-early-seen-earlier", { lastUsed: 100 * minute, firstSeen: 40 * minute }),
    ],
    disk: { capacity: 1000, available: 0 },
    policy: { ...policy, lowPercent: 0 },
    go: ["seen-early", "seen-late", "used-early-seen-earlier", "used-early", "used-late"],
    why: { "used-late": ["DiskUse", /^unused for 1h40m0s; /] },
  },
  "what is pinned or in use never goes": {
    images: [
      image("pinned", { pinned: true }),
      image("used", { usedBy: "container c has it", lastUsed: now }),
      image("both", { pinned: true, usedBy: "x" }),
    ],
    policy: { ...policy, maxAgeMs: 1 },
    unused: true,
    go: [],
    why: { pinned: ["Pinned", /pinned/], used: ["InUse", /^container c has it$/], both: ["Pinned", /./] },
  },
  "one that was seen less than the minimum age ago stays": {
    images: [image("young", { firstSeen: now - 2 * minute + 1 }), image("old", { firstSeen: now - 2 * minute })],
    go: ["old"],
    why: { young: ["TooYoung", /imageMinimumGCAge \(2m0s\)/] },
  },
  "one that stays does not count as freed": {
    images: [image("young", { firstSeen: now, lastUsed: 1 }), image("a"), image("b")],
    go: ["a", "b"],
  },
  "maximum age: unused for longer, once the agent has watched for longer": {
    images: [
      image("idle", { lastUsed: now - 10 * minute - 1 }),
      image("just", { lastUsed: now - 10 * minute }),
      image("never", { firstSeen: now - 11 * minute }),
      image("new", { firstSeen: now - 9 * minute }),
    ],
    disk: { capacity: 1000, available: 900 },
    policy: { ...policy, maxAgeMs: 10 * minute },
    since: now - 10 * minute - 1,
    go: ["never", "idle"],
    why: { never: ["UnusedTooLong", /^unused for 11m0s, longer than imageMaximumGCAge \(10m0s\)$/] },
  },
  "maximum age: not before the agent has watched for so long": {
    images: [image("idle", { lastUsed: 1 })],
    disk: { capacity: 1000, available: 900 },
    policy: { ...policy, maxAgeMs: 10 * minute },
    since: now - 10 * minute,
    go: [],
  },
  "what goes by age counts as freed": {
    images: [image("old", { sizeBytes: 100 }), image("a", { firstSeen: now - 5 * minute })],
    policy: { ...policy, maxAgeMs: 10 * minute },
    since: 0,
    go: ["old"],
  },
  "under disk pressure all that is unused goes, but not what is young": {
    images: [image("a"), image("b"), image("young", { firstSeen: now })],
    disk: { capacity: 1000, available: 900 },
    unused: true,
    go: ["a", "b"],
    why: { a: ["DiskPressure", /./], young: ["TooYoung", /./] },
  },
  "more room than there is, and a disk that tells nothing": {
    images: [image("a")],
    disk: { capacity: 0, available: 10 },
    go: [],
    toFree: 0,
  },
  "100 % is reached only by a full disk": {
    images: [image("a")],
    disk: { capacity: 1000, available: 0 },
    policy: { ...policy, highPercent: 100 },
    go: ["a"],
    toFree: 200,
  },
};

for (const [name, { go, why = {}, toFree, ...input }] of Object.entries(cases)) {
  Deno.test(`image GC plan: ${name}`, () => {
    const images = input.images ?? [];
    const plan = planImageGC({ policy, disk: full, since: 0, ...input, images, now });
    const removed = plan.verdicts.filter((one) => one.remove);
    assert.deepEqual(removed.map((one) => one.image.id), go);
    assert.equal(plan.verdicts.length, images.length, "each image has a verdict");
    assert.equal(plan.frees, removed.reduce((sum, one) => sum + one.image.sizeBytes, 0));
    if (toFree !== undefined) assert.equal(plan.toFree, toFree);
    for (const [id, [reason, text]] of Object.entries(why)) {
      const verdict = plan.verdicts.find((one) => one.image.id === id);
      assert.equal(verdict?.reason, reason);
      assert.match(verdict?.message ?? "", text);
    }
  });
}

Deno.test("bytes are shown in the largest unit that fits", () => {
  assert.deepEqual([0, 1023, 1024, 1536, 2 ** 20, 5 * 2 ** 30, 2 ** 50].map(showBytes), [
    "0 B",
    "1023 B",
    "1.0 KiB",
    "1.5 KiB",
    "1.0 MiB",
    "5.0 GiB",
    "1024.0 TiB",
  ]);
});
