import { KubeletError } from "../../base/errors.ts";
import type { FieldSpec } from "./field_spec.ts";
import { allFields, fieldGroups, isActedOn } from "./fields.ts";
import { flagNamed } from "./flags.ts";
import { getPath, isObject, type Json } from "./json.ts";
import { type LoadedConfig, setButNotActedOn } from "./load.ts";
import { didYouMean } from "./nearest.ts";

/** What to explain. */
export interface ExplainOptions {
  /** A field's path, the beginning of one (`authentication`), or a flag (`--max-pods`); absent: every field. */
  readonly field?: string;
  /** The configuration in use: its values are shown and its set fields judged. */
  readonly loaded?: Pick<LoadedConfig, "v1beta1" | "setFields">;
}

const acted = { true: "yes", partly: "partly", false: "no" } as const;

function actedText(path: string): string {
  return acted[`${isActedOn(path)}`];
}

function defaultText(field: FieldSpec): string {
  if (field.initial !== undefined) {
    return typeof field.initial === "object" ? JSON.stringify(field.initial) : String(field.initial);
  }
  if (field.pointer) return "not set";
  switch (field.type) {
    case "bool":
      return "false";
    case "int32":
    case "int64":
    case "float":
      return "0";
    default:
      return "empty";
  }
}

/** The value in use; header values stay hidden, they may be credentials. */
function valueText(field: FieldSpec, loaded: NonNullable<ExplainOptions["loaded"]>): string {
  const value = getPath(loaded.v1beta1, field.path) as Json | undefined;
  if (value === undefined) return `${defaultText(field)} (default)`;
  const shown = field.type === "headers" && isObject(value)
    ? JSON.stringify(Object.fromEntries(Object.keys(value).map((name) => [name, "<masked>"])))
    : typeof value === "object"
    ? JSON.stringify(value)
    : String(value);
  return loaded.setFields.includes(field.path) ? `${shown} (set)` : `${shown} (default)`;
}

function explainOne(field: FieldSpec, loaded: ExplainOptions["loaded"]): string {
  const lines: [string, string][] = [["type", field.type], ["default", defaultText(field)]];
  if (field.flag !== undefined) {
    const { name, deprecated } = field.flag;
    lines.push(["flag", `${name === "v" ? "-v, " : ""}--${name}${deprecated ? " (deprecated: use the file)" : ""}`]);
  } else lines.push(["flag", "none"]);
  if (field.rule !== undefined) lines.push(["allowed", field.rule]);
  lines.push(["acted on", actedText(field.path)]);
  if (loaded !== undefined) lines.push(["in use", valueText(field, loaded)]);
  return [field.path, `  ${field.about}`, ...lines.map(([name, text]) => `  ${`${name}:`.padEnd(10)}${text}`)].join(
    "\n",
  );
}

function find(name: string): FieldSpec[] {
  const path = name.startsWith("--") ? flagNamed(name.slice(2))?.field ?? name : name;
  const found = allFields.filter((field) => field.path === path || field.path.startsWith(`${path}.`));
  if (found.length > 0) return found;
  const flags = allFields.flatMap((field) => field.flag === undefined ? [] : [`--${field.flag.name}`]);
  throw new KubeletError(
    "BadConfig",
    `there is no configuration field ${JSON.stringify(name.slice(0, 80))}` +
      `${didYouMean(name, name.startsWith("--") ? flags : allFields.map((field) => field.path))}`,
  );
}

function table(loaded: ExplainOptions["loaded"]): string {
  const parts = fieldGroups.map(({ title, fields }) =>
    [
      title,
      ...fields.map((field) =>
        `  ${field.path.padEnd(46)} ${field.type.padEnd(16)} ${actedText(field.path).padEnd(7)} ${
          loaded === undefined ? defaultText(field) : valueText(field, loaded)
        }`
      ),
    ].join("\n")
  );
  const head = `  ${"FIELD".padEnd(46)} ${"TYPE".padEnd(16)} ${"ACTED ON"} ${
    loaded === undefined ? "DEFAULT" : "IN USE"
  }`;
  return [`KubeletConfiguration (kubelet.config.k8s.io/v1beta1)\n${head}`, ...parts].join("\n\n");
}

/** The fields that were set although the agent does not act on them, in words, a line each; empty when there are none. */
export function describeUnused(loaded: Pick<LoadedConfig, "setFields">): string[] {
  const { no, partly } = setButNotActedOn(loaded);
  const lines: string[] = [];
  if (no.length > 0) lines.push(`Set, but this agent does not act on them: ${no.join(", ")}`);
  if (partly.length > 0) lines.push(`Set, and acted on in part: ${partly.join(", ")}`);
  return lines;
}

/** The text of `kubelet explain config [FIELD]`. Throws a KubeletError (BadConfig) for a field that does not exist. */
export function explainConfig(options: ExplainOptions = {}): string {
  const { field, loaded } = options;
  if (field !== undefined) return find(field).map((found) => explainOne(found, loaded)).join("\n\n");
  const unused = loaded === undefined ? [] : describeUnused(loaded);
  return unused.length === 0 ? table(loaded) : `${table(loaded)}\n\n${unused.join("\n")}`;
}
