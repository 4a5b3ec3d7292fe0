import assert from "@assert";
import { answerHealthz, type HealthCheck } from "./healthz.ts";

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
