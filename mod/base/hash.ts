const utf8 = new TextEncoder();
const bytesOf = (data: string | Uint8Array) => typeof data === "string" ? utf8.encode(data) : data;

/** FNV-1a, 32 bit. */
export function fnv1a32(data: string | Uint8Array): number {
  let hash = 0x811c9dc5;
  for (const byte of bytesOf(data)) hash = Math.imul(hash ^ byte, 0x01000193) >>> 0;
  return hash >>> 0;
}

function fnv1aBig(data: string | Uint8Array, basis: bigint, prime: bigint, bits: number): bigint {
  const mask = (1n << BigInt(bits)) - 1n;
  let hash = basis;
  for (const byte of bytesOf(data)) hash = ((hash ^ BigInt(byte)) * prime) & mask;
  return hash;
}

/** FNV-1a, 64 bit. */
export function fnv1a64(data: string | Uint8Array): bigint {
  return fnv1aBig(data, 0xcbf29ce484222325n, 0x100000001b3n, 64);
}

/** FNV-1a, 128 bit. */
export function fnv1a128(data: string | Uint8Array): bigint {
  return fnv1aBig(data, 0x6c62272e07bb014262b821756295c58dn, 0x1000000000000000000013bn, 128);
}
