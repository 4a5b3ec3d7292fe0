import { generateKeyPair, type KeyObject, sign } from "node:crypto";
import { promisify } from "node:util";
import { concatBytes } from "../../mod/base/bytes.ts";
import { KubeletError } from "../../mod/base/errors.ts";

/** A private key, and the request that proves that it is had. */
export interface KeyAndProof {
  /** PKCS#8 as PEM. */
  readonly keyPem: string;
  /** A PKCS#10 request without name and attributes, DER. */
  readonly request: Uint8Array;
}

interface KeyKind {
  readonly rsaBits?: number;
  readonly curve?: string;
  /** Of signatures; none where the key's kind says it. */
  readonly digest: string | undefined;
  /** AlgorithmIdentifier of signatures, DER in hexadecimal. */
  readonly algorithm: string;
}

const rsaSha256 = "300d06092a864886f70d01010b0500";

/** The kinds that a pod may ask for (PodCertificateProjection.keyType). */
const kinds: ReadonlyMap<string, KeyKind> = new Map([
  ["RSA3072", { rsaBits: 3072, digest: "sha256", algorithm: rsaSha256 }],
  ["RSA4096", { rsaBits: 4096, digest: "sha256", algorithm: rsaSha256 }],
  ["ECDSAP256", { curve: "P-256", digest: "sha256", algorithm: "300a06082a8648ce3d040302" }],
  ["ECDSAP384", { curve: "P-384", digest: "sha384", algorithm: "300a06082a8648ce3d040303" }],
  ["ECDSAP521", { curve: "P-521", digest: "sha512", algorithm: "300a06082a8648ce3d040304" }],
  ["ED25519", { digest: undefined, algorithm: "300506032b6570" }],
]);

const generate = promisify(generateKeyPair);

/** Makes a new key of a kind and its proof. Rejects for a kind that there is none of. */
export async function makeKeyAndProof(keyType: string): Promise<KeyAndProof> {
  const kind = kinds.get(keyType);
  if (!kind) {
    throw new KubeletError(
      "BadPod",
      `unknown key type ${JSON.stringify(keyType)}; use ${[...kinds.keys()].join(", ")}`,
    );
  }
  const { publicKey, privateKey } = await keyPair(kind);
  const spki = new Uint8Array(publicKey.export({ type: "spki", format: "der" }));
  // Version 0, an empty name, the key, no attributes.
  const info = der(0x30, Uint8Array.of(2, 1, 0), der(0x30), spki, der(0xa0));
  const signature = new Uint8Array(sign(kind.digest, info, privateKey));
  const algorithm = Uint8Array.fromHex(kind.algorithm);
  const request = der(0x30, info, algorithm, der(0x03, Uint8Array.of(0), signature));
  return { keyPem: String(privateKey.export({ type: "pkcs8", format: "pem" })), request };
}

function keyPair({ rsaBits, curve }: KeyKind): Promise<{ publicKey: KeyObject; privateKey: KeyObject }> {
  if (rsaBits !== undefined) return generate("rsa", { modulusLength: rsaBits });
  return curve === undefined ? generate("ed25519") : generate("ec", { namedCurve: curve });
}

/** One element of DER: a tag, the length of all parts, the parts. */
function der(tag: number, ...parts: Uint8Array[]): Uint8Array {
  const length = parts.reduce((sum, part) => sum + part.length, 0);
  const digits: number[] = [];
  for (let left = length; left > 0; left >>= 8) digits.unshift(left & 0xff);
  const head = length < 0x80 ? [tag, length] : [tag, 0x80 | digits.length, ...digits];
  return concatBytes([Uint8Array.from(head), ...parts]);
}
