import type { Duplex } from "node:stream";
import { Socket } from "node:net";
import { messageOf } from "../../base/errors.ts";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import { type ByteStream, copy } from "./byte_stream.ts";

/** How long a client whose stream has ended may take to close its side. */
const lingerMs = 10_000;
/** When silence is long enough to ask whether the client's machine is still there. */
const keepAliveMs = 30_000;

/** Makes a connection live as long as the two sides want: no idle limit, but a vanished machine is noticed. */
export function keepOpen(socket: Duplex): void {
  if (!(socket instanceof Socket)) return;
  socket.setTimeout(0);
  socket.setNoDelay(true);
  socket.setKeepAlive(true, keepAliveMs);
}

interface Joint {
  readonly client: ByteStream;
  readonly runtime: ByteStream;
  readonly clock: Clock;
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/**
 * Joins a client with the runtime's streaming server until both directions have ended, each by itself. When the
 * runtime takes no more (its command has ended, or it is gone), the client still gets all that comes of it; when the
 * runtime's side has ended, the client has a moment to close its own. Never rejects: what went wrong is logged.
 */
export async function join(joint: Joint): Promise<void> {
  const { client, runtime, clock, signal } = joint;
  const close = () => {
    client.close();
    runtime.close();
  };
  signal.addEventListener("abort", close, { once: true });
  try {
    if (signal.aborted) return;
    const up = toRuntime(joint);
    await toClient(joint);
    runtime.close();
    // Closing before the client has read everything would take it back.
    using _linger = clock.after(lingerMs, close);
    await up;
  } finally {
    signal.removeEventListener("abort", close);
    close();
  }
}

async function toRuntime({ client, runtime, log }: Joint): Promise<void> {
  let takes = true;
  try {
    for (let bytes = await client.read(); bytes; bytes = await client.read()) {
      if (!takes) continue;
      try {
        await runtime.write(bytes);
      } catch (thrown) {
        takes = false;
        log.detail(4, "the runtime takes no more of a stream", { error: messageOf(thrown) });
      }
    }
    if (takes) await runtime.closeWrite();
  } catch (thrown) {
    log.detail(4, "the client of a stream is gone", { error: messageOf(thrown) });
    runtime.close();
  }
}

async function toClient({ client, runtime, log }: Joint): Promise<void> {
  try {
    await copy(runtime, client);
  } catch (thrown) {
    log.detail(4, "a stream to a client ended early", { error: messageOf(thrown) });
  }
  await client.closeWrite();
}
