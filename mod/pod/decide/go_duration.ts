/** A duration in milliseconds as the contract's texts write it: `10s`, `1m20s`, `1h0m0s`, `1.5s`, `250ms`, `0s`. */
export function goDuration(ms: number): string {
  if (!Number.isFinite(ms) || ms === 0) return "0s";
  if (ms < 0) return `-${goDuration(-ms)}`;
  const trim = (n: number, digits: number) => String(Number(n.toFixed(digits)));
  if (ms < 1000) return ms < 1 ? `${trim(ms * 1000, 3)}µs` : `${trim(ms, 6)}ms`;
  const hours = Math.floor(ms / 3_600_000);
  const minutes = Math.floor((ms % 3_600_000) / 60_000);
  const seconds = `${trim((ms % 60_000) / 1000, 9)}s`;
  if (hours > 0) return `${hours}h${minutes}m${seconds}`;
  return minutes > 0 ? `${minutes}m${seconds}` : seconds;
}
