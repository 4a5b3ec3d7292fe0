import { resolve } from "node:path";
import { run } from "../../scripts/lib/command.ts";
import { exists, repository } from "../../scripts/lib/files.ts";

/** What a bench measures. */
export interface Program {
  /** An executable; undefined for the sources, which scripts/agent.sh runs as one bundle. */
  readonly path: string | undefined;
  /** What it is, for the reader of the figures. */
  readonly what: string;
}

const compiled = `${repository}/dist/kubelet`;

/** Whether a file is there and none that it is made of is newer. */
async function upToDate(file: string): Promise<boolean> {
  if (!await exists(file)) return false;
  const from = ["main.ts", "deno.json", "cri", "managers", "mod", "scripts/compile", "scripts/compile.ts"];
  const looked = ["-type", "f", "!", "-name", "*_test.ts", "-newer", file, "-print", "-quit"];
  return (await run(["find", ...from.map((name) => `${repository}/${name}`), ...looked])).trim() === "";
}

/** Finds what is to be measured, and makes the bundle when that is the sources. Throws when an executable is not there. */
export async function chooseProgram(asked: string | undefined): Promise<Program> {
  const path = asked === undefined ? (await upToDate(compiled) ? compiled : undefined) : asked;
  if (path === undefined || path === "sources") {
    await run([Deno.execPath(), "task", "bundle"], { cwd: repository });
    const why = asked === undefined ? " (dist/kubelet is not there, or older than a source: deno task compile)" : "";
    return { path: undefined, what: `the sources as one bundle, scripts/agent.sh${why}` };
  }
  const absolute = resolve(path);
  if (!await exists(absolute)) {
    throw new Error(`--program ${path}: it is not there; deno task compile makes dist/kubelet`);
  }
  const [made = ""] = (await run([absolute, "--denolet-permissions", "--version"])).split("\n");
  return { path: absolute, what: `${absolute} (${made})` };
}
