/** The two messages of the gRPC health protocol, `grpc.health.v1`: one string out, one enum back. */

/** Names of the health states by number. */
const states = ["UNKNOWN", "SERVING", "NOT_SERVING", "SERVICE_UNKNOWN"] as const;

/** Encodes a HealthCheckRequest: field 1, the service's name; empty means the server as a whole. */
export function encodeRequest(service: string): Uint8Array {
  const name = new TextEncoder().encode(service);
  if (name.length === 0) return new Uint8Array(0);
  const length: number[] = [];
  let left = name.length;
  for (; left > 0x7f; left = Math.floor(left / 128)) length.push((left & 0x7f) | 0x80);
  length.push(left);
  const message = new Uint8Array(1 + length.length + name.length);
  message.set([0x0a, ...length]);
  message.set(name, 1 + length.length);
  return message;
}

/** Decodes a HealthCheckResponse: field 1, the state. Other fields are skipped. Throws on what is no message. */
export function decodeResponse(bytes: Uint8Array): string {
  let at = 0;
  let state = 0;
  const varint = () => {
    let value = 0;
    for (let shift = 0; shift < 10; shift++) {
      const byte = bytes[at++];
      if (byte === undefined) throw new RangeError("health reply ends in the middle of a number");
      value += (byte & 0x7f) * 2 ** (7 * shift);
      if (byte < 0x80) return value;
    }
    throw new RangeError("health reply has a number that is too long");
  };
  while (at < bytes.length) {
    const key = varint();
    const [field, wire] = [Math.floor(key / 8), key % 8];
    if (wire === 0) {
      const value = varint();
      if (field === 1) state = value;
    } else if (wire === 1) at += 8;
    else if (wire === 2) {
      const length = varint();
      at += length;
    } else if (wire === 5) at += 4;
    else throw new RangeError(`health reply has an unknown wire type ${wire}`);
    if (at > bytes.length) throw new RangeError("health reply ends in the middle of a field");
  }
  return states[state] ?? String(state);
}
