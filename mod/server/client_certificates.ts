import { X509Certificate } from "node:crypto";
import type { TLSSocket } from "node:tls";
import { KubeletError, messageOf } from "../base/errors.ts";
import { certificatesIn } from "../base/pem.ts";
import type { PeerCertificate } from "./authentication.ts";

/** Splits a PEM bundle into certificates. Throws BadConfig, naming `what`, when there is none or one is damaged. */
export function readCertificates(pem: string, what: string): X509Certificate[] {
  const blocks = certificatesIn(pem);
  if (blocks.length === 0) throw new KubeletError("BadConfig", `${what} holds no PEM certificate`);
  return blocks.map((block, index) => {
    try {
      return new X509Certificate(block);
    } catch (cause) {
      throw new KubeletError("BadConfig", `${what}: certificate ${index + 1} is damaged: ${messageOf(cause)}`, {
        cause,
      });
    }
  });
}

function listOf(value: unknown): string[] {
  if (Array.isArray(value)) return value.filter((each) => typeof each === "string");
  return typeof value === "string" ? [value] : [];
}

/**
 * Tells what certificate a client showed and whether it counts. The handshake verifies it against the client CAs of its
 * moment; connections older than the CAs now in force, and sessions that were resumed (for which the library remembers
 * the old verdict), are judged again against those in force.
 */
export class ClientCertificates {
  #authorities: readonly X509Certificate[] = [];
  #generation = 0;
  /** Fingerprints that a full handshake verified since the CAs last changed; for chains with intermediates. */
  #verified = new Set<string>();
  readonly #sockets = new WeakMap<TLSSocket, { generation: number; peer: PeerCertificate | undefined }>();

  /** Sets the CAs in force. */
  setAuthorities(authorities: readonly X509Certificate[]): void {
    this.#authorities = authorities;
    this.#generation++;
    this.#verified = new Set();
  }

  /** Notes a connection right after its handshake. */
  connected(socket: TLSSocket): void {
    this.#sockets.set(socket, { generation: this.#generation, peer: this.#judge(socket, !socket.isSessionReused()) });
  }

  /** The certificate of a connection as it counts now; undefined when the client showed none. */
  of(socket: TLSSocket): PeerCertificate | undefined {
    const known = this.#sockets.get(socket);
    if (known?.generation === this.#generation) return known.peer;
    const peer = this.#judge(socket, false);
    this.#sockets.set(socket, { generation: this.#generation, peer });
    return peer;
  }

  #judge(socket: TLSSocket, fresh: boolean): PeerCertificate | undefined {
    const certificate = socket.getPeerCertificate();
    if (!certificate?.raw) return undefined;
    const subject: Record<string, unknown> = { ...certificate.subject };
    const leaf = new X509Certificate(certificate.raw);
    let verified = socket.authorized === true;
    if (verified && fresh) {
      if (this.#verified.size >= 10_000) this.#verified.clear();
      this.#verified.add(leaf.fingerprint256);
    } else if (verified) {
      verified = this.#verified.has(leaf.fingerprint256) || this.#authorities.some((ca) => issued(ca, leaf));
    }
    return {
      verified,
      names: listOf(subject.CN),
      organizations: listOf(subject.O),
      notAfter: Date.parse(certificate.valid_to),
    };
  }
}

function issued(ca: X509Certificate, leaf: X509Certificate): boolean {
  try {
    return leaf.checkIssued(ca) && leaf.verify(ca.publicKey);
  } catch {
    return false; // a key of a kind that the library does not know vouches for nothing
  }
}
