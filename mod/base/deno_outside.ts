import type { CommandResult } from "./host.ts";
import { hostError } from "./host_error.ts";

const mkdirProgram = "/usr/bin/mkdir";
const touchProgram = "/usr/bin/touch";

interface Context {
  readonly procRoot: string;
  run(command: string, args: string[], options: { env: Record<string, string> }): Promise<CommandResult>;
}

/** True when the run-time refused an operation because the agent's permissions do not cover the path. */
export function isRefused(thrown: unknown): boolean {
  return thrown instanceof Deno.errors.NotCapable;
}

/**
 * Does an operation that only looks at what a path is (its kind, its target, its real path, the room on its file system) also where
 * the agent may read no content: hostPath volumes lie anywhere. Such a path is then seen through procfs, which may be
 * read as a whole. Without a private mount of procfs the refusal stands.
 */
export async function beyond<T>(procRoot: string, path: string, look: (path: string) => Promise<T>): Promise<T> {
  try {
    return await look(path);
  } catch (thrown) {
    if (!isRefused(thrown) || procRoot === "/proc" || !path.startsWith("/")) throw thrown;
    return await look(`${procRoot}/self/root${path}`);
  }
}

const texts: [RegExp, string][] = [
  [/File exists/, "EEXIST"],
  [/Not a directory/, "ENOTDIR"],
  [/No such file/, "ENOENT"],
  [/No space left/, "ENOSPC"],
  [/Read-only file system/, "EROFS"],
  [/Permission denied/, "EACCES"],
  [/not permitted/, "EPERM"],
];

async function make(context: Context, operation: string, path: string, command: string, args: string[]): Promise<void> {
  const result = await context.run(command, [...args, "--", path], { env: { LC_ALL: "C" } });
  if (result.code === 0) return;
  const said = result.stderr.trim() || `exit code ${result.code}`;
  const code = texts.find(([pattern]) => pattern.test(said))?.[1] ?? "EIO";
  throw hostError(operation, path, Object.assign(new Error(said), { code }));
}

/** Makes a directory and its parents where the agent may not write: by a program that can do nothing else there. */
export async function mkdirOutside(context: Context, path: string, mode: number): Promise<void> {
  await make(context, "mkdir", path, mkdirProgram, ["-p", "-m", mode.toString(8)]);
}

/** Makes an empty file where the agent may not write; what is there stays as it is. Its mode is 0644 at most. */
export async function touchOutside(context: Context, path: string): Promise<void> {
  await make(context, "write", path, touchProgram, ["-a"]);
}
