import type { Random } from "../../mod/base/random.ts";

/** The share of a certificate's life after which a new one is asked for: at least, and by chance so much more. */
const leastShare = 0.7;
const spread = 0.2;
/** Delays between failed tries (runtime-contract.md section 22): doubled for five tries, then the last for ever. */
const firstRetryMs = 2_000;
const doublings = 4;
const retryJitter = 0.1;

/** When to ask for the next certificate, milliseconds since the epoch (runtime-contract.md section 22). */
export function rotateAt(certificate: { notBefore: number; notAfter: number }, random: Random): number {
  const life = certificate.notAfter - certificate.notBefore;
  return certificate.notBefore + life * (leastShare + spread * random());
}

/** How long to wait after so many failures (1 is the first), milliseconds. */
export function retryMs(failures: number, random: Random): number {
  return firstRetryMs * 2 ** Math.min(failures - 1, doublings) * (1 + retryJitter * random());
}
