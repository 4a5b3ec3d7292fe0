import type { Clock } from "../../mod/base/clock.ts";
import { abortedBy, messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Random } from "../../mod/base/random.ts";
import { Complaints } from "./complaints.ts";
import { retryMs } from "./rotation.ts";

/** The certificate that the API server is shown. */
export interface ShownCertificate {
  /** The file, or the kubeconfig that holds it. */
  readonly path: string;
  /** Milliseconds since the epoch; undefined when there is none, or none that can be read. */
  readonly notAfter: number | undefined;
  /** Why it cannot be read. */
  readonly problem?: string;
}

export interface RenewalOptions {
  readonly shown: () => Promise<ShownCertificate>;
  /** Since when the server has known nobody in any request (401), milliseconds since the epoch; undefined: it knows us. */
  readonly refusedSince: () => number | undefined;
  /** Gets another certificate with the bootstrap identity and puts it in use; absent where there is no such identity. */
  readonly bootstrap?: (signal: AbortSignal) => Promise<void>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** How often the certificate is looked at, milliseconds. */
const lookMs = 10_000;
/**
 * How long every request must have been refused before that is laid to the certificate, milliseconds; twice as long after
 * each certificate that was refused too, so that a server that refuses everybody is not flooded with requests.
 */
const refusedMs = 10_000;
const refusedDoublings = 8;

/**
 * Sees to it that a node whose certificate has expired, is missing or is refused gets another one with its bootstrap
 * identity while it runs (runtime-contract.md section 22). Without such an identity it says what is to be done, at once
 * and every ten minutes. A certificate that comes in another way ends both. Runs until the signal aborts.
 */
export async function renewExpired(o: RenewalOptions, signal: AbortSignal): Promise<never> {
  const { clock, log } = o;
  const complaints = new Complaints(clock, log);
  let refusals = 0, renewedAt = -Infinity;
  for (;; await clock.sleep(lookMs, signal)) {
    const now = clock.now();
    const refusedSince = o.refusedSince();
    if (refusedSince === undefined) refusals = 0;
    const shown = await o.shown();
    const patience = refusedMs * 2 ** Math.min(refusals, refusedDoublings);
    const refused = refusedSince !== undefined && now - Math.max(refusedSince, renewedAt) >= patience;
    const trouble = troubleOf(shown, refused, now);
    if (!trouble) {
      complaints.over();
      continue;
    }
    if (trouble.refused) refusals++;
    const until = shown.notAfter === undefined ? {} : { until: new Date(shown.notAfter).toISOString() };
    if (o.bootstrap) {
      log.warn(`${trouble.what}; a new one is asked for with --bootstrap-kubeconfig`, { path: shown.path, ...until });
      await askUntilUsable({ ...o, complaints, bootstrap: o.bootstrap, refused: trouble.refused }, signal);
      renewedAt = clock.now();
    } else {
      complaints.say(`${trouble.what}; pods go on, but nothing is heard from the cluster: ${trouble.remedy}`, {
        path: shown.path,
        ...until,
      });
    }
  }
}

interface Trouble {
  readonly what: string;
  readonly remedy: string;
  /** The certificate would do by its dates. */
  readonly refused: boolean;
}

function troubleOf(
  { notAfter, path, problem }: ShownCertificate,
  refused: boolean,
  now: number,
): Trouble | undefined {
  const renew = `put a valid certificate with its key into ${path}, or restart with --bootstrap-kubeconfig`;
  if (notAfter === undefined) {
    const why = problem === undefined ? "" : ` (${problem})`;
    return { what: `there is no client certificate that can be used${why}`, remedy: renew, refused: false };
  }
  if (notAfter <= now) {
    return { what: "the client certificate has expired", remedy: renew, refused: false };
  }
  if (!refused) return undefined;
  return {
    what: "the API server refuses the client certificate (401)",
    remedy:
      `compare the clocks of this node and of the API server, and its --client-ca-file with the issuer; else ${renew}`,
    refused: true,
  };
}

/** Asks again and again, with back-off, until a certificate is there, by this or in another way. */
async function askUntilUsable(
  o: RenewalOptions & {
    readonly bootstrap: (signal: AbortSignal) => Promise<void>;
    readonly refused: boolean;
    readonly complaints: Complaints;
  },
  signal: AbortSignal,
): Promise<void> {
  const { clock, random, bootstrap, refused, complaints } = o;
  const stop = new AbortController();
  const either = AbortSignal.any([signal, stop.signal]);
  const elsewhere = usable(o, refused, either).then(() => stop.abort(), (thrown) => {
    if (!either.aborted) throw thrown;
  });
  try {
    for (let failures = 0; !either.aborted;) {
      try {
        return await bootstrap(either);
      } catch (thrown) {
        if (either.aborted) break;
        const wait = retryMs(++failures, random);
        complaints.say("the node got no client certificate; it is asked for again", {
          error: messageOf(thrown),
          inMs: Math.round(wait),
        });
        await clock.sleep(wait, either);
      }
    }
  } catch (thrown) {
    if (!stop.signal.aborted) throw thrown;
  } finally {
    stop.abort();
    await elsewhere;
  }
  if (signal.aborted) throw abortedBy(signal);
}

/** Resolves when the certificate that is shown will do. */
async function usable(o: RenewalOptions, refused: boolean, signal: AbortSignal): Promise<void> {
  for (;;) {
    await o.clock.sleep(lookMs, signal);
    const { notAfter = -Infinity } = await o.shown();
    const known = !refused || o.refusedSince() === undefined;
    if (known && notAfter > o.clock.now()) return;
  }
}
