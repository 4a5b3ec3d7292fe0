import assert from "@assert";
import { turn } from "../../base/fake_clock.ts";
import { ask, startServer } from "../testing.ts";

Deno.test("pages that are asked for at once are made twice at most, each for those who came before it was begun", async () => {
  const begun: PromiseWithResolvers<void>[] = [];
  const first = Promise.withResolvers<void>();
  const here = { requests: 0, all: Promise.withResolvers<void>() };
  await using server = await startServer({ readOnlyPort: -1 }, {
    prepare: (made) =>
      made.registerText("/metrics/cadvisor", async () => {
        const mine = begun.push(Promise.withResolvers());
        first.resolve();
        await begun[mine - 1]?.promise;
        return `page ${mine} ${"x".repeat(2000)}\n`;
      }),
    metrics: {
      began: () => {
        if (++here.requests === 21) here.all.resolve();
        return () => {};
      },
    },
  });
  const url = `http://127.0.0.1:${server.readOnly}/metrics/cadvisor`;
  const one = ask(url);
  await first.promise;
  // Some want it zipped, some not: it is one page all the same.
  const others = Array.from({ length: 20 }, async (_, i) => {
    const { headers, body } = await ask(url, i % 2 ? { headers: { "accept-encoding": "gzip" } } : {});
    return headers["content-encoding"] ?? body.slice(0, 6);
  });
  await here.all.promise;
  for (let i = 0; i < 20; i++) await turn();
  begun[0]?.resolve();
  assert.match((await one).body, /^page 1 /);
  while (begun.length < 2) await turn();
  begun[1]?.resolve();
  assert.deepEqual(new Set(await Promise.all(others)), new Set(["page 2", "gzip"]));
  assert.equal(begun.length, 2);
});

Deno.test("what a page depends on makes it another one: the query and the method", async () => {
  let made = 0;
  const gate = Promise.withResolvers<void>();
  const three = Promise.withResolvers<void>();
  await using server = await startServer({ readOnlyPort: -1 }, {
    prepare: (one) =>
      one.registerText("/stats/summary", async ({ query, method }) => {
        if (++made === 3) three.resolve();
        await gate.promise;
        return `${method} ${query}`;
      }),
  });
  const url = `http://127.0.0.1:${server.readOnly}/stats/summary`;
  const answers = [ask(`${url}?a=1`), ask(`${url}?a=2`), ask(`${url}?a=1`, { method: "POST" })];
  await three.promise;
  gate.resolve();
  assert.deepEqual((await Promise.all(answers)).map(({ body }) => body), ["GET a=1", "GET a=2", "POST a=1"]);
});

Deno.test("how the agent is, is answered while 200 scrapes wait for their page, and they are all answered", async () => {
  const gate = Promise.withResolvers<void>();
  const here = { requests: 0, all: Promise.withResolvers<void>() };
  await using server = await startServer({}, {
    prepare: (made) => made.registerText("/metrics/cadvisor", () => gate.promise.then(() => "page\n")),
    metrics: {
      began: () => {
        if (++here.requests === 200) here.all.resolve();
        return () => {};
      },
    },
  });
  const at = (path: string) => ask(`https://127.0.0.1:${server.https}${path}`);
  const scrapes = Array.from({ length: 200 }, () => at("/metrics/cadvisor"));
  await here.all.promise;
  assert.equal((await at("/healthz")).body, "ok");
  gate.resolve();
  assert.deepEqual(new Set((await Promise.all(scrapes)).map(({ body }) => body)), new Set(["page\n"]));
});
