import { posix } from "node:path";
import type { Host } from "../../base/host.ts";
import type { Logger } from "../../base/log.ts";
import type { KubeletConfiguration } from "../../kube/types.ts";
import { applyFieldFlags, badConfig, parseCommandLine, type ParsedCommandLine } from "./command_line.ts";
import { type ConfigFile, findDropIns, readConfigFile } from "./config_file.ts";
import { setDefaults, setEvictionDefaults, setLegacyDefaults } from "./defaults.ts";
import { type FeatureGates, resolveGates } from "./feature_gates.ts";
import { allFields, isActedOn } from "./fields.ts";
import { flagNamed, type KubeletFlags } from "./flags.ts";
import { getPath, isObject, type Json, type JsonObject, mergePatch, setKey, setPath } from "./json.ts";
import type { KubeletConfig } from "./kubelet_config.ts";
import { gatherFacts } from "./machine_facts.ts";
import { toInternal } from "./to_internal.ts";
import { toV1beta1 } from "./v1beta1.ts";
import { Context } from "./validate/context.ts";
import { validate } from "./validate/validate.ts";

/** What loading needs. */
export interface LoadOptions {
  /** The flags, without the program's name. */
  readonly argv: readonly string[];
  readonly host: Host;
  readonly log: Logger;
  /** Where relative paths on the command line start; without it they stay relative. */
  readonly cwd?: string;
}

/** The configuration in use. */
export interface LoadedConfig {
  readonly flags: KubeletFlags;
  readonly config: KubeletConfig;
  /** As /configz serves it (under `kubeletconfig`); headers of staticPodURL are in it, so don't log it as it is. */
  readonly v1beta1: KubeletConfiguration;
  readonly gates: FeatureGates;
  /** Already logged. */
  readonly warnings: readonly string[];
  /** Names of the flags that were set. */
  readonly changed: readonly string[];
  /** Paths of the fields that a file or a flag set. */
  readonly setFields: readonly string[];
}

/** Paths that are resolved against the directory of the configuration file (contract config.md section 1). */
const relativePaths = [
  "staticPodPath",
  "authentication.x509.clientCAFile",
  "tlsCertFile",
  "tlsPrivateKeyFile",
  "resolvConf",
  "volumePluginDir",
  "podLogsDir",
];

/**
 * Loads the configuration: defaults → --config → --config-dir → flags, then every rule (contract config.md).
 * Throws a KubeletError (BadConfig) that lists all that is wrong.
 */
export async function loadConfig(options: LoadOptions): Promise<LoadedConfig> {
  const parsed = parseCommandLine(options.argv);
  const { host, log } = options;
  const warnings: string[] = deprecations(parsed);
  const files: ConfigFile[] = [];
  const absolute = (path: string) => options.cwd === undefined ? path : posix.resolve(options.cwd, path);
  const flags = { ...parsed.flags, rootDir: rootDirectory(parsed.flags.rootDir, absolute) };

  const flagGates = parsed.values.get("feature-gates");
  let config: JsonObject = {};
  if (flags.config === "") {
    setDefaults(config, flagGates);
    setLegacyDefaults(config);
    applyFieldFlags(config, parsed);
  } else {
    const path = absolute(flags.config);
    const file = await readConfigFile(host, path, { dropIn: false });
    files.push(file);
    const copy = mergePatch({}, file.value); // the file's own stays as it was read, to tell what it set
    config = isObject(copy) ? copy : {};
    setDefaults(config, flagGates);
    resolvePaths(config, posix.dirname(path));
    setEvictionDefaults(config);
  }
  if (flags.configDir !== "") {
    const found = await findDropIns(host, absolute(flags.configDir));
    for (const path of found.skipped) log.detail(4, "File in --config-dir is not named *.conf, passed over", { path });
    let merged: Json = toV1beta1(config) as unknown as JsonObject;
    for (const path of found.files) {
      const file = await readConfigFile(host, path, { dropIn: true });
      files.push(file);
      merged = mergePatch(merged, file.value);
    }
    config = isObject(merged) ? merged : {};
    setDefaults(config, flagGates);
  }
  applyFieldFlags(config, parsed);
  for (const file of files) warnings.push(...file.warnings);

  const { gates, config: internal, v1beta1, problems, warnings: more } = check(config, flags, await gatherFacts(host));
  warnings.push(...more);
  for (const warning of warnings) log.warn(warning);
  if (problems.length > 0) throw badConfig("the configuration has", problems);
  return {
    flags,
    config: internal,
    v1beta1,
    gates,
    warnings,
    changed: parsed.changed,
    setFields: setFields(files, parsed),
  };
}

/** The root directory in full, without a slash at its end: the runtime gets paths below it, and has a directory of its own. */
function rootDirectory(given: string, absolute: (path: string) => string): string {
  if (given === "") throw badConfig("the flags have", ["--root-dir is empty; give a directory, or leave the flag out"]);
  return posix.normalize(absolute(given)).replace(/(.)\/$/, "$1");
}

/** Resolves gates, types and checks a complete configuration. */
function check(config: JsonObject, flags: KubeletFlags, facts: Context["facts"]) {
  const settings: Record<string, boolean> = {};
  if (isObject(config.featureGates)) {
    for (const [name, on] of Object.entries(config.featureGates)) setKey(settings, name, on === true);
  }
  const resolved = resolveGates(settings);
  const written = config as unknown as KubeletConfiguration;
  const converted = toInternal(written, { seccompDefault: flags.seccompDefault });
  const context = new Context(written, converted.config, flags, resolved.gates, facts);
  validate(context);
  return {
    gates: resolved.gates,
    config: converted.config,
    v1beta1: toV1beta1(config),
    problems: [...resolved.problems, ...converted.problems, ...context.problems],
    warnings: [...resolved.warnings, ...context.warnings],
  };
}

function resolvePaths(config: JsonObject, directory: string): void {
  for (const path of relativePaths) {
    const value = getPath(config, path);
    if (typeof value === "string" && value !== "" && !posix.isAbsolute(value)) {
      setPath(config, path, posix.join(directory, value).replace(/(.)\/$/, "$1"));
    }
  }
}

function deprecations(parsed: ParsedCommandLine): string[] {
  const old = parsed.changed.map(flagNamed).filter((flag) => flag?.deprecated === true);
  const fields = old.filter((flag) => flag?.field !== undefined).map((flag) => `--${flag?.name} (${flag?.field})`);
  const others = old.filter((flag) => flag?.field === undefined).map((flag) => `--${flag?.name}`);
  const warnings: string[] = [];
  if (fields.length > 0) {
    warnings.push(`deprecated flags; set these fields in the file of --config instead: ${fields.join(", ")}`);
  }
  if (others.length > 0) warnings.push(`deprecated flags, which a later release removes: ${others.join(", ")}`);
  return warnings;
}

function setFields(files: readonly ConfigFile[], parsed: ParsedCommandLine): string[] {
  const set = new Set<string>();
  for (const field of allFields) {
    if (files.some((file) => (getPath(file.value, field.path) ?? null) !== null)) set.add(field.path);
  }
  for (const name of parsed.changed) {
    const path = flagNamed(name)?.field;
    if (path !== undefined) set.add(path);
  }
  return allFields.map((field) => field.path).filter((path) => set.has(path));
}

/** The fields that were set although the agent does not, or only partly, act on them; to be logged at start. */
export function setButNotActedOn(loaded: Pick<LoadedConfig, "setFields">): { no: string[]; partly: string[] } {
  return {
    no: loaded.setFields.filter((path) => isActedOn(path) === false),
    partly: loaded.setFields.filter((path) => isActedOn(path) === "partly"),
  };
}
