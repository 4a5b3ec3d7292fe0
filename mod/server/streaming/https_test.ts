import assert from "@assert";
import type { RuntimeService } from "../../../cri/api.ts";
import { FakeHost } from "../../base/fake_host.ts";
import type { BoundPod } from "../../kube/types.ts";
import type { ObservedPod } from "../../pod/observed.ts";
import { makeAuthority, startServer } from "../testing.ts";
import { streamingRoutes } from "./routes.ts";
import { RawClient, sceneBackend } from "./testing.ts";

const accepted = "HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n";

Deno.test("over TLS: bytes both ways, whole, and the runtime's end is the client's", async () => {
  using listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
  const port = listener.addr.port;
  const size = 32 * 2 ** 20;
  const piece = new Uint8Array(65_536).fill(7);
  const runtimeDone = (async () => {
    using client = RawClient.of(await listener.accept());
    await client.until("\r\n\r\n");
    await client.write(accepted);
    const writing = (async () => {
      for (let sent = 0; sent < size; sent += piece.length) await client.write(piece);
    })();
    assert.ok((await client.bytes(1000)).every((byte) => byte === 7));
    for (let got = 1000; got < size;) got += (await client.some())?.length ?? size * 2;
    await writing;
    await client.write("late");
  })();
  const pod = {
    metadata: { name: "web", namespace: "default", uid: "u" },
    spec: { containers: [{ name: "c" }] },
  } as unknown as BoundPod;
  const observed = {
    uid: "u",
    name: "web",
    namespace: "default",
    sandboxes: [{ id: "s", ready: true, createdAt: 1 }],
    containers: [{ id: "c1", name: "c", state: "running" }],
  } as unknown as ObservedPod;
  const backend = sceneBackend({
    pods: [pod],
    observed: () => [observed],
    runtime: { exec: () => Promise.resolve(`http://127.0.0.1:${port}/exec/t`) } as unknown as RuntimeService,
    host: new FakeHost(),
  });
  const authority = await makeAuthority("test-ca");
  const pair = await authority.certify("CN=node1", { usage: "server" });
  const dir = await Deno.makeTempDir({ prefix: "denolet-https-" });
  await Deno.writeTextFile(`${dir}/cert`, pair.cert);
  await Deno.writeTextFile(`${dir}/key`, pair.key);
  await using server = await startServer({ tlsCertFile: `${dir}/cert`, tlsPrivateKeyFile: `${dir}/key` }, {
    dir,
    prepare: (s) => s.register(streamingRoutes(backend)),
  });
  using client = RawClient.of(
    await Deno.connectTls({ hostname: "127.0.0.1", port: server.https, caCerts: [authority.cert] }),
  );
  await client.write("POST /exec/default/web/c?input=1&output=1 HTTP/1.1\r\nHost: n\r\n");
  await client.write("Connection: Upgrade\r\nUpgrade: SPDY/3.1\r\n\r\n");
  assert.match(await client.until("\r\n\r\n"), /^HTTP\/1.1 101 /);
  const sending = (async () => {
    for (let sent = 0; sent < size; sent += piece.length) await client.write(piece);
  })();
  let got = 0;
  let end = "";
  for (let bytes = await client.some(); bytes; bytes = await client.some()) {
    got += bytes.length;
    end = new TextDecoder().decode(bytes.subarray(-4));
  }
  await sending;
  await runtimeDone;
  assert.equal(got, size + 4);
  assert.equal(end, "late");
});
