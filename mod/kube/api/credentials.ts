import type { Clock } from "../../base/clock.ts";
import { KubeletError, messageOf } from "../../base/errors.ts";
import type { Host } from "../../base/host.ts";
import type { Logger } from "../../base/log.ts";
import { unlessAborted } from "../../base/unless_aborted.ts";
import type { ExecPlugin } from "./exec_plugin.ts";
import type { Kubeconfig, KubeconfigUser, PemSource } from "./kubeconfig.ts";
import type { TlsMaterial } from "./transport.ts";

/** How often files of certificates are looked at, and how long a token is used before its file is read again. */
const lookMs = 2000;
const tokenMs = 60_000;

/** What a client shows the server, as it is now. */
export interface Identity {
  readonly tls: TlsMaterial;
  /** Grows when `tls` changes: connections of an older one are not to be used any more. */
  readonly version: number;
  /** The Authorization header; undefined when the certificate says it all. */
  readonly authorization: string | undefined;
}

export interface CredentialsOptions {
  readonly kubeconfig: Kubeconfig;
  readonly host: Pick<Host, "readText" | "stat">;
  /** Needed when the kubeconfig names a plugin. */
  readonly plugin?: ExecPlugin;
  readonly clock: Clock;
  readonly log: Logger;
}

/**
 * The credentials of a kubeconfig: files are read again when they change, tokens each minute, a plugin is asked when
 * what it gave expires or is refused. What cannot be read leaves the last that could.
 */
export class Credentials {
  readonly #o: CredentialsOptions;
  readonly #listeners = new Set<() => void>();
  #tls: TlsMaterial | undefined;
  /** What the files held when they were read last; `#seen` tells of the same moment. */
  #files: TlsMaterial | undefined;
  #version = 0;
  /** What the files were like when they were read last. */
  #seen = "";
  #lookedAt = -Infinity;
  #token: { readonly text: string; readonly readAt: number } | undefined;
  // Reads that all who come meanwhile wait for: of a file that hangs, one read hangs, and each call ends in its time.
  #looking: Promise<TlsMaterial> | undefined;
  #reading: Promise<string> | undefined;
  #user: KubeconfigUser;
  #refusedSince: number | undefined;

  constructor(options: CredentialsOptions) {
    this.#o = options;
    this.#user = options.kubeconfig.user;
  }

  /** Since when the server has known nobody in any request, milliseconds since the epoch; undefined when it knows us. */
  get refusedSince(): number | undefined {
    return this.#refusedSince;
  }

  /** From now on the certificate and key of another user are shown; their files are read by the next request. */
  useCertificate({ certificate, key }: Pick<KubeconfigUser, "certificate" | "key">): void {
    this.#user = { ...this.#user, ...(certificate ? { certificate } : {}), ...(key ? { key } : {}) };
    this.#lookedAt = -Infinity;
    this.#seen = "";
  }

  /** Calls `listener` whenever the TLS identity has changed. */
  onChange(listener: () => void): Disposable {
    this.#listeners.add(listener);
    return { [Symbol.dispose]: () => void this.#listeners.delete(listener) };
  }

  /** Who to be now. Rejects with BadConfig when a file could never be read, or the plugin gives nothing. */
  async current(signal: AbortSignal): Promise<Identity> {
    const { plugin } = this.#o;
    const user = this.#user;
    // One look serves all requests that come meanwhile.
    this.#looking ??= this.#look().finally(() => this.#looking = undefined);
    let tls = await unlessAborted(this.#looking, signal);
    const basic = user.username === undefined ? undefined : `Basic ${base64(`${user.username}:${user.password}`)}`;
    let authorization = basic;
    if (user.tokenFile !== undefined || user.token !== undefined) {
      authorization = `Bearer ${await this.#bearer(signal)}`;
    }
    if (plugin) {
      const given = await plugin.current(signal);
      if (given.token !== undefined) authorization = `Bearer ${given.token}`;
      if (given.cert !== undefined && given.key !== undefined) tls = { ...tls, cert: given.cert, key: given.key };
    }
    this.#accept(tls);
    return { tls, version: this.#version, authorization };
  }

  /** The server did not know us: what can be renewed is. */
  refused(): void {
    this.#token = undefined;
    this.#o.plugin?.forget();
    this.#refusedSince ??= this.#o.clock.now();
  }

  /** The server knew us. */
  accepted(): void {
    this.#refusedSince = undefined;
  }

  #accept(tls: TlsMaterial): void {
    const before = this.#tls;
    if (before && before.ca === tls.ca && before.cert === tls.cert && before.key === tls.key) return;
    this.#tls = tls;
    this.#version++;
    if (!before) return;
    this.#o.log.info("the API server's certificates or ours have changed; connections are made anew");
    for (const listener of [...this.#listeners]) listener();
  }

  /** The files' contents, read again when something about them has changed. */
  async #look(): Promise<TlsMaterial> {
    const { clock, log, kubeconfig: { cluster } } = this.#o;
    const user = this.#user;
    const now = clock.now();
    if (this.#files && now - this.#lookedAt >= 0 && now - this.#lookedAt < lookMs) return this.#files;
    this.#lookedAt = now;
    const sources = { ca: cluster.certificateAuthority, cert: user.certificate, key: user.key };
    try {
      const seen = (await Promise.all(Object.values(sources).map((source) => this.#stamp(source)))).join(" ");
      if (this.#files && seen === this.#seen) return this.#files;
      const [ca, cert, otherKey] = await Promise.all([
        this.#pem(sources.ca, "certificate-authority"),
        this.#pem(sources.cert, "client-certificate"),
        inOne(sources) ? undefined : this.#pem(sources.key, "client-key"),
      ]);
      // Of one file, one read: between two there may come another pair.
      const key = inOne(sources) ? cert : otherKey;
      this.#seen = seen;
      return this.#files = {
        ...(ca === undefined ? {} : { ca }),
        ...(cert === undefined ? {} : { cert }),
        ...(key === undefined ? {} : { key }),
      };
    } catch (thrown) {
      if (!this.#files) throw thrown;
      log.error("credentials cannot be read again; the last ones go on", { error: messageOf(thrown) });
      return this.#files;
    }
  }

  async #stamp(source: PemSource | undefined): Promise<string> {
    if (!source || "text" in source) return "";
    const info = await this.#o.host.stat(source.path);
    return info ? `${info.dev}:${info.ino}:${info.size}:${info.mtimeMs}` : "missing";
  }

  async #pem(source: PemSource | undefined, field: string): Promise<string | undefined> {
    if (!source) return undefined;
    const text = "text" in source ? source.text : await this.#read(source.path, field);
    if (!text.includes("-----BEGIN ")) {
      const where = "text" in source ? `${field}-data` : `${field} ${source.path}`;
      throw new KubeletError("BadConfig", `kubeconfig ${this.#o.kubeconfig.path}: ${where} holds no PEM text`);
    }
    return text;
  }

  async #bearer(signal: AbortSignal): Promise<string> {
    const { clock } = this.#o;
    const { tokenFile, token } = this.#user;
    if (tokenFile === undefined) return token ?? "";
    const age = clock.now() - (this.#token?.readAt ?? -Infinity);
    if (this.#token && age >= 0 && age < tokenMs) return this.#token.text;
    this.#reading ??= this.#readToken(tokenFile).finally(() => this.#reading = undefined);
    return await unlessAborted(this.#reading, signal);
  }

  async #readToken(tokenFile: string): Promise<string> {
    const { clock, log } = this.#o;
    const last = this.#token?.text;
    try {
      const text = (await this.#read(tokenFile, "tokenFile")).trim();
      if (text === "") throw new KubeletError("BadConfig", `the token file ${tokenFile} is empty`);
      this.#token = { text, readAt: clock.now() };
      return text;
    } catch (thrown) {
      const instead = last ?? this.#user.token;
      if (instead === undefined) throw thrown;
      log.error("the token file cannot be read; the last token goes on", { error: messageOf(thrown) });
      this.#token = { text: instead, readAt: clock.now() };
      return instead;
    }
  }

  async #read(path: string, field: string): Promise<string> {
    try {
      return await this.#o.host.readText(path);
    } catch (thrown) {
      throw new KubeletError(
        "BadConfig",
        `kubeconfig ${this.#o.kubeconfig.path}: ${field} can't be read: ${messageOf(thrown)}`,
        { cause: thrown },
      );
    }
  }
}

/** Whether certificate and key stand in the same file. */
function inOne({ cert, key }: { cert: PemSource | undefined; key: PemSource | undefined }): boolean {
  return cert !== undefined && key !== undefined && "path" in cert && "path" in key && cert.path === key.path;
}

function base64(text: string): string {
  return new TextEncoder().encode(text).toBase64();
}
