import assert from "@assert";
import type { RuntimeService } from "../../../cri/api.ts";
import { FakeHost } from "../../base/fake_host.ts";
import type { BoundPod } from "../../kube/types.ts";
import type { ObservedPod } from "../../pod/observed.ts";
import { streamingRoutes } from "./routes.ts";
import { SpdyWriter } from "./spdy.ts";
import { RawClient, sceneBackend, serve } from "./testing.ts";

const utf8 = new TextEncoder();
const uid = "u-1";
const pod = {
  metadata: { name: "web", namespace: "default", uid },
  spec: {
    containers: [{ name: "c", tty: true }, { name: "d" }, { name: "ended" }],
    initContainers: [{ name: "side" }],
  },
} as unknown as BoundPod;

function seen(more: Partial<ObservedPod> = {}): ObservedPod {
  const container = (name: string, id: string, state = "running") => ({ name, id, state });
  return {
    uid,
    name: "web",
    namespace: "default",
    sandboxes: [{ id: "s-2", ready: true, createdAt: 5 }, { id: "s-1", ready: false, createdAt: 1 }],
    containers: [
      container("c", "c-2"),
      container("c", "c-1", "exited"),
      container("side", "i-1"),
      container("d", "d-1"),
      container("ended", "e-1", "exited"),
    ],
    readAt: 0,
    ...more,
  } as unknown as ObservedPod;
}

interface Asked {
  call: string;
  request: Record<string, unknown>;
}

interface World extends AsyncDisposable {
  port: number;
  asked: Asked[];
  /** What the runtime's streaming server does with each connection. */
  onConnection: (client: RawClient, head: string) => Promise<void>;
  answer: (call: string) => void;
  observed: ObservedPod[];
  execResult: { stdout: string; stderr: string; exitCode: number };
}

/** A server with our routes before a streaming server that does what the test says. */
async function world(): Promise<World> {
  const listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const connections: Promise<void>[] = [];
  const url = (call: string) => `http://127.0.0.1:${listener.addr.port}/${call}/token`;
  const stream = (call: string) => (request: Record<string, unknown>) => {
    made.asked.push({ call, request });
    made.answer(call);
    return Promise.resolve(url(call));
  };
  const runtime = {
    exec: stream("exec"),
    attach: stream("attach"),
    portForward: stream("portforward"),
    execSync: (id: string, command: string[], timeout: number) => {
      made.asked.push({ call: "execSync", request: { id, command, timeout } });
      made.answer("execSync");
      const { stdout, stderr, exitCode } = made.execResult;
      return Promise.resolve({ stdout: utf8.encode(stdout), stderr: utf8.encode(stderr), exitCode });
    },
  } as unknown as RuntimeService;
  const backend = sceneBackend({ pods: [pod], observed: () => made.observed, runtime, host: new FakeHost() });
  let accepting = Promise.resolve();
  const server = await serve([streamingRoutes(backend)]);
  const made: World = {
    port: server.port,
    asked: [],
    onConnection: () => Promise.resolve(),
    answer: () => {},
    observed: [seen()],
    execResult: { stdout: "", stderr: "", exitCode: 0 },
    async [Symbol.asyncDispose]() {
      await server[Symbol.asyncDispose]();
      listener.close();
      await accepting;
      await Promise.allSettled(connections);
    },
  };
  accepting = (async () => {
    for await (const connection of listener) {
      connections.push((async () => {
        using client = RawClient.of(connection);
        await made.onConnection(client, await client.until("\r\n\r\n"));
      })());
    }
  })();
  return made;
}

/** A request without an upgrade, or with one that is refused: status and body. */
async function request(
  port: number,
  method: string,
  path: string,
  headers: string[] = [],
): Promise<[number, string, string]> {
  using raw = await RawClient.connect(port);
  await raw.write([`${method} ${path} HTTP/1.1`, "Host: node", "Content-Length: 0", ...headers, "", ""].join("\r\n"));
  const head = await raw.until("\r\n\r\n");
  const length = Number(/content-length: (\d+)/i.exec(head)?.[1] ?? 0);
  return [Number(head.split(" ")[1]), new TextDecoder().decode(await raw.bytes(length)), head];
}

const spdy = ["Connection: Upgrade", "Upgrade: SPDY/3.1", "X-Stream-Protocol-Version: v4.channel.k8s.io"];
const websocket = (protocol: string) => [
  "Connection: Upgrade",
  "Upgrade: websocket",
  "Sec-WebSocket-Version: 13",
  "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==",
  `Sec-WebSocket-Protocol: ${protocol}`,
];
const accepted =
  "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\nX-Stream-Protocol-Version: v4.channel.k8s.io\r\n\r\n";

/** Opens SPDY through the server; what follows is the test's own bytes. */
async function open(w: World, extra: string[] = []): Promise<RawClient> {
  const raw = await RawClient.connect(w.port);
  await raw.write(["POST /exec/default/web/c?output=1 HTTP/1.1", "Host: node", ...spdy, ...extra, "", ""].join("\r\n"));
  return raw;
}

/** Plays a runtime that speaks SPDY: takes the streams, then does what the test says with the bare connection. */
function spdyRuntime(w: World, play: (client: RawClient, writer: SpdyWriter) => Promise<void>): void {
  w.onConnection = async (client, head) => {
    assert.match(head, /X-Stream-Protocol-Version: v4\.channel\.k8s\.io/);
    await client.write(accepted);
    await play(client, new SpdyWriter());
  };
}

export { accepted, open, pod, request, seen, spdy, spdyRuntime, uid, utf8, websocket, world };
