import assert from "@assert";
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { Connections } from "./connections.ts";
import { startServer } from "./testing.ts";
import type { RequestContext, RouteGroup } from "./types.ts";

let port = 1;

/** A socket that knows whether it was closed. */
class FakeSocket extends EventEmitter {
  readonly remoteAddress: string | undefined = "10.0.0.1";
  readonly remotePort: number;
  destroyed = false;
  constructor(remotePort = port++) {
    super();
    this.remotePort = remotePort;
  }
  destroy(): void {
    if (this.destroyed) return;
    this.destroyed = true;
    this.emit("close");
  }
}

function scene(limit: number) {
  const counts = { closed: 0 };
  const connections = new Connections({ limit, onClosed: () => counts.closed++ });
  const open = () => {
    const socket = new FakeSocket();
    connections.opened(socket as unknown as Socket);
    return socket;
  };
  const busy = (socket: FakeSocket) => connections.busy(socket as unknown as Socket);
  return { counts, connections, open, busy };
}

Deno.test("of more idle connections than the limit those go that have been idle for the longest", () => {
  const { counts, connections, open, busy } = scene(3);
  const sockets = [open(), open(), open()] as const;
  const [first, second, third] = sockets;
  // The first one was asked something meanwhile: it is not the oldest any more.
  busy(first)[Symbol.dispose]();
  const fourth = open();
  assert.deepEqual([first, second, third, fourth].map((one) => one.destroyed), [false, true, false, false]);
  assert.equal(connections.idle, 3);
  fourth.destroy();
  assert.equal(connections.idle, 2);
  assert.equal(counts.closed, 1);
});

Deno.test("a connection with a request under way, or that was upgraded, is never closed for others", () => {
  const { connections, open, busy } = scene(1);
  const streaming = open();
  const requests = [busy(streaming), busy(streaming)];
  const others = Array.from({ length: 50 }, open);
  assert.equal(streaming.destroyed, false);
  assert.equal(others.filter((one) => !one.destroyed).length, 1);
  requests[0]?.[Symbol.dispose]();
  requests[0]?.[Symbol.dispose]();
  open();
  assert.equal(streaming.destroyed, false, "the other request goes on");
  requests[1]?.[Symbol.dispose]();
  assert.equal(connections.idle, 1);
  assert.equal(streaming.destroyed, false, "it is the one that became idle last");
  open();
  assert(streaming.destroyed);
});

Deno.test("what is closed is the socket above TLS; a late end of a request of a closed connection counts for nothing", () => {
  const { connections, open, busy } = scene(1);
  const raw = open();
  const secure = new FakeSocket(raw.remotePort);
  connections.secured(secure as unknown as Socket);
  const request = busy(secure);
  raw.destroy();
  request[Symbol.dispose]();
  assert.equal(connections.idle, 0);
  const other = open();
  connections.secured(new FakeSocket(other.remotePort) as unknown as Socket);
  connections.closeAll();
  assert.equal(other.destroyed, false);
});

for (const secure of [false, true]) {
  Deno.test(`a server with too many idle connections${secure ? " over TLS" : ""} keeps the stream and the newest`, async () => {
    const go = Promise.withResolvers<void>();
    const begun = Promise.withResolvers<void>();
    const group: RouteGroup = {
      name: "stream",
      access: "A",
      buckets: ["stream"],
      routes: [{
        methods: "*",
        path: "/stream",
        handler: async ({ response }: RequestContext) => {
          response.write("first ");
          begun.resolve();
          await go.promise;
          response.end("last");
        },
      }],
    };
    await using server = await startServer({ readOnlyPort: -1 }, {
      idleLimit: 2,
      prepare: (made) => made.register(group),
    });
    const connect = async (): Promise<Deno.Conn> => {
      if (!secure) return await Deno.connect({ hostname: "127.0.0.1", port: server.readOnly });
      const caCerts = [await Deno.readTextFile(`${server.dir}/serving-ca.crt`)];
      const made = await Deno.connectTls({ hostname: "127.0.0.1", port: server.https, caCerts });
      await made.handshake();
      return made;
    };
    using streaming = await connect();
    const send = async (connection: Deno.Conn, path: string) =>
      void await connection.write(
        new TextEncoder().encode(`GET ${path} HTTP/1.1\r\nhost: n\r\nconnection: close\r\n\r\n`),
      );
    await send(streaming, "/stream");
    await begun.promise;
    const idle: Deno.Conn[] = [];
    for (let i = 0; i < 5; i++) idle.push(await connect());
    const ended = async (connection: Deno.Conn) => {
      const read = await connection.read(new Uint8Array(1)).catch(() => null);
      connection.close();
      return read === null;
    };
    // They come in the order in which they were made.
    assert.deepEqual(await Promise.all(idle.slice(0, 3).map(ended)), [true, true, true]);
    for (const connection of idle.slice(3)) {
      await send(connection, "/healthz");
      assert.match(await new Response(connection.readable).text(), /^HTTP\/1\.1 200 /);
    }
    go.resolve();
    assert.match(await new Response(streaming.readable).text(), /first [^]*last/);
  });
}
