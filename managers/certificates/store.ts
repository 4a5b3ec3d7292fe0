import { messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";
import { privateKeyIn } from "../../mod/base/pem.ts";
import { type CertificatePair, readPair } from "./pair.ts";

/** What the store needs of the host. */
export type StoreHost = Pick<Host, "mkdir" | "readText" | "write" | "symlink" | "rename" | "remove" | "stat">;

export interface StoreOptions {
  /** `<cert-dir>`. */
  readonly dir: string;
  /** `kubelet-client` or `kubelet-server`. */
  readonly prefix: string;
  /** Files that were given to begin with, used until a certificate has been issued. */
  readonly initial?: { readonly certFile: string; readonly keyFile: string };
  readonly host: StoreHost;
  readonly log: Logger;
}

/**
 * Certificates with their keys as `<dir>/<prefix>-<time>.pem`, the newest one under the link `<prefix>-current.pem`
 * (runtime-contract.md section 22). Files that are not linked any more are left, as by the reference.
 */
export class CertificateStore {
  constructor(private readonly o: StoreOptions) {}

  /** The link, which those who use the certificate read. */
  get currentPath(): string {
    return `${this.o.dir}/${this.o.prefix}-current.pem`;
  }

  /** The newest pair; undefined when there is none that can be used, which is told. */
  async load(): Promise<CertificatePair | undefined> {
    const { host, log, initial } = this.o;
    const files: [cert: string, key: string][] = [[this.currentPath, this.currentPath]];
    if (initial && initial.certFile !== this.currentPath) files.push([initial.certFile, initial.keyFile]);
    for (const [cert, key] of files) {
      if (await host.stat(cert) === undefined) continue;
      try {
        return readPair(await host.readText(cert), await host.readText(key), cert);
      } catch (thrown) {
        log.error("a certificate cannot be used; another one is asked for", { path: cert, error: messageOf(thrown) });
      }
    }
    return undefined;
  }

  /** Keeps a new pair and makes it the current one, at once and whole. Rejects with Host when it cannot be written. */
  async save(cert: string, key: string, now: number): Promise<CertificatePair> {
    const { host, dir, prefix } = this.o;
    const pair = readPair(cert, key, `the certificate issued for ${prefix}`);
    const stamp = new Date(now).toISOString().slice(0, 19).replace("T", "-").replaceAll(":", "-");
    const path = `${dir}/${prefix}-${stamp}.pem`;
    const fresh = `${this.currentPath}.new`;
    await host.mkdir(dir, { mode: 0o755 });
    await host.write(path, pair.cert + pair.key, { mode: 0o600, atomic: true });
    await host.remove(fresh);
    await host.symlink(path, fresh);
    await host.rename(fresh, this.currentPath);
    return pair;
  }

  /** A key that was made for a request that has no answer yet; kept over restarts. */
  async pendingKey(make: () => Promise<string>): Promise<string> {
    const { host, dir, prefix, log } = this.o;
    const path = `${dir}/${prefix}.key.tmp`;
    if (await host.stat(path) !== undefined) {
      const text = await host.readText(path);
      if (privateKeyIn(text) !== undefined) return text;
      log.warn("a kept key cannot be used; another one is made", { path });
    }
    const key = await make();
    await host.mkdir(dir, { mode: 0o755 });
    await host.write(path, key, { mode: 0o600, atomic: true });
    return key;
  }

  async forgetPendingKey(): Promise<void> {
    await this.o.host.remove(`${this.o.dir}/${this.o.prefix}.key.tmp`);
  }
}
