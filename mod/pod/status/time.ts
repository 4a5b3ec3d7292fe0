/** Milliseconds since the epoch as the API writes a time, cut to the second (runtime-contract.md section 14). */
export function stamp(ms: number): string {
  const inRange = Number.isFinite(ms) && Math.abs(ms) <= 8.64e15 ? ms : 0;
  return `${new Date(Math.floor(inRange / 1000) * 1000).toISOString().slice(0, -5)}Z`;
}
