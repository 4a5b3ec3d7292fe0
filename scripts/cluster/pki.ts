import "reflect-metadata";
import * as x509 from "@peculiar/x509";
import { isIP } from "node:net";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" } as const;
const dayMs = 86_400_000;

/** A certificate with its key, both PEM. */
export interface KeyPair {
  readonly cert: string;
  readonly key: string;
}

/** Whom a certificate is for. */
export interface Subject {
  readonly name: string;
  readonly groups?: readonly string[];
  /** IP addresses and DNS names. */
  readonly hosts?: readonly string[];
  /** Milliseconds from now on; negative for one that has expired. Thirty days when not given. */
  readonly lifetimeMs?: number;
}

/** A certificate authority of a test's cluster, kept in memory. */
export class TestCa {
  readonly #keys: CryptoKeyPair;
  readonly #certificate: x509.X509Certificate;

  private constructor(keys: CryptoKeyPair, certificate: x509.X509Certificate) {
    this.#keys = keys;
    this.#certificate = certificate;
  }

  static async create(name: string): Promise<TestCa> {
    const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
    const subject = new x509.Name([{ CN: [{ utf8String: name }] }]);
    const certificate = await x509.X509CertificateGenerator.create({
      subject,
      issuer: subject,
      publicKey: keys.publicKey,
      signingKey: keys.privateKey,
      signingAlgorithm: algorithm,
      ...validity(30 * dayMs),
      extensions: [
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.keyCertSign | x509.KeyUsageFlags.digitalSignature, true),
        new x509.BasicConstraintsExtension(true, undefined, true),
        await x509.SubjectKeyIdentifierExtension.create(keys.publicKey),
      ],
    });
    return new TestCa(keys, certificate);
  }

  /** The authority's own certificate, PEM. */
  get cert(): string {
    return pem(this.#certificate);
  }

  /** The authority's key, PEM (PKCS #8). */
  async key(): Promise<string> {
    return await keyPem(this.#keys.privateKey);
  }

  /** Issues a certificate for clients and servers. */
  async issue({ name, groups = [], hosts = [], lifetimeMs = 30 * dayMs }: Subject): Promise<KeyPair> {
    const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
    const certificate = await x509.X509CertificateGenerator.create({
      subject: new x509.Name([
        ...groups.map((group) => ({ O: [{ utf8String: group }] })),
        { CN: [{ utf8String: name }] },
      ]),
      issuer: this.#certificate.subjectName,
      publicKey: keys.publicKey,
      signingKey: this.#keys.privateKey,
      signingAlgorithm: algorithm,
      ...validity(lifetimeMs),
      extensions: [
        new x509.KeyUsagesExtension(x509.KeyUsageFlags.digitalSignature, true),
        new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.clientAuth, x509.ExtendedKeyUsage.serverAuth]),
        new x509.BasicConstraintsExtension(false, undefined, true),
        await x509.AuthorityKeyIdentifierExtension.create(this.#keys.publicKey),
        ...(hosts.length === 0 ? [] : [
          new x509.SubjectAlternativeNameExtension(
            hosts.map((host) => ({ type: isIP(host) ? "ip" as const : "dns" as const, value: host })),
          ),
        ]),
      ],
    });
    return { cert: pem(certificate), key: await keyPem(keys.privateKey) };
  }
}

/** A key pair for signing tokens, PEM. */
export async function tokenKeys(): Promise<{ readonly publicKey: string; readonly privateKey: string }> {
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const spki = await crypto.subtle.exportKey("spki", keys.publicKey);
  return {
    publicKey: x509.PemConverter.encode(spki, "PUBLIC KEY"),
    privateKey: await keyPem(keys.privateKey),
  };
}

/** From an hour ago on: clocks of a test may stand back. */
function validity(lifetimeMs: number): { notBefore: Date; notAfter: Date } {
  const now = Date.now();
  const notAfter = now + lifetimeMs;
  return { notBefore: new Date(Math.min(now, notAfter) - 3_600_000), notAfter: new Date(notAfter) };
}

function pem(certificate: x509.X509Certificate): string {
  return `${certificate.toString("pem")}\n`;
}

async function keyPem(key: CryptoKey): Promise<string> {
  return `${x509.PemConverter.encode(await crypto.subtle.exportKey("pkcs8", key), "PRIVATE KEY")}\n`;
}
