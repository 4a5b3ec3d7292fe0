import { Buffer } from "node:buffer";
import { Duplex } from "node:stream";

/** Bytes that are read at once; HTTP/2 frames of these APIs are small. */
const chunkBytes = 16 << 10;

/**
 * A connection of Deno's as a stream of Node's, for libraries that speak over such a one. Node's own unix sockets are
 * avoided: Deno 2.9.3 closes their descriptor twice, which may be another's by then.
 */
export function duplexOf(conn: Deno.Conn): Duplex {
  let closed = false;
  const close = () => {
    if (closed) return;
    closed = true;
    conn.close();
  };
  return new Duplex({
    read() {
      const into = new Uint8Array(chunkBytes);
      conn.read(into).then(
        (count) => this.push(count === null ? null : Buffer.from(into.buffer, 0, count)),
        (thrown) => this.destroy(closed ? undefined : thrown),
      );
    },
    write(chunk: Uint8Array, _encoding, done) {
      writeAll(conn, chunk).then(() => done(), done);
    },
    final(done) {
      // The peer may be gone already, and then there is nobody to tell.
      Promise.resolve("closeWrite" in conn ? conn.closeWrite() : undefined).then(() => done(), () => done());
    },
    destroy(error, done) {
      close();
      done(error);
    },
  });
}

async function writeAll(conn: Deno.Conn, bytes: Uint8Array): Promise<void> {
  for (let at = 0; at < bytes.length;) at += await conn.write(bytes.subarray(at));
}
