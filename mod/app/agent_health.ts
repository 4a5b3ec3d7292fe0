import type { Clock } from "../base/clock.ts";
import type { HealthCheck } from "../server/healthz.ts";

/** The least time without a sign of life after which the sync loop counts as stuck, in milliseconds. */
const leastLimitMs = 5 * 60_000;

/** The parts of /healthz (http.md section 3, runtime-contract.md section 11). */
export function loopHealth(
  clock: Clock,
  loop: { readonly lastActive: number },
  syncFrequencyMs: number,
): readonly HealthCheck[] {
  const limit = Math.max(leastLimitMs, 2 * syncFrequencyMs);
  return [
    { name: "ping", check: () => undefined },
    { name: "log", check: () => undefined },
    {
      name: "syncloop",
      check: () => clock.now() - loop.lastActive > limit ? "sync Loop took longer than expected" : undefined,
    },
  ];
}
