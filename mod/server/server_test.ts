import assert from "@assert";
import { ask, startServer, TestBackend, testConfig } from "./testing.ts";
import { createServer } from "./server.ts";
import type { RequestFacts, Route } from "./types.ts";

interface Case {
  readonly path: string;
  readonly method?: string;
  readonly body?: string;
  readonly headers?: Record<string, string>;
  readonly status: number;
  /** The whole answer, or what it must match. */
  readonly text?: string | RegExp;
  readonly header?: Readonly<Record<string, string>>;
}

async function run(port: string, cases: readonly Case[]): Promise<void> {
  for (const { path, method = "GET", body, headers, status, text, header } of cases) {
    const answer = await ask(`${port}${path}`, {
      method,
      path,
      ...(headers ? { headers } : {}),
      ...(body === undefined ? {} : { body }),
    });
    const what = `${method} ${path.slice(0, 80)}`;
    assert.equal(answer.status, status, `${what}: ${answer.body}`);
    if (typeof text === "string") assert.equal(answer.body, text, what);
    else if (text) assert.match(answer.body, text, what);
    for (const [name, value] of Object.entries(header ?? {})) assert.equal(answer.headers[name], value, what);
  }
}

const notFound = "404 page not found\n";
const none = '{"kind":"PodList","apiVersion":"v1","metadata":{},"items":null}';

Deno.test("the HTTPS server answers each path as the contract says", async () => {
  await using server = await startServer({}, {
    prepare: (s) => {
      s.registerText("/metrics", () => "a 1\n");
      s.registerText("/metrics/resource", () => {
        throw new Error("no statistics");
      });
      s.registerText("/stats/summary", ({ query }) => ({ body: `{"q":"${query}"}`, contentType: "application/json" }));
    },
  });
  await run(`https://127.0.0.1:${server.https}`, [
    { path: "/healthz", status: 200, text: "ok" },
    { path: "/healthz", method: "POST", status: 200, text: "ok" },
    { path: "/healthz?verbose", status: 200, text: "[+]ping ok\n[+]syncloop ok\nhealthz check passed\n" },
    { path: "/healthz/syncloop", status: 200, text: "ok" },
    { path: "/healthz/nothing", status: 404, text: notFound },
    { path: "/", status: 404, text: notFound },
    { path: "/nothing", status: 404, text: notFound, header: { "x-content-type-options": "nosniff" } },
    { path: "/pods", status: 200, text: none, header: { "content-type": "application/json" } },
    { path: "/pods/", status: 200, text: none },
    { path: "/pods", method: "HEAD", status: 405 },
    { path: "/pods", method: "POST", status: 405, text: "405: Method Not Allowed", header: { allow: "GET" } },
    { path: "/pods/x", status: 404, text: "404: Page Not Found" },
    { path: "/pods", headers: { accept: "text/html" }, status: 406, text: /^406: Not Acceptable\n\nAvailable/ },
    { path: "//pods", status: 307, header: { location: "/pods" } },
    { path: "/x/../pods?a=1", status: 307, header: { location: "/pods?a=1" } },
    { path: "/x/%2e%2e/pods", status: 404, text: notFound },
    { path: "/pods%2Fx", status: 404, text: notFound },
    { path: "/%zz", status: 400, text: "400 Bad Request" },
    { path: "/%00", status: 404, text: notFound },
    {
      path: "/runningpods?a=<b>",
      status: 307,
      text: '<a href="/runningpods/?a=&#60;b&#62;">Temporary Redirect</a>.\n\n',
    },
    { path: "/runningpods", method: "POST", status: 307, text: "", header: { location: "/runningpods/" } },
    { path: "/runningpods", status: 307, header: { location: "/runningpods/" } },
    { path: "/runningpods/", status: 200, text: none },
    { path: "/configz", status: 200, text: /^\{"kubeletconfig":\{"kind":"KubeletConfiguration"/ },
    {
      path: "/metrics",
      status: 200,
      text: "a 1\n",
      header: { "content-type": "text/plain; version=0.0.4; charset=utf-8; escaping=underscores" },
    },
    { path: "/metrics/", status: 404, text: notFound },
    { path: "/metrics/resource", status: 500, text: "no statistics\n" },
    { path: "/stats", status: 307, header: { location: "/stats/" } },
    { path: "/stats/", status: 404, text: "404: Page Not Found" },
    { path: "/stats/summary?only_cpu_and_memory=true", status: 200, text: '{"q":"only_cpu_and_memory=true"}' },
    { path: "/stats/summary", method: "POST", status: 200 },
    { path: "/stats/summary", method: "PUT", status: 405, header: { allow: "GET, POST" } },
    { path: "/checkpoint/ns/p/c", status: 405, header: { allow: "POST" } },
    { path: "/checkpoint/ns/p/c", method: "POST", status: 404, text: "pod does not exist" },
    { path: "/checkpoint/ns/p", method: "POST", status: 404, text: "404: Page Not Found" },
    { path: "/debug/pprof/cmdline", status: 200, text: /^kubelet/ },
    { path: "/debug/pprof/heap", status: 501, text: /not on Go/ },
    { path: "/debug/pprof/none", status: 404, text: "Unknown profile\n" },
    { path: "/debug/flags/v", status: 406, text: "unsupported http method\n" },
    {
      path: "/debug/flags/v",
      method: "PUT",
      body: "7",
      status: 200,
      text: "successfully set klog.logging.verbosity to 7\n",
    },
    { path: "/debug/flags/v", method: "PUT", body: "x", status: 400, text: /^failed set klog.logging.verbosity x: / },
    { path: "/debug/flags/v", method: "PUT", body: "9".repeat(100_000), status: 413 },
    { path: "/statusz", status: 200, text: /^\nkubelet statusz\nWarning: [^\n]+\n\nStarted: .*\nPaths: .*\/healthz/s },
    { path: "/flagz", status: 200, text: /\n\nroot-dir=\/r\nv=2\n$|\nroot-dir=\/r\nv=2\n$/ },
    {
      path: "/flagz",
      headers: { accept: "application/json;as=Flagz;v=v1beta1;g=config.k8s.io" },
      status: 200,
      text:
        '{"kind":"Flagz","apiVersion":"config.k8s.io/v1beta1","metadata":{"name":"kubelet"},"flags":{"v":"2","root-dir":"/r"}}\n',
    },
    { path: "/flagz", headers: { accept: "application/json" }, status: 406 },
    { path: "/exec/ns/p/c", status: 404, text: notFound },
  ]);
  assert.equal(server.backend.verbosity, 7);
});

const disabledPaths = ["run", "exec", "attach", "portForward", "containerLogs", "runningpods", "debug/pprof", "logs"];
const disabledCases: Case[] = [
  ...disabledPaths.map((path) => ({
    path: `/${path}/a/b/c`,
    method: "POST",
    status: 405,
    text: "Debug endpoints are disabled.\n",
  })),
  ...["configz", "checkpoint/a/b/c", "statusz", "flagz", "debug/flags/v"].map((path) => ({
    path: `/${path}`,
    status: 404,
    text: notFound,
  })),
  { path: "/pods", status: 200 },
  { path: "/healthz", status: 200 },
];

Deno.test("enableDebuggingHandlers: false leaves group A, and 405 for the rest", async () => {
  await using server = await startServer({ enableDebuggingHandlers: false });
  await run(`https://127.0.0.1:${server.https}`, disabledCases);
});

Deno.test("the read-only port asks nobody who he is, and has group A only", async () => {
  await using server = await startServer({
    readOnlyPort: -1,
    authentication: { x509: { clientCAFile: "" }, webhook: { enabled: false }, anonymous: { enabled: false } },
  });
  await run(`http://127.0.0.1:${server.readOnly}`, disabledCases);
  await run(`https://127.0.0.1:${server.https}`, [
    { path: "/pods", status: 401, text: "Unauthorized" },
    { path: "/pods/x", status: 401, text: "Unauthorized" },
    { path: "/nothing", status: 404, text: notFound },
  ]);
});

Deno.test("handlers that are switched off say so", async () => {
  await using server = await startServer({
    enableSystemLogHandler: false,
    enableProfilingHandler: false,
    enableDebugFlagsHandler: false,
  });
  await run(`https://127.0.0.1:${server.https}`, [
    { path: "/logs/", status: 405, text: "logs endpoint is disabled.\n" },
    { path: "/debug/pprof/heap", status: 405, text: "profiling endpoint is disabled.\n" },
    { path: "/debug/flags/v", method: "PUT", body: "1", status: 405, text: "flags endpoint is disabled.\n" },
  ]);
});

Deno.test("requests are counted by method, first segment, server and duration class", async () => {
  const facts: RequestFacts[] = [];
  const statuses: number[] = [];
  const metrics = {
    began: (each: RequestFacts) => {
      facts.push(each);
      return ({ status }: { status: number }) => void statuses.push(status);
    },
  };
  {
    await using server = await startServer({ readOnlyPort: -1 }, {
      metrics,
      prepare: (s) => s.registerText("/metrics/cadvisor", () => ""),
    });
    await run(`https://127.0.0.1:${server.https}`, [
      { path: "/pods", status: 200 },
      { path: "/metrics/cadvisor", status: 200 },
      { path: "/metrics/x", status: 404 },
      { path: "/debug/pprof/", method: "PROPFIND", status: 405 },
    ]);
    await run(`http://127.0.0.1:${server.readOnly}`, [{ path: "/nothing", status: 404 }]);
  }
  assert.deepEqual(facts.map((f) => `${f.method} ${f.path} ${f.serverType} ${f.longRunning}`), [
    "GET pods readwrite false",
    "GET metrics/cadvisor readwrite false",
    "GET other readwrite false",
    "other debug readwrite true",
    "GET other readonly false",
  ]);
  assert.deepEqual(statuses, [200, 200, 404, 405, 404]);
});

Deno.test("a handler that fails gives 500 with its text, or cuts an answer that has begun", async () => {
  const routes: Route[] = [
    { methods: "*", path: "/early", handler: () => Promise.reject(new Error("broken")) },
    {
      methods: "*",
      path: "/late",
      handler: ({ response }) => {
        response.write("half");
        return Promise.reject(new Error("broken"));
      },
    },
    {
      methods: ["GET"],
      path: "/up/{name}",
      upgrade: true,
      handler: (context) => {
        const { socket } = context.takeSocket();
        socket.end(
          `HTTP/1.1 101 Switching Protocols\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n${context.params.name}`,
        );
      },
    },
  ];
  await using server = await startServer({ readOnlyPort: -1 }, {
    prepare: (s) => s.register({ name: "t", access: "A", buckets: [], routes }),
  });
  const base = `http://127.0.0.1:${server.readOnly}`;
  await run(base, [{ path: "/early", status: 500, text: "broken\n" }]);
  await assert.rejects(ask(`${base}/late`));
  // A wish for an upgrade on a route that has none is ignored.
  await run(base, [{ path: "/pods", headers: { connection: "Upgrade", upgrade: "h2c" }, status: 200, text: none }]);
  using connection = await Deno.connect({ hostname: "127.0.0.1", port: server.readOnly });
  await connection.write(
    new TextEncoder().encode("GET /up/%C3%A9 HTTP/1.1\r\nHost: a\r\nConnection: Upgrade\r\nUpgrade: x\r\n\r\n"),
  );
  assert.match(await new Response(connection.readable).text(), /^HTTP\/1\.1 101 [^]*\r\n\r\né$/);
});

Deno.test("a webhook that is configured but not there is refused", () => {
  const make = (change: Parameters<typeof testConfig>[0]) =>
    createServer({
      config: testConfig(change),
      flags: { certDir: "/x", rootDir: "/x" },
      backend: new TestBackend(),
      version: "v1",
      healthChecks: () => [],
    });
  assert.throws(() => make({ authorization: { mode: "Webhook" } }), /authorization\.mode/);
  const authentication = { x509: { clientCAFile: "" }, webhook: { enabled: true }, anonymous: { enabled: true } };
  assert.throws(() => make({ authentication }), /authentication\.webhook/);
});

Deno.test("a port that is taken ends run with an error that names it", async () => {
  await using first = await startServer();
  await assert.rejects(
    startServer({ port: first.https }),
    new RegExp(`cannot listen on 127\\.0\\.0\\.1 port ${first.https}: .*free the port`),
  );
});
