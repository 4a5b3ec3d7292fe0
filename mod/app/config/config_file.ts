import { KubeletError, messageOf } from "../../base/errors.ts";
import type { Host } from "../../base/host.ts";
import { isMissing } from "../../base/host_error.ts";
import { parseText, type Tree } from "../../kube/yaml_tree.ts";
import { badConfig } from "./command_line.ts";
import { decodeObject } from "./decode.ts";
import type { JsonObject } from "./json.ts";
import { apiVersion, kind } from "./v1beta1.ts";

/** Bytes of a configuration file; a real one has a few thousand. */
const MAX_BYTES = 1024 * 1024;
const MAX_DEPTH = 32;
/** Values of a configuration file; a real one has a few hundred. */
const MAX_NODES = 10_000;
/** Levels of sub-directories of --config-dir. */
const MAX_DIRECTORY_DEPTH = 32;

/** A file that was read. */
export interface ConfigFile {
  readonly path: string;
  /** Its fields, without apiVersion and kind; in a drop-in null means "delete". */
  readonly value: JsonObject;
  readonly warnings: readonly string[];
}

/**
 * Reads one KubeletConfiguration (contract config.md section 1): unknown and doubled fields are warnings, a wrong type,
 * a wrong apiVersion or kind, an empty, huge or hostile text is a KubeletError (BadConfig) that names the file.
 */
export async function readConfigFile(host: Host, path: string, options: { dropIn: boolean }): Promise<ConfigFile> {
  const what = options.dropIn ? `drop-in file ${path}` : `configuration file ${path}`;
  let bytes: Uint8Array;
  try {
    bytes = await host.readBytes(path, MAX_BYTES + 1);
  } catch (thrown) {
    const remedy = options.dropIn ? "check --config-dir" : "check --config";
    const why = isMissing(thrown) ? "there is no such file" : messageOf(thrown);
    throw new KubeletError("BadConfig", `${what} can't be read: ${why}; ${remedy}`, { cause: thrown });
  }
  const { tree, warnings } = parseText(bytes, {
    what,
    code: "BadConfig",
    limits: { bytes: MAX_BYTES, depth: MAX_DEPTH, nodes: MAX_NODES },
  });
  checkKind(tree, what);
  const decoded = decodeObject(tree, kind, { keepNulls: options.dropIn });
  if (decoded.wrong.length > 0) throw badConfig(`${what} has`, decoded.wrong);
  delete decoded.value.apiVersion;
  delete decoded.value.kind;
  const found = warnings.map((warning) => `${what}: ${warning}`);
  if (decoded.unknown.length > 0) {
    found.push(`${what}: unknown fields are ignored: ${decoded.unknown.slice(0, 50).join("; ")}`);
  }
  return { path, value: decoded.value, warnings: found };
}

function checkKind(tree: Tree, what: string): void {
  if (!(tree instanceof Map)) {
    throw new KubeletError(
      "BadConfig",
      `${what} holds no object; begin it with apiVersion: ${apiVersion} and kind: ${kind}`,
    );
  }
  const map: ReadonlyMap<string, Tree> = tree;
  const found = { apiVersion: map.get("apiVersion") ?? "", kind: map.get("kind") ?? "" };
  if (found.apiVersion === apiVersion && found.kind === kind) return;
  const shown = JSON.stringify(found, (_, value) => typeof value === "bigint" ? `${value}` : value).slice(0, 200);
  throw new KubeletError("BadConfig", `${what} has ${shown}; it must have apiVersion: ${apiVersion} and kind: ${kind}`);
}

/** The *.conf files below a directory in lexical walk order, sub-directories included, and the files passed over. */
export async function findDropIns(host: Host, directory: string): Promise<{ files: string[]; skipped: string[] }> {
  const files: string[] = [];
  const skipped: string[] = [];
  const walk = async (path: string, depth: number): Promise<void> => {
    if (depth > MAX_DIRECTORY_DEPTH) {
      throw new KubeletError("BadConfig", `--config-dir: ${path} is more than ${MAX_DIRECTORY_DEPTH} directories deep`);
    }
    const entries = await host.readDir(path);
    entries.sort((a, b) => a.name < b.name ? -1 : a.name > b.name ? 1 : 0);
    for (const entry of entries) {
      const at = `${path.replace(/\/$/, "")}/${entry.name}`;
      if (entry.kind === "directory") await walk(at, depth + 1);
      else (entry.name.endsWith(".conf") ? files : skipped).push(at);
    }
  };
  try {
    await walk(directory, 0);
  } catch (thrown) {
    if (thrown instanceof KubeletError && thrown.code === "BadConfig") throw thrown;
    throw new KubeletError(
      "BadConfig",
      `--config-dir ${directory} can't be read: ${messageOf(thrown)}; make it or drop the flag`,
      {
        cause: thrown,
      },
    );
  }
  return { files, skipped };
}
