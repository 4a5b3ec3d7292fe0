import { createHash } from "node:crypto";
import { KubeletError } from "../../../mod/base/errors.ts";

/** A user of a registry, as configuration files of container tools tell it. */
export interface RegistryUser {
  readonly username: string;
  readonly password: string;
  readonly email: string;
}

/** Users by the registry, or part of one, that they are for. */
export type RegistryUsers = ReadonlyMap<string, RegistryUser>;

function isObject(value: unknown): value is Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

/** What is wrong is said without the text itself: it holds credentials. */
function refuse(what: string, why: string): never {
  throw new KubeletError("Image", `${what}: ${why}`);
}

function parsed(text: string, what: string): Readonly<Record<string, unknown>> {
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch {
    refuse(what, "it is no JSON");
  }
  return isObject(value) ? value : refuse(what, "it is no JSON object");
}

function stringIn(entry: Readonly<Record<string, unknown>>, field: string, what: string): string {
  const value = entry[field] ?? "";
  return typeof value === "string" ? value : refuse(what, `${field} is no text`);
}

/** Takes `base64(user:password)` apart. */
function userOf(auth: string, what: string): { username: string; password: string } {
  let text: string;
  try {
    text = new TextDecoder().decode(Uint8Array.fromBase64(auth));
  } catch {
    refuse(what, "auth is no base64");
  }
  const colon = text.indexOf(":");
  if (colon < 0) refuse(what, "unable to parse auth field, must be formatted as base64(username:password)");
  return { username: text.slice(0, colon), password: text.slice(colon + 1) };
}

function users(auths: unknown, what: string): RegistryUsers {
  if (auths === undefined || auths === null) return new Map();
  if (!isObject(auths)) refuse(what, "auths is no JSON object");
  return new Map(
    Object.entries(auths).map(([registry, entry]): [string, RegistryUser] => {
      const where = `${what}, registry ${JSON.stringify(registry.slice(0, 200))}`;
      if (!isObject(entry)) refuse(where, "the entry is no JSON object");
      const auth = stringIn(entry, "auth", where);
      const named = { username: stringIn(entry, "username", where), password: stringIn(entry, "password", where) };
      return [registry, { ...(auth === "" ? named : userOf(auth, where)), email: stringIn(entry, "email", where) }];
    }),
  );
}

/** Reads a `config.json` (Secret type kubernetes.io/dockerconfigjson). Throws code Image, without the text. */
export function readDockerConfigJson(text: string, what: string): RegistryUsers {
  return users(parsed(text, what)["auths"], what);
}

/** Reads a `.dockercfg` (Secret type kubernetes.io/dockercfg). Throws code Image, without the text. */
export function readDockercfg(text: string, what: string): RegistryUsers {
  return users(parsed(text, what), what);
}

/** The credential's digest as pull records hold it: SHA-256 of its JSON, in hexadecimal. */
export function credentialHash({ username, password, email }: RegistryUser): string {
  const fields = { username, password, email };
  const json = JSON.stringify(Object.fromEntries(Object.entries(fields).filter(([, value]) => value !== "")))
    .replace(/[<>&\u2028\u2029]/g, (c) => `\\u${c.charCodeAt(0).toString(16).padStart(4, "0")}`);
  return createHash("sha256").update(json).digest("hex");
}
