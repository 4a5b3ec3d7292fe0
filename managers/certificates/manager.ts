import type { Clock } from "../../mod/base/clock.ts";
import { isAborted, messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Random } from "../../mod/base/random.ts";
import { Complaints } from "./complaints.ts";
import type { CertificatePair } from "./pair.ts";
import { type CertificateTemplate, makeKey, makeRequest } from "./request.ts";
import { retryMs, rotateAt } from "./rotation.ts";
import { sign, type Signer, type SignOptions } from "./signing.ts";
import type { CertificateStore } from "./store.ts";

/** How long one request is waited for, milliseconds (runtime-contract.md section 22). */
const signWithinMs = 15 * 60_000;
/** How often it is looked whether the names that the certificate should have are others, milliseconds. */
const templateLookMs = 10_000;

export interface CertificateManagerOptions {
  /** For logs: `client` or `serving`. */
  readonly what: string;
  readonly store: Pick<CertificateStore, "load" | "save">;
  readonly client: SignOptions["client"];
  readonly signer: Signer;
  /** What the certificate should say now; undefined while that is not known: then none is asked for. */
  readonly template: () => CertificateTemplate | undefined;
  /** Told of the pair that is in force, at the start and after each rotation. */
  readonly onPair?: (pair: CertificatePair) => void;
  /** Told when a pair was issued and is under the store's link. */
  readonly onIssued?: () => void;
  /** Told of each failed try, and of each rotation with how long the old one was in use, milliseconds. */
  readonly onFailure?: () => void;
  readonly onRotated?: (usedMs: number) => void;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** Keeps one certificate of the node fresh: asks for it, and again when most of its life is over or its names change. */
export class CertificateManager {
  readonly #o: CertificateManagerOptions;
  #pair: CertificatePair | undefined;
  #rotateAt = 0;

  constructor(options: CertificateManagerOptions) {
    this.#o = options;
  }

  /** The pair in force; undefined while there is none. It may have expired. */
  get pair(): CertificatePair | undefined {
    return this.#pair;
  }

  /** Milliseconds until the certificate ends; Infinity when there is none (as the metric has it). */
  get ttlMs(): number {
    return this.#pair ? this.#pair.notAfter - this.#o.clock.now() : Infinity;
  }

  /** Runs until the signal aborts. An API server that does not sign is asked again and again; never rejects otherwise. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, log, what, store } = this.#o;
    const complaints = new Complaints(clock, log);
    const kept = await store.load();
    if (kept) this.#take(kept);
    for (let failures = 0; !signal.aborted;) {
      const template = this.#o.template();
      if (!template || !this.#due(template)) {
        const left = this.#pair ? this.#rotateAt - clock.now() : templateLookMs;
        await clock.sleep(Math.max(Math.min(left, templateLookMs), 1), signal);
        continue;
      }
      try {
        if (await this.#takeNewer()) continue;
        await this.#rotate(template, signal);
        failures = 0;
        complaints.over();
      } catch (thrown) {
        if (isAborted(thrown) || signal.aborted) throw thrown;
        this.#o.onFailure?.();
        const wait = retryMs(++failures, random);
        complaints.say(`a ${what} certificate could not be had; it is tried again`, {
          error: messageOf(thrown),
          inMs: Math.round(wait),
        });
        await clock.sleep(wait, signal);
      }
    }
  }

  #due(template: CertificateTemplate): boolean {
    return !this.#pair || this.#o.clock.now() >= this.#rotateAt || !covers(this.#pair, template);
  }

  /** Takes over a pair that was put there by another hand, as by a bootstrap; false when there is none. */
  async #takeNewer(): Promise<boolean> {
    const kept = await this.#o.store.load();
    if (!kept || kept.cert === this.#pair?.cert || kept.notAfter <= (this.#pair?.notAfter ?? -Infinity)) return false;
    this.#take(kept);
    return true;
  }

  async #rotate(template: CertificateTemplate, signal: AbortSignal): Promise<void> {
    const { clock, log, signer, client, store, what } = this.#o;
    log.info(`asking for a ${what} certificate`, { signer: signer.signerName, ...template });
    const key = await makeKey();
    const request = await makeRequest(key, template);
    const cert = await sign({ client, clock, log, signer, request, withinMs: signWithinMs, signal });
    const before = this.#pair;
    const pair = await store.save(cert, key, clock.now());
    this.#take(pair);
    this.#o.onIssued?.();
    if (before) this.#o.onRotated?.(clock.now() - before.notBefore);
    log.info(`a new ${what} certificate is in use`, { until: new Date(pair.notAfter).toISOString() });
  }

  #take(pair: CertificatePair): void {
    this.#pair = pair;
    this.#rotateAt = rotateAt(pair, this.#o.random);
    this.#o.onPair?.(pair);
  }
}

/** Whether a certificate has the subject and every name that is asked for; it may have more names. */
function covers(pair: CertificatePair, template: CertificateTemplate): boolean {
  const { dnsNames = [], ipAddresses = [], commonName, organizations } = template;
  const names = new Set(pair.names.map(plainName));
  const wanted = [...dnsNames.map((name) => `DNS:${name}`), ...ipAddresses.map((ip) => `IP:${ip}`)].map(plainName);
  const subject = pair.subject.split("\n");
  return wanted.every((name) => names.has(name)) && subject.includes(`CN=${commonName}`) &&
    organizations.every((name) => subject.includes(`O=${name}`));
}

/** Addresses of version 6 have several spellings. */
function plainName(name: string): string {
  if (!name.startsWith("IP:") || !name.slice(3).includes(":")) return name.toLowerCase();
  try {
    return `IP:${new URL(`http://[${name.slice(3)}]`).hostname}`;
  } catch {
    return name.toLowerCase();
  }
}
