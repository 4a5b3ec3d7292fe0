import { unlessMissing } from "../lib/files.ts";

const base = "/sys/fs/cgroup";

/** Where control groups live: each hierarchy of version 1 (and the unified one beside them), or the one of version 2. */
export async function cgroupRoots(): Promise<string[]> {
  const types = new Set(["cgroup", "cgroup2"]);
  const roots = (await Deno.readTextFile("/proc/self/mounts")).split("\n")
    .map((line) => line.split(" "))
    .filter(([, path, type]) => types.has(type ?? "") && (path === base || path?.startsWith(`${base}/`)))
    .map(([, path]) => path ?? base);
  return [...new Set(roots)];
}

/**
 * Makes a control group in every hierarchy. With version 1 a new cpuset has no processors until it is given its
 * parent's; with version 2 the controllers are switched on for the children. `path` has one part, such as /denolet-dev.
 */
export async function makeCgroup(path: string): Promise<void> {
  if (!/^\/[^/]+$/.test(path)) throw new Error(`control group ${path}: give one name after a slash`);
  for (const root of await cgroupRoots()) {
    const directory = `${root}${path}`;
    await Deno.mkdir(directory, { recursive: true });
    for (const file of ["cpuset.cpus", "cpuset.mems"]) {
      const given = (await unlessMissing(Deno.readTextFile(`${root}/${file}`)))?.trim();
      const own = (await unlessMissing(Deno.readTextFile(`${directory}/${file}`)))?.trim();
      if (given && own === "") await Deno.writeTextFile(`${directory}/${file}`, given, { create: false });
    }
    const controllers = await unlessMissing(Deno.readTextFile(`${directory}/cgroup.controllers`)) ?? "";
    for (const name of controllers.split(/\s+/).filter((word) => word !== "")) {
      await Deno.writeTextFile(`${directory}/cgroup.subtree_control`, `+${name}`, { create: false });
    }
  }
}

/**
 * Removes a control group and those below it, in every hierarchy. `path` starts with a slash and is not the root.
 * One that still has processes stays, and is returned.
 */
export async function removeCgroup(path: string): Promise<string[]> {
  if (!/^\/[^/]/.test(path) || path.split("/").includes("..")) throw new Error(`not a control group of ours: ${path}`);
  const left: string[] = [];
  for (const root of await cgroupRoots()) {
    if (!await removeTree(`${root}${path}`)) left.push(`${root}${path}`);
  }
  return left;
}

/** Removes a control group in each hierarchy where nothing is in it, groups included. */
export async function removeEmptyCgroup(path: string): Promise<void> {
  for (const root of await cgroupRoots()) await removeDirectory(`${root}${path}`);
}

async function removeTree(directory: string): Promise<boolean> {
  const children = async () => {
    const names: string[] = [];
    for await (const entry of Deno.readDir(directory)) if (entry.isDirectory) names.push(entry.name);
    return names;
  };
  const names = await unlessMissing(children());
  if (names === undefined) return true;
  for (const name of names) await removeTree(`${directory}/${name}`);
  return await removeDirectory(directory);
}

/** False when the kernel keeps it because it is in use. */
async function removeDirectory(directory: string): Promise<boolean> {
  try {
    await Deno.remove(directory);
    return true;
  } catch (thrown) {
    return thrown instanceof Deno.errors.NotFound;
  }
}
