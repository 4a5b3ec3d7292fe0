import { attempt } from "../lib/command.ts";

/** Mount points in a mountinfo text that lie at or below the directory, deepest and latest first. */
export function mountsBelow(mountinfo: string, directory: string): string[] {
  return mountinfo.split("\n")
    .map((line) => line.split(" ")[4] ?? "")
    .map((path) => path.replace(/\\([0-7]{3})/g, (_, octal: string) => String.fromCharCode(parseInt(octal, 8))))
    .filter((path) => path === directory || path.startsWith(`${directory}/`))
    .reverse();
}

/** Unmounts all that is mounted at or below the directory; what is busy is detached. Throws when something stays. */
export async function unmountBelow(directory: string): Promise<void> {
  const below = async () => mountsBelow(await Deno.readTextFile("/proc/self/mountinfo"), directory);
  for (const path of await below()) {
    // a bind of a shared tree (the host's cgroup hierarchies) would hand the unmounting on to the original
    await attempt(["mount", "--make-rslave", path]);
    if ((await attempt(["umount", path])).code !== 0) await attempt(["umount", "-l", path]);
  }
  const left = await below();
  if (left.length > 0) throw new Error(`still mounted: ${left.join(", ")}`);
}
