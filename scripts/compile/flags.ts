/** A permission set of deno.json: true for everything of a kind, a list for some of it. */
export type PermissionSet = Readonly<Record<string, boolean | readonly string[]>>;

const kinds = ["read", "write", "net", "run", "env", "sys", "ffi", "import"] as const;

/**
 * The run-time's flags for a permission set, in a fixed order; kinds in `without` are left out. Throws for a kind or a
 * value that it does not know, since a mistake here would widen or narrow silently.
 */
export function permissionFlags(set: PermissionSet, without: readonly string[] = []): string[] {
  for (const [kind, value] of Object.entries(set)) {
    if (!(kinds as readonly string[]).includes(kind)) throw new Error(`deno.json: unknown kind of permission: ${kind}`);
    if (typeof value !== "boolean" && !(Array.isArray(value) && value.every((one) => typeof one === "string"))) {
      throw new Error(`deno.json: permission ${kind}: true, false or a list of strings is needed`);
    }
  }
  return kinds.filter((kind) => !without.includes(kind)).flatMap((kind) => {
    const value = Object.hasOwn(set, kind) ? set[kind] : undefined;
    if (value === true) return [`--allow-${kind}`];
    if (Array.isArray(value) && value.length > 0) {
      return [`--allow-${kind}=${value.map((one: string) => one.replaceAll(",", ",,")).join(",")}`];
    }
    return [];
  });
}

/** What scripts/agent.sh decides for how the run-time runs: the flags for V8, and variables it exports for the run-time. */
export interface Tuning {
  readonly flags: readonly string[];
  /** Variables and their values. */
  readonly environment: Readonly<Record<string, string>>;
}

/** Reads the tuning out of the text of scripts/agent.sh, so that there is one place for it. */
export function tuningOf(agentScript: string): Tuning {
  const code = agentScript.split("\n").filter((line) => !/^\s*#/.test(line)).join("\n");
  const flags = code.match(/--v8-flags=[^\s"'\\]+/g) ?? [];
  const exports = [...code.matchAll(/^\s*export (.*)$/gm)].map(([, words = ""]) => words).join(" ");
  const exported = exports.matchAll(/(?:^|\s)((?:MALLOC_|DENO_V8_)\w+)=([\w.,:-]+)(?=\s|$)/g);
  return {
    flags: [...new Set(flags)],
    environment: Object.fromEntries([...exported].map(([, name = "", value = ""]) => [name, value])),
  };
}

/** Flags of both steps: no question asked, no configuration found by chance, nothing fetched. */
const closed = ["--quiet", "--no-prompt", "--no-config", "--no-lock", "--no-remote", "--no-npm"];

/** The run-time's flags of the agent itself; what it may read and write is added at each start (access.ts). */
export function runFlags(set: PermissionSet, tuning: Tuning): string[] {
  const own = ["--unstable-net", ...tuning.flags, ...permissionFlags(set, ["read", "write"])];
  return ["run", ...closed, ...own];
}

/**
 * The run-time's flags of the plan: it reads, binds, and can do nothing else. Writing is added for root by launcher.c.
 * V8's flags are the agent's, since the run-time throws away all compiled code when they differ from the last start's.
 */
export function planFlags(set: PermissionSet, tuning: Tuning): string[] {
  const own = permissionFlags({ read: true, run: ["/usr/bin/mount"], env: set.env ?? false, sys: ["uid"] });
  return ["run", ...closed, ...tuning.flags, ...own];
}

/** A string literal of C. */
export function cString(value: string): string {
  const bytes = new TextEncoder().encode(value);
  let text = "";
  for (const byte of bytes) {
    const plain = byte >= 0x20 && byte < 0x7f && byte !== 0x22 && byte !== 0x5c && byte !== 0x3f;
    // three octal digits always: what follows can't become part of it
    text += plain ? String.fromCharCode(byte) : `\\${byte.toString(8).padStart(3, "0")}`;
  }
  return `"${text}"`;
}

/** What launcher.c is compiled with. */
export interface Baked {
  readonly digest: string;
  /** One line that says what was made. */
  readonly made: string;
  readonly files: readonly { readonly name: string; readonly size: number }[];
  readonly planFlags: readonly string[];
  readonly runFlags: readonly string[];
  readonly environment: Readonly<Record<string, string>>;
}

/** The text of baked.h. */
export function bakedHeader(baked: Baked): string {
  const list = (name: string, words: readonly string[]) =>
    `static const char *const ${name}[] = {${[...words.map(cString), "NULL"].join(", ")}};`;
  return [
    `#define DIGEST ${cString(baked.digest)}`,
    `#define MADE ${cString(baked.made)}`,
    `static const struct part files[] = {${
      baked.files.map(({ name, size }) => `{${cString(name)}, ${size}}`).join(", ")
    }};`,
    list("plan_flags", baked.planFlags),
    list("run_flags", baked.runFlags),
    list("environment", Object.entries(baked.environment).flat()),
    "",
  ].join("\n");
}
