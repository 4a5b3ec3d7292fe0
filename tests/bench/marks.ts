import { waitFor } from "../../scripts/lib/wait.ts";
import { namesIn, remove } from "../../scripts/lib/files.ts";
import { systemClock } from "../../mod/base/clock.ts";

/** The time at which a container made a mark (its file's), milliseconds since the epoch; undefined before. */
async function markedAt(path: string): Promise<number | undefined> {
  try {
    return (await Deno.stat(path)).mtime?.getTime();
  } catch (thrown) {
    if (thrown instanceof Deno.errors.NotFound) return undefined;
    throw thrown;
  }
}

/** Waits for the marks of these pods; the time of the last of them, milliseconds since the epoch. */
export async function lastMark(
  directory: string,
  names: readonly string[],
  mark: "runs" | "ended",
  within = 120_000,
): Promise<number> {
  return await waitFor(`${names.length} pods to be marked "${mark}"`, async () => {
    // one look at the directory is enough while many are missing: looking must not cost what is measured
    const there = (await namesIn(directory)).filter((name) => name.endsWith(`.${mark}`)).length;
    if (there < names.length) return undefined;
    const times = await Promise.all(names.map((name) => markedAt(`${directory}/${name}.${mark}`)));
    return times.every((time) => time !== undefined) && Math.max(...times);
  }, { within, every: 20 });
}

/** Removes all marks. */
export async function clearMarks(directory: string): Promise<void> {
  for (const name of await namesIn(directory)) await remove(`${directory}/${name}`);
}

/** Lets the machine come to rest between two measurements. */
export async function settle(): Promise<void> {
  await systemClock.sleep(700);
}
