import assert from "@assert";
import { systemClock } from "../base/clock.ts";
import { RecordingLogger } from "../base/log.ts";
import { Scope } from "../base/scope.ts";
import { answerHealthz, type HealthCheck, serveHealthz } from "./healthz.ts";
import { ask } from "./testing.ts";

const ok = (name: string): HealthCheck => ({ name, check: () => undefined });
const bad = (name: string): HealthCheck => ({ name, check: () => `${name} is stuck` });
const get = (path: string, checks: HealthCheck[], method = "GET") =>
  answerHealthz({ method, url: `http://127.0.0.1:10248${path}` }, checks);

const cases: { name: string; path: string; checks: HealthCheck[]; status: number; body: string; method?: string }[] = [
  { name: "healthy", path: "/healthz", checks: [ok("ping"), ok("syncloop")], status: 200, body: "ok" },
  { name: "one part", path: "/healthz/ping", checks: [ok("ping")], status: 200, body: "ok" },
  {
    name: "one part that fails says why",
    path: "/healthz/syncloop",
    checks: [bad("syncloop")],
    status: 500,
    body: "internal server error: syncloop is stuck\n",
  },
  {
    name: "a failure withholds its reason in the list",
    path: "/healthz",
    checks: [ok("ping"), bad("syncloop")],
    status: 500,
    body: "[+]ping ok\n[-]syncloop failed: reason withheld\nhealthz check failed\n",
  },
  {
    name: "verbose",
    path: "/healthz?verbose",
    checks: [ok("ping")],
    status: 200,
    body: "[+]ping ok\nhealthz check passed\n",
  },
  {
    name: "an excluded check does not fail it",
    path: "/healthz?exclude=syncloop",
    checks: [ok("ping"), bad("syncloop")],
    status: 200,
    body: "ok",
  },
  {
    name: "an unknown part",
    path: "/healthz/nothing",
    checks: [ok("ping")],
    status: 404,
    body: "404 page not found\n",
  },
  { name: "another path", path: "/pods", checks: [ok("ping")], status: 404, body: "404 page not found\n" },
  {
    name: "another method",
    path: "/healthz",
    checks: [ok("ping")],
    status: 405,
    body: "Method Not Allowed\n",
    method: "POST",
  },
];

for (const c of cases) {
  Deno.test(`healthz: ${c.name}`, () => {
    assert.deepEqual(get(c.path, c.checks, c.method), { status: c.status, body: c.body });
  });
}

Deno.test("the healthz port answers what comes, whatever it is, and keeps no more idle connections than its limit", async () => {
  const bound = Promise.withResolvers<number>();
  await using scope = new Scope("test", { onFailure: (error) => bound.reject(error) });
  scope.spawn("healthz", (signal) =>
    serveHealthz({
      address: "127.0.0.1",
      port: 0,
      checks: [ok("ping")],
      clock: systemClock,
      log: new RecordingLogger(),
      signal,
      idleLimit: 2,
      onListening: bound.resolve,
    }));
  const port = await bound.promise;
  const idle: Deno.Conn[] = [];
  for (let n = 0; n < 5; n++) idle.push(await Deno.connect({ hostname: "127.0.0.1", port }));
  // The oldest go first; the end comes without a word.
  for (const connection of idle.slice(0, 3)) {
    assert.equal(await connection.read(new Uint8Array(1)).catch(() => null), null);
  }
  for (const connection of idle) connection.close();
  const at = `http://127.0.0.1:${port}`;
  assert.deepEqual(await ask(`${at}/healthz`).then(({ status, body }) => [status, body]), [200, "ok"]);
  const requests: { name: string; path: string; method?: string; status: number; body: string }[] = [
    { name: "verbose", path: "/healthz?verbose", status: 200, body: "[+]ping ok\nhealthz check passed\n" },
    { name: "without a body", path: "/healthz", method: "HEAD", status: 200, body: "" },
    { name: "another method", path: "/healthz", method: "POST", status: 405, body: "Method Not Allowed\n" },
    { name: "a path trick", path: "/healthz/..%2f..%2fetc%2fpasswd", status: 404, body: "404 page not found\n" },
    { name: "a percent sign alone", path: "/healthz%", status: 400, body: "400 Bad Request\n" },
    { name: "two slashes", path: "//healthz", status: 404, body: "404 page not found\n" },
  ];
  for (const { name, path, status, body, method = "GET" } of requests) {
    const answer = await ask(at, { path, method });
    assert.deepEqual([answer.status, answer.body], [status, body], name);
    assert.equal(answer.headers["content-type"], "text/plain; charset=utf-8", name);
  }
});
