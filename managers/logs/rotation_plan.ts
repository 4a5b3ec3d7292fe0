/** What is done to the files of one container's log when it is rotated, in this order. */
export interface RotationPlan {
  /** Names to remove, and why. */
  readonly remove: readonly { readonly name: string; readonly why: string }[];
  /** Rotated logs to compress, oldest first. */
  readonly compress: readonly string[];
  /** The name that the log takes. */
  readonly rotated: string;
}

export interface RotationInput {
  /** The log's own name, such as `0.log`. */
  readonly file: string;
  /** Names of the regular files in its directory. */
  readonly names: readonly string[];
  /** containerLogMaxFiles: files of one log in all, the one that is written to included. */
  readonly maxFiles: number;
  /** Wall time, milliseconds. */
  readonly now: number;
}

/** What follows `<n>.log.` in the names that rotation gives: the time, and `.gz` or `.tmp`. */
const shape = /^(\d{8}-\d{6})(\.gz|\.tmp)?$/;

function stampOf(parts: readonly number[]): string {
  const [year = 0, month = 0, day = 0, ...time] = parts;
  const text = (value: number, digits = 2) => String(value).padStart(digits, "0");
  return `${text(year, 4)}${text(month)}${text(day)}-${time.map((part) => text(part)).join("")}`;
}

/** A moment as rotated logs are named by it, in local time: YYYYMMDD-hhmmss. */
export function rotationStamp(ms: number): string {
  const at = new Date(ms);
  const date = [at.getFullYear(), at.getMonth() + 1, at.getDate()];
  return stampOf([...date, at.getHours(), at.getMinutes(), at.getSeconds()]);
}

/**
 * The stamp so many seconds after another, by the calendar alone: the other may have been made in another time zone.
 * Undefined when the other tells no moment.
 */
function later(stamp: string, seconds: number): string | undefined {
  const iso = stamp.replace(/^(....)(..)(..)-(..)(..)(..)$/, "$1-$2-$3T$4:$5:$6");
  const from = Date.parse(`${iso}Z`);
  if (Number.isNaN(from) || new Date(from).toISOString() !== `${iso}.000Z`) return undefined;
  const at = new Date(from + seconds * 1000);
  const date = [at.getUTCFullYear(), at.getUTCMonth() + 1, at.getUTCDate()];
  const text = stampOf([...date, at.getUTCHours(), at.getUTCMinutes(), at.getUTCSeconds()]);
  return shape.test(text) ? text : undefined;
}

/**
 * Decides about the files of a log that is to be rotated (runtime-contract.md section 21). What an earlier rotation
 * left half done goes: temporary files, and plain ones whose compressed copy is complete. Of the others the newest
 * `maxFiles` − 2 are kept and compressed, as the log itself becomes one more and the runtime makes a new one. Files of
 * other names are not rotation's and are left alone.
 *
 * Names are in the order of time, also when the clock was put back: a name never sorts before one that is there, and is
 * never that of a file that is there.
 */
export function planRotation({ file, names, maxFiles, now }: RotationInput): RotationPlan {
  const prefix = `${file}.`;
  const there = new Set(names);
  const remove: { name: string; why: string }[] = [];
  const kept: { name: string; stamp: string; plain: boolean }[] = [];
  for (const name of names) {
    if (!name.startsWith(prefix)) continue;
    const match = shape.exec(name.slice(prefix.length));
    if (!match) continue;
    const [, stamp = "", suffix] = match;
    if (later(stamp, 1) === undefined) continue;
    if (suffix === ".tmp") remove.push({ name, why: "left by a compression that did not end" });
    else if (suffix === undefined && there.has(`${name}.gz`)) {
      remove.push({ name, why: "its compressed copy is there" });
    } else kept.push({ name, stamp, plain: suffix === undefined });
  }
  kept.sort((a, b) => a.stamp < b.stamp ? -1 : a.stamp > b.stamp ? 1 : 0);
  const excess = Math.max(0, kept.length - Math.max(0, maxFiles - 2));
  for (const { name } of kept.slice(0, excess)) remove.push({ name, why: `more than ${maxFiles} files of one log` });
  const least = later(kept.at(-1)?.stamp ?? "", 1) ?? "";
  const stamp = rotationStamp(now);
  return {
    remove,
    compress: kept.slice(excess).filter((one) => one.plain).map((one) => one.name),
    rotated: prefix + (stamp > least ? stamp : least),
  };
}

/**
 * The rotated files that must go so that all files of a log have no more bytes than a budget, oldest first: the newest
 * one too when it alone is too much. `sizes`: bytes of every regular file in the directory.
 */
export function overBudget(file: string, sizes: ReadonlyMap<string, number>, budget: number): string[] {
  let sum = sizes.get(file) ?? 0;
  const rotated = [...sizes].filter(([name]) => name.startsWith(`${file}.`) && shape.test(name.slice(file.length + 1)))
    .sort(([a], [b]) => a < b ? -1 : 1);
  for (const [, size] of rotated) sum += size;
  const gone: string[] = [];
  for (const [name, size] of rotated) {
    if (sum <= budget) break;
    gone.push(name);
    sum -= size;
  }
  return gone;
}

/** The newest rotated file of a log, when it is a plain one: what its container wrote last. */
export function lastRotated(file: string, names: readonly string[]): string | undefined {
  const rotated = names.filter((name) => {
    const suffix = name.startsWith(`${file}.`) ? shape.exec(name.slice(file.length + 1)) : null;
    return suffix !== null && suffix[2] !== ".tmp";
  });
  const last = rotated.toSorted().at(-1);
  return last?.endsWith(".gz") ? undefined : last;
}
