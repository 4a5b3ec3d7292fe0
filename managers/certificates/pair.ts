import { createPrivateKey, X509Certificate } from "node:crypto";
import { KubeletError, messageOf } from "../../mod/base/errors.ts";
import { certificatesIn, privateKeyIn } from "../../mod/base/pem.ts";

/** A certificate with its chain and its key, as PEM. */
export interface CertificatePair {
  readonly cert: string;
  readonly key: string;
  /** Milliseconds since the epoch. */
  readonly notBefore: number;
  readonly notAfter: number;
  /** The leaf's names, as `DNS:a` and `IP:1.2.3.4`, sorted. */
  readonly names: readonly string[];
  /** As in the certificate, one attribute a line. */
  readonly subject: string;
}

/**
 * Reads a certificate and its key from PEM text; both may be in one text. Throws BadConfig, with `what` in the message,
 * when one is missing, or the two don't belong together.
 */
export function readPair(certText: string, keyText: string, what: string): CertificatePair {
  const bad = (why: string, cause?: unknown) => new KubeletError("BadConfig", `${what}: ${why}`, { cause });
  const chain = certificatesIn(certText);
  const key = privateKeyIn(keyText);
  const [first] = chain;
  if (first === undefined) throw bad("there is no certificate in it");
  if (key === undefined) throw bad("there is no private key in it");
  let leaf: X509Certificate, fits: boolean;
  try {
    leaf = new X509Certificate(first);
    fits = leaf.checkPrivateKey(createPrivateKey(key));
  } catch (thrown) {
    throw bad(messageOf(thrown), thrown);
  }
  if (!fits) throw bad("the private key does not belong to the certificate");
  return {
    cert: `${chain.join("\n")}\n`,
    key: `${key}\n`,
    notBefore: Date.parse(leaf.validFrom),
    notAfter: Date.parse(leaf.validTo),
    names: namesOf(leaf.subjectAltName ?? ""),
    subject: leaf.subject,
  };
}

/** When the first certificate of a PEM text ends, milliseconds since the epoch; undefined when there is none to be read. */
export function endOf(text: string): number | undefined {
  const [first] = certificatesIn(text);
  if (first === undefined) return undefined;
  try {
    return Date.parse(new X509Certificate(first).validTo);
  } catch {
    // Whoever asks wants to know only whether there is one.
    return undefined;
  }
}

/** `DNS:a, IP Address:1.2.3.4` as names, sorted. */
function namesOf(text: string): string[] {
  return text.split(",").map((part) => part.trim().replace(/^IP Address:/, "IP:")).filter((part) => part !== "").sort();
}
