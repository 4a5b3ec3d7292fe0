import assert from "@assert";
import { EventEmitter } from "node:events";
import type { Socket } from "node:net";
import { send } from "./respond.ts";
import { startServer } from "./testing.ts";
import { Turns } from "./turns.ts";
import type { RequestContext, RouteGroup } from "./types.ts";

/** A page that is slow until it is told to go on, what is known of its requests, and a way to send them ahead. */
async function slowPage() {
  const seen = { begun: 0, atOnce: 0, most: 0 };
  const gate = Promise.withResolvers<void>();
  const twoBegun = Promise.withResolvers<void>();
  const handler = async (context: RequestContext) => {
    if (++seen.begun === 2) twoBegun.resolve();
    seen.most = Math.max(seen.most, ++seen.atOnce);
    await gate.promise;
    seen.atOnce--;
    send(context, 200, "page\n");
  };
  const group: RouteGroup = {
    name: "page",
    access: "A",
    buckets: ["page"],
    routes: [{ methods: "*", path: "/page", handler }],
  };
  const server = await startServer({ readOnlyPort: -1 }, { prepare: (made) => made.register(group) });
  const ask = async (times: number) => {
    const connection = await Deno.connect({ hostname: "127.0.0.1", port: server.readOnly });
    await connection.write(new TextEncoder().encode("GET /page HTTP/1.1\r\nhost: n\r\n\r\n".repeat(times)));
    return connection;
  };
  return { server, seen, gate, twoBegun, ask };
}

async function readPages(connection: Deno.TcpConn, pages: number): Promise<void> {
  const buffer = new Uint8Array(4096);
  for (let text = ""; text.split("page\n").length <= pages;) {
    const read = await connection.read(buffer);
    if (read === null) throw new Error(`closed after ${text}`);
    text += new TextDecoder().decode(buffer.subarray(0, read));
  }
}

Deno.test("requests of one connection are answered one after another; those of a client that has left are not begun", async () => {
  const { server, seen, gate, twoBegun, ask } = await slowPage();
  await using _server = server;
  using staying = await ask(5);
  const leaving = await ask(100);
  await twoBegun.promise;
  leaving.close();
  // The server knows of it by the time that it has answered one who came later.
  const { status } = await fetch(`http://127.0.0.1:${server.readOnly}/healthz`, { headers: { connection: "close" } });
  assert.equal(status, 200);
  gate.resolve();
  await readPages(staying, 5);
  assert.deepEqual(seen, { begun: 6, atOnce: 0, most: 2 });
});

Deno.test("a client that sends thousands of requests ahead is cut off", async () => {
  const { server, gate, ask } = await slowPage();
  await using _server = server;
  using flooding = await ask(5000);
  await assert.rejects(readPages(flooding, 1), /closed after|reset/i);
  gate.resolve();
});

Deno.test("an urgent request waits for those of its own connection, not for the turns of others", async () => {
  const turns = new Turns();
  const socket = () => new EventEmitter() as Socket;
  const order: string[] = [];
  const all: Promise<void>[] = [];
  const take = (from: Socket, name: string, urgent: boolean) => {
    const { promise, resolve } = Promise.withResolvers<void>();
    all.push(promise);
    turns.take(from, () => {
      order.push(name);
      resolve();
      return Promise.resolve();
    }, urgent);
  };
  for (let i = 0; i < 200; i++) take(socket(), `page ${i}`, false);
  const own = socket();
  take(own, "before", false);
  take(own, "health after it", true);
  take(socket(), "health", true);
  await Promise.all(all);
  assert(order.indexOf("health") < 2, order.slice(0, 5).join());
  assert(order.indexOf("health after it") > order.indexOf("before"));
});
