/** A source of numbers in [0, 1); handed in so that a simulation's seed decides everything. */
export type Random = () => number;

/** The machine's source. */
export const systemRandom: Random = Math.random;

/** A repeatable source (mulberry32) for tests and simulation. */
export function seeded(seed: number): Random {
  let state = seed >>> 0;
  return () => {
    state = (state + 0x6d2b79f5) >>> 0;
    let t = state;
    t = Math.imul(t ^ (t >>> 15), t | 1);
    t ^= t + Math.imul(t ^ (t >>> 7), t | 61);
    return ((t ^ (t >>> 14)) >>> 0) / 4294967296;
  };
}

/** `ms` stretched by a random factor between 1 and 1 + `spread`. */
export function jitter(random: Random, ms: number, spread: number): number {
  return ms * (1 + random() * spread);
}

/** `bytes` random bytes as lower-case hex. */
export function randomHex(random: Random, bytes: number): string {
  let text = "";
  for (let i = 0; i < bytes; i++) text += Math.floor(random() * 256).toString(16).padStart(2, "0");
  return text;
}
