import assert from "@assert";
import { FakeClock } from "../base/fake_clock.ts";
import { RecordingLogger } from "../base/log.ts";
import { Scope } from "../base/scope.ts";
import { type FetchLike, HttpSource } from "./http.ts";
import { manifest } from "./testing.ts";

const url = "http://user:secret@127.0.0.1:1/pods";

function make(answer: FetchLike, headers: Record<string, string[]> = {}) {
  const clock = new FakeClock();
  const log = new RecordingLogger();
  const seen: string[][] = [];
  const source = new HttpSource({ fetch: answer, clock, log, nodeName: "node1", url, headers, periodMs: 20_000 });
  const poll = () => source.poll(new AbortController().signal, (pods) => seen.push(pods.map((p) => p.metadata.name)));
  const problem = () => [...source.problems.values()][0];
  return { clock, log, seen, source, poll, problem };
}

// deno-lint-ignore require-await
const reply = (...bodies: (string | (() => Response))[]): FetchLike => async () => {
  const body = bodies.length > 1 ? bodies.shift() : bodies[0];
  return typeof body === "function" ? body() : new Response(body ?? "");
};

const list = (...items: string[]) => `{"apiVersion":"v1","kind":"PodList","items":[${items.join(",")}]}`;

Deno.test("a pod or a list of pods is taken; the URL source adds no toleration", async () => {
  const { poll, seen } = make(reply(manifest("a"), list(manifest("a"), manifest("b")), list()));
  for (let i = 0; i < 3; i++) await poll();
  assert.deepEqual(seen, [["a-node1"], ["a-node1", "b-node1"], []]);
});

Deno.test("the same answer is not read twice, and a bad one stays a problem", async () => {
  const good = make(reply(manifest("a")));
  await good.poll();
  await good.poll();
  assert.equal(good.seen.length, 1);
  const bad = make(reply(list(manifest("a"), "{}")));
  for (let i = 0; i < 2; i++) {
    await bad.poll();
    assert.match(bad.problem() ?? "", /items\[1\]|needs a name/);
  }
  assert.deepEqual(bad.seen, [], "one bad pod refuses the whole answer");
});

Deno.test("an empty answer means no pods; failures say nothing; the password is not shown", async () => {
  const gone = () => new Response("x", { status: 503, statusText: "Service Unavailable" });
  const { poll, seen, problem, log } = make(reply(manifest("a"), gone, "", manifest("a")));
  await poll();
  await poll();
  assert.match(problem() ?? "", /503 Service Unavailable/);
  assert.equal(seen.length, 1);
  await poll();
  assert.deepEqual(seen.at(-1), []);
  await poll();
  assert.deepEqual(seen.at(-1), ["a-node1"]);
  assert.equal(problem(), undefined);
  assert.ok(!JSON.stringify(log.lines).includes("secret"));
});

Deno.test("headers are sent, each value", async () => {
  let sent: Headers | undefined;
  const { poll } = make((_url, init) => {
    sent = init.headers;
    return Promise.resolve(new Response(manifest("a")));
  }, { "X-One": ["1", "2"], Authorization: ["Bearer t"] });
  await poll();
  assert.equal(sent?.get("x-one"), "1, 2");
  assert.equal(sent?.get("authorization"), "Bearer t");
});

Deno.test("a server that never answers is given up after 10 s; an endless body at the limit", async () => {
  const hangs = make((_url, { signal }) =>
    new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }))
  );
  const polled = hangs.poll();
  await hangs.clock.advance(10_000);
  await polled;
  assert.match(hangs.problem() ?? "", /no answer within 10 s/);
  let cancelled = false;
  const endless = make(() =>
    Promise.resolve(
      new Response(
        new ReadableStream({
          pull: (controller) => controller.enqueue(new Uint8Array(1024 * 1024)),
          cancel: () => void (cancelled = true),
        }),
      ),
    )
  );
  await endless.poll();
  assert.match(endless.problem() ?? "", /longer than 10485760/);
  assert.ok(cancelled);
});

Deno.test("the first failures are loud, later ones a detail, and the end of them is told", async () => {
  const { poll, log } = make(reply(...Array<string>(6).fill("nonsense"), manifest("a")));
  for (let i = 0; i < 7; i++) await poll();
  assert.deepEqual(log.lines.map(({ level }) => level), ["warn", "warn", "warn", "warn", "detail4", "detail4", "info"]);
});

Deno.test("it polls each period until it is called off", async () => {
  let asked = 0;
  const { clock, source } = make(() => {
    asked++;
    return Promise.reject(new TypeError("connection refused"));
  });
  const scope = new Scope("test");
  scope.spawn("http", (signal) => source.run(signal, () => {}));
  await clock.advance(60_000);
  assert.equal(asked, 4);
  await scope.close();
  assert.equal(clock.pending, 0);
});
