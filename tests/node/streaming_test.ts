import assert from "@assert";
import type { MutatingOptions, RuntimeService } from "../../cri/api.ts";
import { createRuntimeClient } from "../../cri/grpc.ts";
import { createDenoHost } from "../../mod/base/deno_host.ts";
import type { BoundPod, ContainerStatus, PodStatus } from "../../mod/kube/types.ts";
import type { ObservedContainer, ObservedPod } from "../../mod/pod/observed.ts";
import { containerLogsRoutes } from "../../mod/server/container_logs.ts";
import { streamingRoutes } from "../../mod/server/streaming/routes.ts";
import { SpdyParser, SpdyWriter } from "../../mod/server/streaming/spdy.ts";
import { clientFrame, RawClient, sceneBackend, serve, WebSocketClient } from "../../mod/server/streaming/testing.ts";
import { removeCgroup } from "../../scripts/node/cgroups.ts";
import { versions, withContainerd } from "./harness.ts";

const options: MutatingOptions = { because: { reason: "Test", message: "the streaming test" } };
const uid = "0f3c-streaming";
/** Of this run alone. */
const group = `/denolet-streaming-${Deno.pid}`;

/** A pod of three containers, made without an agent. */
interface World {
  port: number;
  runtime: RuntimeService;
  logDir: string;
}

async function withPod(version: (typeof versions)[number], test: (world: World) => Promise<void>): Promise<void> {
  await withContainerd({ name: `stream-${version}`, containerd: version }, async (containerd) => {
    const logDir = await Deno.makeTempDir({ prefix: "denolet-streaming-" });
    using runtime = createRuntimeClient({ endpoint: containerd.endpoint, timeoutMs: 60_000 });
    const labels = { "io.kubernetes.pod.uid": uid };
    const config = {
      metadata: { name: "web", namespace: "default", uid, attempt: 0 },
      hostname: "web",
      logDirectory: logDir,
      labels,
      linux: { cgroupParent: group },
    };
    const sandbox = await runtime.runPodSandbox(config, "", options);
    try {
      const containers: ObservedContainer[] = [];
      const make = async (name: string, image: string, command: string[], more = {}) => {
        const id = await runtime.createContainer({
          sandboxId: sandbox,
          sandboxConfig: config,
          config: {
            metadata: { name, attempt: 0 },
            image: { image },
            command,
            logPath: `${name}.log`,
            labels,
            ...more,
          },
        }, options);
        await runtime.startContainer(id, options);
        containers.push({ id, name, sandboxId: sandbox, state: "running" } as ObservedContainer);
      };
      await make("box", "localhost/busybox:1", ["sh", "-c", "trap 'exit 0' TERM; sleep 86400 & wait $!"]);
      await make("web", "localhost/web:1", []);
      await make("cat", "localhost/busybox:1", ["sh", "-c", "while read l; do echo got $l; done"], { stdin: true });
      // It lives on for a moment: containerd 1.6 can lose what a container writes at its very end on a busy machine.
      await make("logger", "localhost/busybox:1", [
        "sh",
        "-c",
        "i=0; while [ $i -lt 60000 ]; do echo line $i; i=$((i+1)); done; head -c 70000 /dev/zero | tr '\\0' z; echo; sleep 2",
      ]);
      const observed: ObservedPod = {
        uid,
        name: "web",
        namespace: "default",
        sandboxes: [{ id: sandbox, ready: true, createdAt: 1 } as ObservedPod["sandboxes"][number]],
        containers,
        readAt: 0,
      };
      const pod = {
        metadata: { name: "web", namespace: "default", uid },
        spec: { containers: containers.map((c) => ({ name: c.name, image: "i" })) },
      } as BoundPod;
      const containerStatuses = containers.map((c) => ({
        name: c.name,
        containerID: `containerd://${c.id}`,
        state: { running: {} },
      })) as ContainerStatus[];
      const backend = sceneBackend({
        pods: [pod],
        statuses: { [uid]: { containerStatuses } as PodStatus },
        observed: () => [observed],
        runtime,
        host: createDenoHost(),
      });
      await using server = await serve([streamingRoutes(backend), containerLogsRoutes(backend)]);
      await test({ port: server.port, runtime, logDir });
    } finally {
      await runtime.stopPodSandbox(sandbox, options);
      await runtime.removePodSandbox(sandbox, options);
      await Deno.remove(logDir, { recursive: true });
      await removeCgroup(group);
    }
  });
}

const exec = (container: string, streams: string, ...argv: string[]) =>
  `/exec/default/web/${container}?${streams}${argv.map((a) => `&command=${encodeURIComponent(a)}`).join("")}`;
const all = "input=1&output=1&error=1";

async function webSockets({ port }: World): Promise<void> {
  for (const protocol of ["v5.channel.k8s.io", "v4.channel.k8s.io"]) {
    const script = "read a; echo out $a; echo err >&2; exit 3";
    using client = await WebSocketClient.open(port, exec("box", all, "sh", "-c", script), [protocol]);
    assert.equal(client.status, 101, client.head);
    assert.match(client.head, new RegExp(`sec-websocket-protocol: ${protocol}`, "i"));
    await client.send(0, "hello\n");
    const [, stdout, stderr, status] = await client.channels();
    assert.deepEqual([stdout, stderr], ["out hello\n", "err\n"], protocol);
    const { reason, details } = JSON.parse(status ?? "");
    assert.deepEqual([reason, details.causes[0]], ["NonZeroExitCode", { reason: "ExitCode", message: "3" }], protocol);
  }
  {
    // Only v5 can end the standard input: cat and wc end by it.
    using client = await WebSocketClient.open(port, exec("box", all, "wc", "-c"), [
      "v5.channel.k8s.io",
      "v4.channel.k8s.io",
    ]);
    for (let i = 0; i < 64; i++) await client.send(0, new Uint8Array(16_384));
    await client.send(255, Uint8Array.of(0));
    const [, stdout, , status] = await client.channels();
    assert.equal(stdout?.trim(), String(64 * 16_384));
    assert.equal(JSON.parse(status ?? "").status, "Success");
  }
  {
    const script = "trap 'stty size; exit' WINCH; echo ready; while :; do sleep 0.1; done";
    using client = await WebSocketClient.open(port, exec("box", "input=1&output=1&tty=1", "sh", "-c", script), [
      "v5.channel.k8s.io",
    ]);
    await client.send(4, '{"Width":100,"Height":33}');
    await client.text(1, "ready");
    await client.send(4, '{"Width":101,"Height":44}');
    assert.match((await client.channels())[1] ?? "", /44 101/);
  }
  {
    using client = await WebSocketClient.open(port, exec("box", "output=1", "sh", "-c", "head -c 50000000 /dev/zero"), [
      "v5.channel.k8s.io",
    ]);
    let size = 0;
    for (let frame = await client.frame(); frame.op !== 8; frame = await client.frame()) {
      if (frame.payload[0] === 1) size += frame.payload.length - 1;
    }
    assert.equal(size, 50_000_000);
  }
  {
    using client = await WebSocketClient.open(port, exec("box", "output=1", "/no/such"), ["v5.channel.k8s.io"]);
    const [, , , status] = await client.channels();
    assert.equal(JSON.parse(status ?? "").status, "Failure", status);
  }
}

/** Opens SPDY on a path and returns the bare connection behind the head. */
async function spdy(port: number, path: string, protocol: string): Promise<RawClient> {
  const raw = await RawClient.connect(port);
  await raw.write([
    `POST ${path} HTTP/1.1`,
    "Host: node",
    "Connection: Upgrade",
    "Upgrade: SPDY/3.1",
    `X-Stream-Protocol-Version: ${protocol}`,
    "Content-Length: 0",
    "",
    "",
  ].join("\r\n"));
  const head = await raw.until("\r\n\r\n");
  assert.match(head, /^HTTP\/1.1 101 /, head);
  assert.match(head, new RegExp(`x-stream-protocol-version: ${protocol}`, "i"));
  return raw;
}

/** What comes on each SPDY stream until those have ended. */
async function spdyStreams(next: () => Promise<Uint8Array | undefined>, ids: number[]): Promise<Map<number, string>> {
  const parser = new SpdyParser();
  const left = new Set(ids);
  const texts = new Map<number, string>();
  while (left.size > 0) {
    const bytes = await next();
    if (!bytes) break;
    for (const event of parser.push(bytes)) {
      if (event.kind !== "data") continue;
      texts.set(event.stream, (texts.get(event.stream) ?? "") + new TextDecoder().decode(event.bytes));
      if (event.fin) left.delete(event.stream);
    }
  }
  return texts;
}

async function spdyExec({ port }: World): Promise<void> {
  using raw = await spdy(port, exec("box", all, "sh", "-c", "cat; echo err >&2; exit 7"), "v4.channel.k8s.io");
  const writer = new SpdyWriter();
  for (const [i, streamType] of ["error", "stdin", "stdout", "stderr"].entries()) {
    await raw.write(writer.open(i * 2 + 1, { streamType }));
  }
  await raw.write(writer.data(3, new TextEncoder().encode("from stdin\n"), true));
  const texts = await spdyStreams(() => raw.some(), [1, 5, 7]);
  assert.equal(texts.get(5), "from stdin\n");
  assert.equal(texts.get(7), "err\n");
  assert.match(texts.get(1) ?? "", /"ExitCode","message":"7"/);
}

const get = "GET / HTTP/1.0\r\n\r\n";

async function portForward({ port }: World): Promise<void> {
  const path = "/portForward/default/web";
  const open = (writer: SpdyWriter) => [
    writer.open(1, { streamType: "error", port: "80", requestID: "0" }),
    writer.open(3, { streamType: "data", port: "80", requestID: "0" }),
    writer.data(3, new TextEncoder().encode(get)),
  ];
  {
    using raw = await spdy(port, path, "portforward.k8s.io");
    for (const frame of open(new SpdyWriter())) await raw.write(frame);
    assert.match((await spdyStreams(() => raw.some(), [3])).get(3) ?? "", /It runs/);
  }
  {
    using client = await WebSocketClient.open(port, path, ["SPDY/3.1+portforward.k8s.io"]);
    assert.equal(client.status, 101, client.head);
    assert.match(client.head, /sec-websocket-protocol: SPDY\/3\.1\+portforward\.k8s\.io/i);
    for (const frame of open(new SpdyWriter())) await client.raw.write(clientFrame(frame));
    const texts = await spdyStreams(async () => (await client.frame()).payload, [3]);
    assert.match(texts.get(3) ?? "", /It runs/);
  }
  {
    using client = await WebSocketClient.open(port, `${path}?port=80`, ["v4.channel.k8s.io"]);
    assert.equal(client.status, 101, client.head);
    assert.deepEqual([...(await client.frame()).payload], [0, 80, 0]);
    assert.deepEqual([...(await client.frame()).payload], [1, 80, 0]);
    await client.send(0, get);
    assert.match((await client.channels())[0] ?? "", /It runs/);
  }
}

async function attachAndRun({ port }: World): Promise<void> {
  for (const protocol of ["v5.channel.k8s.io", "v4.channel.k8s.io"]) {
    using client = await WebSocketClient.open(port, "/attach/default/web/cat?input=1&output=1", [protocol]);
    assert.equal(client.status, 101, client.head);
    await client.send(0, `${protocol}\n`);
    await client.text(1, `got ${protocol}\n`);
  }
  const run = (cmd: string) =>
    fetch(`http://127.0.0.1:${port}/run/default/web/box?cmd=${encodeURIComponent(cmd)}`, { method: "POST" });
  const good = await run("echo a b");
  assert.deepEqual([good.status, await good.text()], [200, "a b\n"]);
  const bad = await run("ls /none");
  assert.equal(bad.status, 500);
  assert.match(await bad.text(), /^command 'ls \/none' exited with 1: ls: \/none/);
  const none = await fetch(`http://127.0.0.1:${port}/run/default/web/nope?cmd=x`, { method: "POST" });
  assert.deepEqual([none.status, await none.text()], [500, 'container not found ("nope")']);
}

async function logs({ port, runtime, logDir }: World): Promise<void> {
  const url = `http://127.0.0.1:${port}/containerLogs/default/web/logger`;
  // Follows while the file is rotated under the container's hands.
  const reader = (await fetch(`${url}?follow=true`)).body?.pipeThrough(new TextDecoderStream()).getReader();
  if (!reader) throw new Error("the answer has no body");
  let text = (await reader.read()).value ?? "";
  const id = (await runtime.listContainers()).find((c) => c.metadata?.name === "logger")?.id ?? "";
  await Deno.rename(`${logDir}/logger.log`, `${logDir}/logger.log.1`);
  await runtime.reopenContainerLog(id, options);
  for (let part = await reader.read(); !part.done; part = await reader.read()) text += part.value;
  const z = "z".repeat(70_000);
  const want = Array.from({ length: 60_000 }, (_, i) => `line ${i}\n`).join("");
  assert.equal(text.length, want.length + z.length + 1);
  assert.equal(text, `${want}${z}\n`);
  // Parts of 16 KiB: five lines of the file make the last one.
  assert.equal(await (await fetch(`${url}?tailLines=5`)).text(), `${z}\n`);
  const stamped = await (await fetch(`${url}?tailLines=5&timestamps=1`)).text();
  assert.match(stamped, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d{9}(Z|[+-]\d\d:\d\d) z{70000}\n$/);
}

for (const version of versions) {
  Deno.test(`exec, attach, port-forward, run and logs over HTTP on containerd ${version}`, async (t) => {
    await withPod(version, async (world) => {
      await t.step("logs -f across a rotated file", () => logs(world));
      await t.step("WebSockets v5 and v4", () => webSockets(world));
      await t.step("SPDY", () => spdyExec(world));
      await t.step("port-forward: SPDY, tunnelled SPDY, WebSocket", () => portForward(world));
      await t.step("attach and run", () => attachAndRun(world));
    });
  });
}
