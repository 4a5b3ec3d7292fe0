import type { Container, EnvVar, Volume } from "../types.ts";
import { checkFieldRef, checkResourceRef, envFields } from "./field_refs.ts";
import { checkLabel, checkSubdomain, isEnvName } from "./names.ts";
import { checkNoBacksteps } from "./paths.ts";
import type { Problems } from "./problem.ts";

const envRemedy = "use printable ASCII characters other than '='";
const sources = ["fieldRef", "resourceFieldRef", "configMapKeyRef", "secretKeyRef", "fileKeyRef"] as const;

/** Checks a container's variables, and that files of variables lie on emptyDir volumes. */
export function checkEnv(p: Problems, path: string, env: Container["env"], volumes: readonly Volume[]): void {
  env?.forEach((variable, i) => {
    const at = `${path}[${i}]`;
    if (!variable.name) p.required(`${at}.name`, envRemedy);
    else if (!isEnvName(variable.name)) p.add(`${at}.name`, variable.name, "is no variable name", envRemedy);
    if (variable.valueFrom) checkValueFrom(p, at, variable, volumes);
  });
}

function checkValueFrom(p: Problems, at: string, variable: EnvVar, volumes: readonly Volume[]): void {
  const from = variable.valueFrom ?? {};
  const path = `${at}.valueFrom`;
  if (from.fieldRef) checkFieldRef(p, `${path}.fieldRef`, from.fieldRef, envFields);
  if (from.resourceFieldRef) checkResourceRef(p, `${path}.resourceFieldRef`, from.resourceFieldRef, false);
  for (const field of ["configMapKeyRef", "secretKeyRef"] as const) {
    const ref = from[field];
    if (!ref) continue;
    checkSubdomain(p, `${path}.${field}.name`, ref.name);
    checkKey(p, `${path}.${field}.key`, ref.key);
  }
  if (from.fileKeyRef) checkFileKey(p, `${path}.fileKeyRef`, from.fileKeyRef, volumes);
  const given = sources.filter((field) => from[field] !== undefined);
  const one = `use exactly one of ${sources.join(", ")}`;
  if (given.length === 0) p.add(path, undefined, "names no source", one);
  else if (variable.value) p.add(path, undefined, "stands beside a value", "use either value or valueFrom");
  else if (given.length > 1) p.add(path, undefined, `names ${given.length} sources`, one);
}

function checkKey(p: Problems, path: string, key: string): void {
  if (!key) p.required(path, "name the key");
  else if (key.length > 253 || !/^[-._a-zA-Z0-9]+$/.test(key) || key === "." || key === ".." || key.startsWith("..")) {
    p.add(path, key, "is no key", "use at most 253 letters, digits, '-', '_', '.', not beginning with '..'");
  }
}

function checkFileKey(
  p: Problems,
  path: string,
  ref: { key: string; volumeName: string; path: string },
  volumes: readonly Volume[],
): void {
  if (!ref.key) p.required(`${path}.key`, envRemedy);
  else if (!isEnvName(ref.key)) p.add(`${path}.key`, ref.key, "is no variable name", envRemedy);
  checkLabel(p, `${path}.volumeName`, ref.volumeName);
  if (!ref.path) p.required(`${path}.path`, "name the file below the volume");
  else checkNoBacksteps(p, `${path}.path`, ref.path);
  const volume = volumes.find(({ name }) => name === ref.volumeName);
  const remedy = "name an emptyDir volume of the pod";
  if (!volume) p.add(`${path}.volumeName`, ref.volumeName, "is no volume of the pod", remedy);
  else if (!volume.emptyDir) p.add(`${path}.volumeName`, ref.volumeName, "is no emptyDir volume", remedy);
}

/** Checks the sources of whole sets of variables. */
export function checkEnvFrom(p: Problems, path: string, envFrom: Container["envFrom"]): void {
  envFrom?.forEach((from, i) => {
    const at = `${path}[${i}]`;
    if (from.prefix && !isEnvName(from.prefix)) p.add(`${at}.prefix`, from.prefix, "is no variable name", envRemedy);
    if (from.configMapRef) checkSubdomain(p, `${at}.configMapRef.name`, from.configMapRef.name);
    if (from.secretRef) checkSubdomain(p, `${at}.secretRef.name`, from.secretRef.name);
    const given = [from.configMapRef, from.secretRef].filter((ref) => ref !== undefined).length;
    if (given !== 1) p.add(at, undefined, `names ${given} sources`, "use exactly one of configMapRef, secretRef");
  });
}
