/** Shorter texts are written letter by letter; for these that is cheaper than asking the encoder. */
const short = 24;
const encoder = new TextEncoder();

/**
 * Text that is put together from pieces as bytes. A page of ten thousand lines made as strings costs twice as much, as
 * every piece of every line is an object of its own.
 */
export class LineBytes {
  #buffer = new Uint8Array(256 << 10);
  #length = 0;

  get length(): number {
    return this.#length;
  }

  #room(more: number): void {
    if (this.#length + more <= this.#buffer.length) return;
    const larger = new Uint8Array(Math.max(this.#buffer.length * 2, this.#length + more));
    larger.set(this.#buffer.subarray(0, this.#length));
    this.#buffer = larger;
  }

  /** Adds bytes that are text already. */
  bytes(part: Uint8Array): void {
    this.#room(part.length);
    this.#buffer.set(part, this.#length);
    this.#length += part.length;
  }

  text(part: string): void {
    // No character takes more than three bytes.
    this.#room(part.length * 3);
    if (part.length > short) {
      this.#length += encoder.encodeInto(part, this.#buffer.subarray(this.#length)).written;
      return;
    }
    for (let at = 0; at < part.length; at++) {
      const code = part.charCodeAt(at);
      if (code > 127) {
        this.#length += encoder.encodeInto(part.slice(at), this.#buffer.subarray(this.#length)).written;
        return;
      }
      this.#buffer[this.#length++] = code;
    }
  }

  /** All of it. The object is not to be used any more. */
  done(): Uint8Array<ArrayBuffer> {
    return this.#buffer.subarray(0, this.#length);
  }
}

/** Text as bytes. */
export function bytesOf(text: string): Uint8Array<ArrayBuffer> {
  return encoder.encode(text);
}
