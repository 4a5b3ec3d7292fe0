import { formatDuration } from "../../mod/base/duration.ts";

/** When images are removed; the configuration's fields of the same names. */
export interface ImageGcPolicy {
  /** imageGCHighThresholdPercent: disk use from which on images are removed. */
  readonly highPercent: number;
  /** imageGCLowThresholdPercent: disk use down to which they are. */
  readonly lowPercent: number;
  /** imageMinimumGCAge, milliseconds since an image was first seen. */
  readonly minAgeMs: number;
  /** imageMaximumGCAge, milliseconds since an image was last used; 0 means no limit. */
  readonly maxAgeMs: number;
}

/** An image and what is known of it. Times are milliseconds since the epoch. */
export interface ImageRecord {
  readonly id: string;
  /** Its tags and digests. */
  readonly names: readonly string[];
  readonly sizeBytes: number;
  readonly pinned: boolean;
  /** The runtime handler that it was pulled for, or "". */
  readonly handler: string;
  readonly firstSeen: number;
  /** Undefined for one that was never seen in use. */
  readonly lastUsed: number | undefined;
  /** What needs it now, in words; undefined when nothing does. */
  readonly usedBy: string | undefined;
}

/** Room on the image file system, bytes. */
export interface ImageDisk {
  readonly capacity: number;
  readonly available: number;
}

export interface ImageGcInput {
  readonly images: readonly ImageRecord[];
  readonly policy: ImageGcPolicy;
  readonly disk: ImageDisk;
  readonly now: number;
  /** When this agent began to look at images. */
  readonly since: number;
  /** True when every image that is not in use shall go, as under disk pressure. */
  readonly unused?: boolean;
}

/** What becomes of one image, and why. */
export interface ImageVerdict {
  readonly image: ImageRecord;
  readonly remove: boolean;
  readonly reason: "Pinned" | "InUse" | "TooYoung" | "NotNeeded" | "UnusedTooLong" | "DiskUse" | "DiskPressure";
  readonly message: string;
}

export interface ImageGcPlan {
  /** Every image: those that are removed first, in the order in which they are, then those that stay. */
  readonly verdicts: readonly ImageVerdict[];
  readonly usagePercent: number;
  /** Bytes that must be freed to come down to the low threshold; 0 below the high one. */
  readonly toFree: number;
  /** Bytes that the removals are expected to free. */
  readonly frees: number;
}

const units = ["B", "KiB", "MiB", "GiB", "TiB"];

/** Bytes as people read them, such as `1.5 GiB`. */
export function showBytes(bytes: number): string {
  let [value, unit] = [bytes, 0];
  for (; value >= 1024 && unit < units.length - 1; unit++) value /= 1024;
  return `${unit === 0 ? value : value.toFixed(1)} ${units[unit]}`;
}

/** The longest unused first; of those the one that was seen first. One that was never used comes before all others. */
function evictionOrder(a: ImageRecord, b: ImageRecord): number {
  return (a.lastUsed ?? 0) - (b.lastUsed ?? 0) || a.firstSeen - b.firstSeen ||
    (a.id < b.id ? -1 : a.id > b.id ? 1 : 0);
}

/**
 * Decides which images go (runtime-contract.md section 21, features E10 to E12), and tells of each why it goes or
 * stays: so it is the preview too. An image that is pinned or in use never goes. Of the others go first those that were
 * unused for longer than the maximum age, once the agent has watched for that long; then, from the high threshold on,
 * the longest unused, until the disk is expected to be at the low one.
 */
export function planImageGC(input: ImageGcInput): ImageGcPlan {
  const { policy, now } = input;
  const { capacity } = input.disk;
  const available = Math.min(input.disk.available, capacity);
  const usagePercent = capacity > 0 ? 100 - Math.floor(available * 100 / capacity) : 0;
  const over = capacity > 0 && usagePercent >= policy.highPercent;
  const toFree = over ? Math.max(0, Math.floor(capacity * (100 - policy.lowPercent) / 100) - available) : 0;
  const aged = policy.maxAgeMs > 0 && now - input.since > policy.maxAgeMs;
  const go: ImageVerdict[] = [];
  const stay: ImageVerdict[] = [];
  const candidates: ImageRecord[] = [];
  let frees = 0;
  const remove = (image: ImageRecord, reason: ImageVerdict["reason"], message: string) => {
    go.push({ image, remove: true, reason, message });
    frees += image.sizeBytes;
  };
  const keep = (image: ImageRecord, reason: ImageVerdict["reason"], message: string) =>
    stay.push({ image, remove: false, reason, message });

  for (const image of input.images.toSorted(evictionOrder)) {
    const idle = now - (image.lastUsed ?? image.firstSeen);
    if (image.pinned) keep(image, "Pinned", "the runtime has pinned it");
    else if (image.usedBy !== undefined) keep(image, "InUse", image.usedBy);
    else if (aged && idle > policy.maxAgeMs) {
      const limit = formatDuration(policy.maxAgeMs);
      remove(image, "UnusedTooLong", `unused for ${formatDuration(idle)}, longer than imageMaximumGCAge (${limit})`);
    } else candidates.push(image);
  }
  const disk = `${usagePercent} % of the image file system (${showBytes(capacity)}) are in use`;
  for (const image of candidates) {
    const age = now - image.firstSeen;
    if ((over || input.unused) && age < policy.minAgeMs) {
      const limit = formatDuration(policy.minAgeMs);
      keep(image, "TooYoung", `first seen ${formatDuration(age)} ago, less than imageMinimumGCAge (${limit})`);
    } else if (input.unused) remove(image, "DiskPressure", "nothing uses it, and the disk runs full");
    else if (!over) keep(image, "NotNeeded", `${disk}, less than imageGCHighThresholdPercent (${policy.highPercent})`);
    else if (frees < toFree) {
      const used = image.lastUsed === undefined ? "never used" : `unused for ${formatDuration(now - image.lastUsed)}`;
      const limits = `imageGCHighThresholdPercent is ${policy.highPercent}, imageGCLowThresholdPercent`;
      remove(image, "DiskUse", `${used}; ${disk}, ${limits} ${policy.lowPercent}`);
    } else keep(image, "NotNeeded", `the images before it free the ${showBytes(toFree)} that are wanted`);
  }
  return { verdicts: [...go, ...stay], usagePercent, toFree, frees };
}
