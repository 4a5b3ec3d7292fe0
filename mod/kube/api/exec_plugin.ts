import { X509Certificate } from "node:crypto";
import type { Clock } from "../../base/clock.ts";
import { Deadline } from "../../base/deadline.ts";
import { KubeletError, messageOf } from "../../base/errors.ts";
import type { Host } from "../../base/host.ts";
import { unlessAborted } from "../../base/unless_aborted.ts";
import type { ExecConfig, KubeconfigCluster } from "./kubeconfig.ts";

/** What a plugin gave; at least one of the two ways. */
export interface PluginCredentials {
  readonly token?: string;
  readonly cert?: string;
  readonly key?: string;
}

/** A certificate that a plugin gave. */
export interface PluginCertificate {
  /** When it ends, milliseconds since the epoch. */
  readonly notAfter: number;
  /** How old the one was that it replaces, milliseconds; undefined for the first. */
  readonly replacedAgeMs: number | undefined;
}

export interface ExecPluginOptions {
  readonly exec: ExecConfig;
  readonly cluster: KubeconfigCluster;
  readonly host: Pick<Host, "run" | "readText">;
  readonly clock: Clock;
  /** Told how each call ended and with which exit code (1 when there was none), for metrics. */
  readonly onCall?: (outcome: "no_error" | "plugin_execution_error" | "plugin_not_found_error", code: number) => void;
  /** Told of each certificate that is not the one before, for metrics. */
  readonly onCertificate?: (told: PluginCertificate) => void;
}

/** How long a plugin may take, and how soon a failed one is run again, in milliseconds. */
const limitMs = 60_000;
const restMs = 1000;

/**
 * A credential plugin (ExecCredential v1 and v1beta1): run when it is needed first, when what it gave expires, and when
 * the server refused that. Requests that need it meanwhile wait for one run.
 */
export class ExecPlugin {
  readonly #o: ExecPluginOptions;
  #given: { readonly credentials: PluginCredentials; readonly expires: number } | undefined;
  #failed: { readonly error: unknown; readonly at: number } | undefined;
  #running: Promise<PluginCredentials> | undefined;
  /** The last certificate. */
  #certificate: { readonly pem: string; readonly notBefore: number } | undefined;

  constructor(options: ExecPluginOptions) {
    this.#o = options;
  }

  /** Rejects with BadConfig, and the program's own words, when it gives nothing that can be used. */
  async current(signal: AbortSignal): Promise<PluginCredentials> {
    const now = this.#o.clock.now();
    if (this.#given && now < this.#given.expires) return this.#given.credentials;
    const rested = this.#failed ? now - this.#failed.at : restMs;
    // A clock that was put back says nothing of how long it has rested.
    if (this.#failed && rested >= 0 && rested < restMs) throw this.#failed.error;
    // The run serves all that wait for it: one of them being called off does not end it.
    this.#running ??= this.#run().finally(() => this.#running = undefined);
    return await unlessAborted(this.#running, signal);
  }

  /** What it gave is of no use any more. */
  forget(): void {
    this.#given = undefined;
  }

  async #run(): Promise<PluginCredentials> {
    try {
      const { credentials, expires } = await this.#ask();
      this.#tellCertificate(credentials.cert);
      this.#given = { credentials, expires };
      this.#failed = undefined;
      return credentials;
    } catch (error) {
      this.#failed = { error, at: this.#o.clock.now() };
      throw error;
    }
  }

  #tellCertificate(pem: string | undefined): void {
    const { clock, onCertificate } = this.#o;
    if (pem === undefined || pem === this.#certificate?.pem || !onCertificate) return;
    const dates = datesOf(pem);
    if (!dates) return; // whoever uses it says why it cannot be used
    const before = this.#certificate;
    this.#certificate = { pem, notBefore: dates.notBefore };
    onCertificate({ notAfter: dates.notAfter, replacedAgeMs: before && clock.now() - before.notBefore });
  }

  async #ask(): Promise<{ credentials: PluginCredentials; expires: number }> {
    const { exec, host, clock, onCall } = this.#o;
    const fail = (why: string, cause?: unknown) =>
      new KubeletError(
        "BadConfig",
        `the credential plugin ${exec.command} ${why}${exec.installHint === "" ? "" : `; ${exec.installHint}`}`,
        { cause },
      );
    using limit = new Deadline({ clock, ms: limitMs });
    let answer: Awaited<ReturnType<Host["run"]>>;
    try {
      answer = await host.run(exec.command, [...exec.args], {
        env: { ...exec.env, KUBERNETES_EXEC_INFO: JSON.stringify(await this.#info()) },
        signal: limit.signal,
      });
    } catch (thrown) {
      onCall?.(limit.over ? "plugin_execution_error" : "plugin_not_found_error", 1);
      throw limit.over
        ? fail(`took longer than ${limitMs / 1000} s`, thrown)
        : fail(`can't be run: ${messageOf(thrown)}`, thrown);
    }
    if (answer.code !== 0) {
      onCall?.("plugin_execution_error", answer.code);
      throw fail(`ended with exit code ${answer.code}: ${answer.stderr.trim().slice(-500)}`);
    }
    onCall?.("no_error", 0);
    return this.#read(answer.stdout, fail);
  }

  async #info(): Promise<unknown> {
    const { exec: { apiVersion, provideClusterInfo }, cluster, host } = this.#o;
    const { certificateAuthority: ca, server, insecureSkipTlsVerify, tlsServerName, proxyUrl } = cluster;
    const pem = ca === undefined ? undefined : "text" in ca ? ca.text : await host.readText(ca.path);
    const told = {
      server,
      ...(tlsServerName === undefined ? {} : { "tls-server-name": tlsServerName }),
      ...(insecureSkipTlsVerify ? { "insecure-skip-tls-verify": true } : {}),
      ...(pem === undefined ? {} : { "certificate-authority-data": new TextEncoder().encode(pem).toBase64() }),
      ...(proxyUrl === undefined ? {} : { "proxy-url": proxyUrl }),
    };
    return {
      apiVersion,
      kind: "ExecCredential",
      spec: { interactive: false, ...(provideClusterInfo ? { cluster: told } : {}) },
    };
  }

  #read(
    text: string,
    fail: (why: string, cause?: unknown) => KubeletError,
  ): { credentials: PluginCredentials; expires: number } {
    let value: unknown;
    try {
      value = JSON.parse(text);
    } catch (thrown) {
      throw fail("printed no JSON", thrown);
    }
    const { apiVersion, kind, status } = record(value);
    const { exec, clock } = this.#o;
    if (kind !== "ExecCredential" || apiVersion !== exec.apiVersion) {
      throw fail(`printed ${JSON.stringify({ apiVersion, kind })}, not an ExecCredential of ${exec.apiVersion}`);
    }
    const { token, clientCertificateData: cert, clientKeyData: key, expirationTimestamp } = record(status);
    if ((typeof cert === "string") !== (typeof key === "string")) {
      throw fail("printed a certificate without its key, or a key without its certificate");
    }
    if (typeof token !== "string" && typeof cert !== "string") throw fail("printed neither a token nor a certificate");
    const expires = typeof expirationTimestamp === "string" ? Date.parse(expirationTimestamp) : Infinity;
    if (Number.isNaN(expires)) throw fail(`printed ${expirationTimestamp}, which is no time`);
    return {
      credentials: {
        ...(typeof token === "string" ? { token } : {}),
        ...(typeof cert === "string" && typeof key === "string" ? { cert, key } : {}),
      },
      // One that has expired already is used this once; asking again at once would give no other.
      expires: Math.max(expires, clock.now() + restMs),
    };
  }
}

/** When the first certificate of a PEM text begins and ends; undefined when it cannot be read. */
function datesOf(pem: string): { notBefore: number; notAfter: number } | undefined {
  try {
    const { validFromDate, validToDate } = new X509Certificate(pem);
    return { notBefore: validFromDate.getTime(), notAfter: validToDate.getTime() };
  } catch {
    return undefined;
  }
}

function record(value: unknown): Readonly<Record<string, unknown>> {
  return typeof value === "object" && value !== null ? value as Record<string, unknown> : {};
}
