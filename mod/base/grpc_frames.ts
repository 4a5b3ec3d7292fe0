import { GrpcError } from "./grpc_error.ts";

/** Largest message that is taken, as Go's clients and servers have it. */
const maxMessage = 4 << 20;
const headerBytes = 5;

/** A message with the five bytes that gRPC puts before it: not compressed, and how long it is. */
export function frameOf(message: Uint8Array): Uint8Array {
  const frame = new Uint8Array(headerBytes + message.length);
  new DataView(frame.buffer).setUint32(1, message.length);
  frame.set(message, headerBytes);
  return frame;
}

/** Cuts what arrives into messages. */
export class FrameReader {
  #rest = new Uint8Array(0);

  /** The messages that these bytes complete. Throws GrpcError when the peer sends what cannot be taken. */
  feed(bytes: Uint8Array): Uint8Array[] {
    const all = new Uint8Array(this.#rest.length + bytes.length);
    all.set(this.#rest);
    all.set(bytes, this.#rest.length);
    const messages: Uint8Array[] = [];
    let at = 0;
    while (all.length - at >= headerBytes) {
      const length = new DataView(all.buffer, at).getUint32(1);
      if (all[at] !== 0) throw new GrpcError("Internal", "a compressed message was received, which was not asked for");
      if (length > maxMessage) {
        throw new GrpcError("ResourceExhausted", `received message larger than max (${length} vs. ${maxMessage})`);
      }
      if (all.length - at < headerBytes + length) break;
      messages.push(all.slice(at + headerBytes, at + headerBytes + length));
      at += headerBytes + length;
    }
    this.#rest = all.slice(at);
    return messages;
  }
}
