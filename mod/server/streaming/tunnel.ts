import { httpError } from "../respond.ts";
import type { RequestContext } from "../types.ts";
import type { Clock } from "../../base/clock.ts";
import { type ByteStream, nodeStream } from "./byte_stream.ts";
import { join, keepOpen } from "./join.ts";
import { passedOn, upgradeOrRefuse } from "./proxy.ts";
import {
  binaryFrame,
  closeFrame,
  FrameParser,
  handshake,
  handshakeFault,
  offeredProtocols,
  pongFrame,
} from "./websocket.ts";

const prefix = "SPDY/3.1+";
const suffix = ".k8s.io";

/** The subprotocols of a client that wants SPDY inside a WebSocket. */
export function tunnelProtocols(context: RequestContext): string[] {
  return offeredProtocols(context.request).filter((p) => p.startsWith(prefix) && p.endsWith(suffix));
}

/** Headers that belong to the client's WebSocket, not to the SPDY inside. */
const ofWebSocket =
  /^(sec-websocket-.*|upgrade|connection|x-stream-protocol-version|content-length|transfer-encoding)$/i;

/** Ends the client's WebSocket here and carries the SPDY inside it to the runtime's streaming server, as it is. */
export async function tunnel(context: RequestContext, clock: Clock, url: URL): Promise<void> {
  const fault = handshakeFault(context.request);
  if (fault !== undefined) return httpError(context, 400, `unable to upgrade: ${fault}`);
  const protocols = tunnelProtocols(context);
  const plain = passedOn(context);
  const answer = await upgradeOrRefuse(context, clock, url, {
    method: "POST",
    headers: [
      ...plain.headers.filter(([name]) => !ofWebSocket.test(name)),
      ["Connection", "Upgrade"],
      ["Upgrade", "SPDY/3.1"],
      ...protocols.map((p): [string, string] => ["X-Stream-Protocol-Version", p.slice(prefix.length)]),
    ],
  });
  if (!answer) return;
  const chosen = answer.headers.get("x-stream-protocol-version") ?? protocols[0]?.slice(prefix.length) ?? "";
  const { socket, head } = context.takeSocket();
  keepOpen(socket);
  const bare = nodeStream(socket, head);
  try {
    await bare.write(handshake(context.request, prefix + chosen));
  } catch {
    // Gone already: the join below finds the same.
    bare.close();
  }
  await join({
    client: insideWebSocket(bare),
    runtime: answer.stream,
    clock,
    signal: context.signal,
    log: context.log,
  });
}

/** The bytes inside a client's WebSocket messages, as one stream. */
function insideWebSocket(bare: ByteStream): ByteStream {
  const parser = new FrameParser();
  const pieces: Uint8Array[] = [];
  let over = false;
  let writing = Promise.resolve();
  const write = (frame: Uint8Array) => {
    const done = writing.then(() => bare.write(frame));
    // The failure is the writer's to see; the next one finds the connection closed by itself.
    writing = done.catch(() => {});
    return done;
  };
  const more = async () => {
    const bytes = await bare.read();
    if (!bytes) over = true;
    for (const event of bytes ? parser.push(bytes) : []) {
      if (event.kind === "data") pieces.push(event.bytes);
      else if (event.kind === "ping") await write(pongFrame(event.bytes));
      else {
        over = true;
        if (event.kind === "broken") await write(closeFrame(1002, event.why));
      }
    }
  };
  return {
    async read() {
      while (pieces.length === 0 && !over) await more();
      return pieces.shift();
    },
    write: (bytes) => write(binaryFrame(bytes)),
    async closeWrite() {
      // A client that is gone needs no farewell.
      await write(closeFrame(1000)).catch(() => {});
      await bare.closeWrite();
    },
    close: () => bare.close(),
  };
}
