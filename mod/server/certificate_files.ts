import { createPrivateKey, type X509Certificate } from "node:crypto";
import { KubeletError, messageOf } from "../base/errors.ts";
import type { Clock } from "../base/clock.ts";
import type { Host } from "../base/host.ts";
import type { Logger } from "../base/log.ts";
import { privateKeyIn } from "../base/pem.ts";
import { readCertificates } from "./client_certificates.ts";

/** What the TLS server serves and trusts. */
export interface TlsMaterial {
  readonly cert: string;
  readonly key: string;
  /** PEM and parsed; undefined without a client CA file. */
  readonly clientCA: string | undefined;
  readonly authorities: readonly X509Certificate[];
}

/** How often the files are looked at, milliseconds. */
const lookMs = 5000;

/** Serving certificate, key and client CAs from files, read again when they change (features.md I17, section 22). */
export class CertificateFiles {
  readonly #o: { certFile: string; keyFile: string; clientCAFile: string; host: Host; clock: Clock; log: Logger };
  #stamp = "";
  #problem = "";

  /** @param options `clientCAFile` empty: no client CA */
  constructor(
    options: { certFile: string; keyFile: string; clientCAFile: string; host: Host; clock: Clock; log: Logger },
  ) {
    this.#o = options;
  }

  /** Reads the files. Rejects with BadConfig or Host when they cannot be used. */
  async load(): Promise<TlsMaterial> {
    this.#stamp = await this.#look();
    return await this.#read();
  }

  /** Hands on what the files hold each time they change, until the signal aborts. Bad content is told, and kept out. */
  async follow(onChange: (material: TlsMaterial) => void, signal: AbortSignal): Promise<void> {
    const { clock, log } = this.#o;
    for (;;) {
      await clock.sleep(lookMs, signal);
      try {
        const stamp = await this.#look();
        if (stamp === this.#stamp) continue;
        const material = await this.#read();
        onChange(material);
        this.#stamp = stamp;
        this.#problem = "";
        log.info("the certificate files have changed and are in use");
      } catch (thrown) {
        const problem = messageOf(thrown);
        if (problem !== this.#problem) {
          log.error("changed certificate files cannot be used; the old ones stay", { error: problem });
        }
        this.#problem = problem;
      }
    }
  }

  async #look(): Promise<string> {
    const { certFile, keyFile, clientCAFile, host } = this.#o;
    const parts: string[] = [];
    for (const path of [certFile, keyFile, clientCAFile]) {
      const info = path === "" ? undefined : await host.stat(path);
      parts.push(info ? `${info.dev}:${info.ino}:${info.size}:${info.mtimeMs}` : "-");
    }
    return parts.join(" ");
  }

  async #read(): Promise<TlsMaterial> {
    const { certFile, keyFile, clientCAFile, host } = this.#o;
    const [cert, keyText] = [await host.readText(certFile), await host.readText(keyFile)];
    // The key may stand in one file with its certificate, which not every reader of keys can pass over.
    const key = privateKeyIn(keyText) ?? keyText;
    const [leaf] = readCertificates(cert, `the certificate file ${certFile}`);
    let fits: boolean | undefined;
    try {
      fits = leaf?.checkPrivateKey(createPrivateKey(key));
    } catch (cause) {
      throw new KubeletError("BadConfig", `the key file ${keyFile} holds no usable private key: ${messageOf(cause)}`, {
        cause,
      });
    }
    if (!fits) {
      throw new KubeletError("BadConfig", `the key in ${keyFile} does not belong to the certificate in ${certFile}`);
    }
    if (clientCAFile === "") return { cert, key, clientCA: undefined, authorities: [] };
    const clientCA = await host.readText(clientCAFile);
    const authorities = readCertificates(
      clientCA,
      `the client CA file ${clientCAFile} (authentication.x509.clientCAFile)`,
    );
    return { cert, key, clientCA, authorities };
  }
}
