import assert from "@assert";
import { FakeClock } from "../base/fake_clock.ts";
import { ask, startServer, TestBackend } from "./testing.ts";
import type { Route } from "./types.ts";

/** Sends bytes as they are and reads until the server closes. */
async function raw(port: number, text: string, options: { half?: boolean } = {}): Promise<string> {
  using connection = await Deno.connect({ hostname: "127.0.0.1", port });
  const answer = new Response(connection.readable).text();
  const writer = connection.writable.getWriter();
  try {
    await writer.write(new TextEncoder().encode(text));
    if (options.half) await connection.closeWrite();
  } catch {
    // The server may close before it has read all; what it said is still there to be read.
  }
  return await answer.catch(() => "reset");
}

const close = "Connection: close\r\n\r\n";

Deno.test("what is no request, or too much of one, is refused in the reference's words", async () => {
  await using server = await startServer({ readOnlyPort: -1 });
  const cases: { name: string; text: string; answer: RegExp; half?: boolean }[] = [
    {
      name: "a query of 900 kB",
      text: `GET /healthz?${"a=1&".repeat(225_000)} HTTP/1.1\r\nHost: a\r\n${close}`,
      answer: /^HTTP\/1\.1 200 /,
    },
    {
      name: "a header over 1 MiB",
      text: `GET /healthz HTTP/1.1\r\nHost: a\r\nX: ${"a".repeat(1_200_000)}\r\n${close}`,
      answer: /^(HTTP\/1\.1 431 Request Header Fields Too Large\r\n|reset)/,
    },
    {
      name: "no HTTP",
      text: "\x16\x03\x01 hello\r\n\r\n",
      answer: /^HTTP\/1\.1 400 Bad Request\r\n[^]*400 Bad Request$/,
    },
    { name: "no host", text: `GET /healthz HTTP/1.1\r\n${close}`, answer: /^HTTP\/1\.1 400 / },
    {
      name: "two lengths",
      text: `POST /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 1\r\nContent-Length: 2\r\n${close}`,
      answer: /^HTTP\/1\.1 400 /,
    },
    {
      name: "a length and chunks",
      text: `POST /healthz HTTP/1.1\r\nHost: a\r\nContent-Length: 4\r\nTransfer-Encoding: chunked\r\n${close}0\r\n\r\n`,
      answer: /^HTTP\/1\.1 400 /,
    },
    { name: "absolute form", text: `GET http://a/healthz HTTP/1.1\r\nHost: a\r\n${close}`, answer: /^HTTP\/1\.1 200 / },
    { name: "asterisk", text: `OPTIONS * HTTP/1.1\r\nHost: a\r\n${close}`, answer: /^HTTP\/1\.1 400 / },
    { name: "half-closed", text: "GET /healthz HTTP/1.1\r\nHost: a\r\n\r\n", half: true, answer: /\r\n\r\nok$/ },
    {
      name: "two at once",
      text: `GET /healthz HTTP/1.1\r\nHost: a\r\n\r\nGET /nothing HTTP/1.1\r\nHost: a\r\n${close}`,
      answer: /^HTTP\/1\.1 200 [^]*ok[^]*HTTP\/1\.1 404 /,
    },
  ];
  for (const { name, text, answer, half } of cases) {
    assert.match(await raw(server.readOnly, text, half ? { half } : {}), answer, name);
  }
  assert.equal((await ask(`http://127.0.0.1:${server.readOnly}/healthz`)).status, 200);
});

Deno.test("a body that nobody wants ends the connection after the answer", async () => {
  await using server = await startServer({ readOnlyPort: -1 });
  const endless = `POST /nothing HTTP/1.1\r\nHost: a\r\nTransfer-Encoding: chunked\r\n\r\n5\r\nhello\r\n`;
  assert.match(await raw(server.readOnly, endless), /^HTTP\/1\.1 404 /);
});

Deno.test("hundreds of idle connections keep nobody out, and none is left at the end", async () => {
  const idle: Deno.TcpConn[] = [];
  {
    await using server = await startServer({ readOnlyPort: -1 });
    for (let n = 0; n < 300; n++) idle.push(await Deno.connect({ hostname: "127.0.0.1", port: server.readOnly }));
    assert.equal((await ask(`http://127.0.0.1:${server.readOnly}/healthz`)).body, "ok");
  }
  for (const connection of idle) {
    const got = await connection.read(new Uint8Array(1)).catch(() => null);
    assert.equal(got, null);
    connection.close();
  }
});

Deno.test("an answer may take 4 h; a handler hears that its client is gone, and that the server ends", async () => {
  const begun: PromiseWithResolvers<void>[] = [];
  const ended: PromiseWithResolvers<void>[] = [];
  let at = 0;
  const routes: Route[] = [{
    methods: "*",
    path: "/slow",
    handler: async ({ signal, response }) => {
      const n = at++;
      response.write("x");
      begun[n]?.resolve();
      await new Promise<void>((resolve) => signal.addEventListener("abort", () => resolve()));
      ended[n]?.resolve();
    },
  }];
  for (let n = 0; n < 3; n++) {
    begun.push(Promise.withResolvers());
    ended.push(Promise.withResolvers());
  }
  const backend = new TestBackend();
  const clock = new FakeClock();
  Object.assign(backend, { clock });
  let last: Promise<string>;
  {
    await using server = await startServer({ readOnlyPort: -1 }, {
      backend,
      prepare: (s) => s.register({ name: "t", access: "A", buckets: [], routes }),
    });
    const slow = "GET /slow HTTP/1.1\r\nHost: a\r\n\r\n";
    const first = raw(server.readOnly, slow);
    await begun[0]?.promise;
    await clock.advance(4 * 3_600_000 + 1);
    await ended[0]?.promise;
    await first;
    {
      using connection = await Deno.connect({ hostname: "127.0.0.1", port: server.readOnly });
      await connection.write(new TextEncoder().encode(slow));
      await begun[1]?.promise;
    }
    await ended[1]?.promise;
    last = raw(server.readOnly, slow);
    await begun[2]?.promise;
  }
  await ended[2]?.promise;
  await last;
});
