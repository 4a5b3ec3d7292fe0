import { KubeletError } from "../base/errors.ts";
import type { Host } from "../base/host.ts";
import type { Logger } from "../base/log.ts";
import { isIP } from "node:net";

/** A year, and an hour for clocks that are behind. */
const lifetimeMs = 365 * 24 * 3_600_000;
const skewMs = 3_600_000;

/** Makes a certificate for a host, signed by a CA that is made for it and forgotten; PEM, leaf first. */
export async function makeSelfSigned(hostname: string, now: number): Promise<{ cert: string; key: string }> {
  // Loaded here: it costs 0.16 s and 20 MiB, and is needed once in a node's life.
  await import("reflect-metadata");
  const x509 = await import("@peculiar/x509");
  const algorithm = {
    name: "RSASSA-PKCS1-v1_5",
    hash: "SHA-256",
    publicExponent: new Uint8Array([1, 0, 1]),
    modulusLength: 2048,
  };
  const caKeys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const seconds = Math.floor(now / 1000);
  const dates = { notBefore: new Date(now - skewMs), notAfter: new Date(now - skewMs + lifetimeMs) };
  // The subject is built of typed parts, so that a hostname cannot smuggle in another attribute.
  const subject = (cn: string) => new x509.Name([{ CN: [{ utf8String: cn }] }]);
  const { KeyUsageFlags } = x509;
  const ca = await x509.X509CertificateGenerator.create({
    subject: subject(`${hostname}-ca@${seconds}`),
    issuer: subject(`${hostname}-ca@${seconds}`),
    publicKey: caKeys.publicKey,
    signingKey: caKeys.privateKey,
    signingAlgorithm: algorithm,
    ...dates,
    extensions: [
      new x509.KeyUsagesExtension(
        KeyUsageFlags.keyEncipherment | KeyUsageFlags.digitalSignature | KeyUsageFlags.keyCertSign,
        true,
      ),
      new x509.BasicConstraintsExtension(true, undefined, true),
      await x509.SubjectKeyIdentifierExtension.create(caKeys.publicKey),
    ],
  });
  const leaf = await x509.X509CertificateGenerator.create({
    subject: subject(`${hostname}@${seconds}`),
    issuer: ca.subjectName,
    publicKey: keys.publicKey,
    signingKey: caKeys.privateKey,
    signingAlgorithm: algorithm,
    ...dates,
    extensions: [
      new x509.KeyUsagesExtension(KeyUsageFlags.keyEncipherment | KeyUsageFlags.digitalSignature, true),
      new x509.ExtendedKeyUsageExtension([x509.ExtendedKeyUsage.serverAuth]),
      new x509.BasicConstraintsExtension(false, undefined, true),
      await x509.AuthorityKeyIdentifierExtension.create(caKeys.publicKey),
      new x509.SubjectAlternativeNameExtension([{ type: isIP(hostname) ? "ip" : "dns", value: hostname }]),
    ],
  });
  const pkcs8 = await crypto.subtle.exportKey("pkcs8", keys.privateKey);
  return {
    cert: `${leaf.toString("pem")}\n${ca.toString("pem")}\n`,
    key: `${x509.PemConverter.encode(pkcs8, "PRIVATE KEY")}\n`,
  };
}

/**
 * The paths of `<certDir>/kubelet.crt` and `kubelet.key`; both are made when the key is not there
 * (runtime-contract.md section 22). Rejects with BadConfig when only the key is: it may be the operator's.
 */
export async function selfSignedFiles(options: {
  certDir: string;
  hostname: string;
  host: Host;
  now: number;
  log: Logger;
}): Promise<{ certFile: string; keyFile: string }> {
  const { certDir, hostname, host, now, log } = options;
  const certFile = `${certDir}/kubelet.crt`, keyFile = `${certDir}/kubelet.key`;
  const [cert, key] = [await host.stat(certFile), await host.stat(keyFile)];
  if (cert && key) return { certFile, keyFile };
  if (key) {
    throw new KubeletError(
      "BadConfig",
      `${certFile} and ${keyFile} must be there as a pair, but ${certFile} is missing; ` +
        `put it back, or remove ${keyFile} to have a new pair made`,
    );
  }
  if (cert) log.warn("the key of the serving certificate is missing; a new pair is made", { certFile, keyFile });
  const made = await makeSelfSigned(hostname, now);
  await host.mkdir(certDir, { mode: 0o755 });
  // The key last: an end between the two leaves a certificate that is of no use, and is made anew at the next start.
  await host.write(certFile, made.cert, { mode: 0o644, atomic: true });
  await host.write(keyFile, made.key, { mode: 0o600, atomic: true });
  log.info("made a self-signed serving certificate", { certFile, hostname });
  return { certFile, keyFile };
}
