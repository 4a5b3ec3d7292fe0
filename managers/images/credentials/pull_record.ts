import type { Coordinates, PullCredential } from "./types.ts";

/** A Secret with which an image was pulled. */
export interface SecretUse extends Coordinates {
  readonly credentialHash: string;
}

/** Whose credentials have pulled an image. */
export interface Credentials {
  /** Pulled without credentials, or with the node's own: any pod may use it. */
  readonly anyPod: boolean;
  readonly secrets: readonly SecretUse[];
  readonly accounts: readonly Coordinates[];
}

/** What is known of one image of the runtime: per name under which pods asked for it. */
export interface PullRecord {
  readonly ref: string;
  /** Milliseconds since the epoch. */
  readonly updatedAt: number;
  readonly credentials: ReadonlyMap<string, Credentials>;
}

/** From so many Secrets on, an image's record learns no more while pods are only looked at. */
const learnLimit = 100;

/** A pull's credential as a record holds it. */
export function credentialsOf(credential: PullCredential | undefined): Credentials {
  const source = credential?.source;
  if (!credential || !source) return { anyPod: true, secrets: [], accounts: [] };
  const { uid, namespace, name } = source;
  return source.kind === "secret"
    ? { anyPod: false, secrets: [{ uid, namespace, name, credentialHash: credential.hash }], accounts: [] }
    : { anyPod: false, secrets: [], accounts: [{ uid, namespace, name }] };
}

function same(a: Coordinates, b: Coordinates): boolean {
  return a.uid === b.uid && a.namespace === b.namespace && a.name === b.name;
}

/**
 * Whether one of a pod's own credentials has pulled the image before: the same credential, the same Secret with a newer
 * one, or the same service account. `learn` is a Secret that the record should know from now on.
 */
export function allows(
  known: Credentials,
  own: readonly PullCredential[],
): { readonly allowed: boolean; readonly learn?: PullCredential } {
  const room = known.secrets.length < learnLimit;
  for (const credential of own) {
    const { source, hash } = credential;
    if (source?.kind !== "secret") continue;
    for (const secret of known.secrets) {
      const sameSecret = same(secret, source);
      const sameHash = hash !== "" && hash === secret.credentialHash;
      if (sameHash) return { allowed: true, ...(!sameSecret && room ? { learn: credential } : {}) };
      if (sameSecret && room) return { allowed: true, learn: credential };
    }
  }
  // A pod has one service account: the first that a credential names.
  const account = own.find((c) => c.source?.kind === "serviceAccount")?.source;
  return { allowed: account !== undefined && known.accounts.some((one) => same(one, account)) };
}

function inOrder<T extends Coordinates>(list: readonly T[]): T[] {
  const key = ({ namespace, name, uid }: Coordinates) => `${namespace}\0${name}\0${uid}`;
  return list.toSorted((a, b) => key(a) < key(b) ? -1 : 1);
}

function mergedCredentials(before: Credentials, added: Credentials): Credentials {
  if (before.anyPod) return before;
  if (added.anyPod) return added;
  const secrets = added.secrets.filter((s) =>
    !before.secrets.some((b) => same(b, s) && b.credentialHash === s.credentialHash)
  );
  const accounts = added.accounts.filter((a) => !before.accounts.some((b) => same(a, b)));
  if (secrets.length === 0 && accounts.length === 0) return before;
  const others = before.secrets.filter((b) => !secrets.some((s) => same(s, b)));
  return {
    anyPod: false,
    secrets: inOrder([...others, ...secrets]),
    accounts: inOrder([...before.accounts, ...accounts]),
  };
}

/** A record with credentials added, or `before` itself when it knew them. Without any, only that the image was pulled. */
export function merged(
  before: PullRecord | undefined,
  { ref, bareName, added, now }: { ref: string; bareName: string; added: Credentials | undefined; now: number },
): PullRecord {
  if (before && !added) return before;
  const known = before?.credentials.get(bareName);
  const result = added && (known ? mergedCredentials(known, added) : added);
  if (before && result === known) return before;
  const credentials = new Map(before?.credentials);
  if (result) credentials.set(bareName, result);
  return { ref, updatedAt: now, credentials };
}

/** The record as its file holds it, without kind and version (features.md section 12). */
export function writtenRecord({ ref, updatedAt, credentials }: PullRecord): Record<string, unknown> {
  const entry = ({ anyPod, secrets, accounts }: Credentials) => ({
    ...(secrets.length > 0
      ? {
        kubernetesSecrets: secrets.map(({ uid, namespace, name, credentialHash }) => ({
          uid,
          namespace,
          name,
          credentialHash,
        })),
      }
      : {}),
    ...(accounts.length > 0
      ? { kubernetesServiceAccounts: accounts.map(({ uid, namespace, name }) => ({ uid, namespace, name })) }
      : {}),
    ...(anyPod ? { nodePodsAccessible: true } : {}),
  });
  return {
    lastUpdatedTime: new Date(updatedAt).toISOString().replace(/\.\d+Z$/, "Z"),
    imageRef: ref,
    ...(credentials.size > 0
      ? { credentialMapping: Object.fromEntries([...credentials].map(([name, one]) => [name, entry(one)])) }
      : {}),
  };
}

type Fields = Readonly<Record<string, unknown>>;

const fields = (value: unknown): Fields | undefined =>
  typeof value === "object" && value !== null && !Array.isArray(value) ? value as Fields : undefined;
const text = (value: unknown): string => typeof value === "string" ? value : "";
const list = (value: unknown): Fields[] =>
  (Array.isArray(value) ? value : []).map(fields).filter((one) => one !== undefined);
const coordinates = ({ uid, namespace, name }: Fields): Coordinates => ({
  uid: text(uid),
  namespace: text(namespace),
  name: text(name),
});

/** Reads a record's file; undefined for what is none. */
export function readRecord(value: unknown): PullRecord | undefined {
  const record = fields(value);
  const ref = text(record?.["imageRef"]);
  if (!record || record["kind"] !== "ImagePulledRecord" || ref === "") return undefined;
  const credentials = new Map<string, Credentials>();
  for (const [name, one] of Object.entries(fields(record["credentialMapping"]) ?? {})) {
    const entry = fields(one);
    if (!entry) continue;
    credentials.set(name, {
      anyPod: entry["nodePodsAccessible"] === true,
      secrets: list(entry["kubernetesSecrets"]).map((s) => ({
        ...coordinates(s),
        credentialHash: text(s["credentialHash"]),
      })),
      accounts: list(entry["kubernetesServiceAccounts"]).map(coordinates),
    });
  }
  const updatedAt = Date.parse(text(record["lastUpdatedTime"]));
  return { ref, updatedAt: Number.isNaN(updatedAt) ? 0 : updatedAt, credentials };
}
