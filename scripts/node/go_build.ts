import { run } from "../lib/command.ts";
import { remove } from "../lib/files.ts";
import { ensureGo } from "./go_toolchain.ts";

/** Programs of one Go module, and how they are built. */
export interface GoBuild {
  /** The directory of the go.mod that pins what is built. */
  readonly module: URL;
  readonly packages: readonly string[];
  /** `-X` settings of the linker. */
  readonly settings: readonly string[];
  readonly tags?: string;
  readonly cgo?: boolean;
  /** Completes the directory before it gets its name. */
  readonly finish?: (directory: string) => Promise<void>;
  /** Where a Go that has to be fetched is kept. */
  readonly cache?: string;
  readonly log?: (line: string) => void;
  /** Told before the build begins. */
  readonly about: string;
}

/**
 * Builds Go programs into a directory, which appears whole or not at all; one that is there is replaced. Throws when
 * there is no Go, or the build fails.
 */
export async function goBuild(target: string, build: GoBuild): Promise<void> {
  const { module, packages, settings, tags, cgo = false, finish, log, about } = build;
  const go = await ensureGo(build);
  log?.(about);
  const part = `${target}.${crypto.randomUUID()}`;
  await Deno.mkdir(part, { recursive: true });
  try {
    const flags = ["-s", "-w", ...settings.flatMap((one) => ["-X", one])].join(" ");
    await run([
      go,
      "build",
      "-trimpath",
      ...(tags ? ["-tags", tags] : []),
      "-ldflags",
      flags,
      "-o",
      `${part}/`,
      ...packages,
    ], {
      cwd: module.pathname,
      env: { CGO_ENABLED: cgo ? "1" : "0", GOFLAGS: "-mod=readonly -buildvcs=false", GOTOOLCHAIN: "auto" },
    });
    await finish?.(part);
    await remove(target);
    await Deno.rename(part, target);
  } finally {
    await remove(part);
  }
}
