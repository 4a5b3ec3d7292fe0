/** The directory that holds what can be made again: images, containerd 2. */
export function cacheDirectory(): string {
  return Deno.env.get("DENOLET_CACHE") || "/var/cache/denolet";
}

/** The repository's root, without a slash at the end. */
export const repository: string = new URL("../..", import.meta.url).pathname.replace(/\/$/, "");

/** Whether there is something at the path; a dangling link counts. */
export async function exists(path: string): Promise<boolean> {
  return await unlessMissing(Deno.lstat(path)) !== undefined;
}

/** The result, or undefined when the path of the operation does not exist. */
export async function unlessMissing<T>(operation: Promise<T>): Promise<T | undefined> {
  try {
    return await operation;
  } catch (thrown) {
    // a process that ended while its /proc files were read gives ESRCH, which Deno has no class for
    if (thrown instanceof Deno.errors.NotFound || thrown instanceof Deno.errors.NotADirectory) return undefined;
    if (thrown instanceof Error && /os error 3\b|No such process/.test(thrown.message)) return undefined;
    throw thrown;
  }
}

/** Names in a directory in order; none when it does not exist. */
export async function namesIn(directory: string): Promise<string[]> {
  const list = async () => {
    const names: string[] = [];
    for await (const entry of Deno.readDir(directory)) names.push(entry.name);
    return names.sort();
  };
  return await unlessMissing(list()) ?? [];
}

/** Removes a file or a directory with all below it; a missing path is no error. */
export async function remove(path: string): Promise<void> {
  await unlessMissing(Deno.remove(path, { recursive: true }));
}

/** Writes a file through a temporary one and a rename, so that a reader never sees half of it. */
export async function writeWhole(path: string, data: Uint8Array | string, mode = 0o644): Promise<void> {
  const temporary = `${path}.${crypto.randomUUID()}.tmp`;
  await Deno.writeFile(temporary, typeof data === "string" ? new TextEncoder().encode(data) : data, { mode });
  await Deno.chmod(temporary, mode);
  await Deno.rename(temporary, path);
}
