import assert from "@assert";
import { FakeClock, turn } from "../base/fake_clock.ts";
import { KubeletError } from "../base/errors.ts";
import { type ApiClient, ApiError } from "../kube/api/types.ts";
import { ExpiringCache } from "./expiring_cache.ts";
import { accessWebhook, tokenWebhook } from "./webhooks.ts";

const { signal } = new AbortController();

/** An API server that answers reviews from a list; an Error in it is thrown. */
function reviewer(answers: unknown[]) {
  const asked: { kind: string; spec: unknown }[] = [];
  const create = ((_: unknown, { kind, spec }: { kind: string; spec: unknown }) => {
    asked.push({ kind, spec });
    const answer = answers.shift();
    return answer instanceof Error ? Promise.reject(answer) : Promise.resolve({ kind, spec, status: answer });
  }) as unknown as ApiClient["create"];
  const clock = new FakeClock();
  return { asked, clock, options: { client: { create }, clock, random: () => 0 } };
}

const user = { username: "jane", uid: "u1", groups: ["dev"], extra: { scopes: ["a"] } };
const jane = { name: "jane", uid: "u1", groups: ["dev"], extra: { scopes: ["a"] } };

Deno.test("tokens: good and bad answers are kept for their time, whoever asks", async () => {
  const { asked, clock, options } = reviewer([{ authenticated: true, user }, {}, { authenticated: true, user }]);
  const tokens = tokenWebhook({ ...options, ttlMs: 120_000 });
  assert.deepEqual(await tokens.authenticate("good", signal), jane);
  assert.deepEqual(await tokens.authenticate("good", signal), jane);
  assert.equal(await tokens.authenticate("bad", signal), undefined);
  assert.equal(await tokens.authenticate("bad", signal), undefined);
  assert.deepEqual(asked.map((one) => one.spec), [{ token: "good" }, { token: "bad" }]);
  await clock.advance(119_999);
  assert.deepEqual(await tokens.authenticate("good", signal), jane);
  await clock.advance(1);
  assert.deepEqual(await tokens.authenticate("good", signal), jane);
  assert.equal(asked.length, 3);
});

Deno.test("tokens: an API server that cannot say is asked again, then it is an error that is not kept", async () => {
  const down = () => new KubeletError("Network", "refused");
  const { asked, clock, options } = reviewer([
    new ApiError("slow down", { status: 429, reason: "TooManyRequests" }),
    new ApiError("oops", { status: 500, reason: "InternalError" }),
    { authenticated: true, user },
    ...Array.from({ length: 5 }, down),
    new ApiError("no", { status: 403, reason: "Forbidden" }),
    { error: "no such issuer" },
    undefined,
  ]);
  const tokens = tokenWebhook({ ...options, ttlMs: 120_000 });
  const wait = async <T>(answer: Promise<T>) => {
    const settled = answer.then((value) => ({ value }), (error) => ({ error }));
    for (let i = 0; i < 30; i++) {
      await turn();
      await clock.advance(500);
    }
    return await settled;
  };
  assert.deepEqual(await wait(tokens.authenticate("good", signal)), { value: jane });
  assert.equal(asked.length, 3);
  const failed = await wait(tokens.authenticate("other", signal));
  assert.match(String("error" in failed && failed.error), /refused/);
  assert.equal(asked.length, 8);
  await assert.rejects(tokens.authenticate("other", signal), /no/);
  await assert.rejects(tokens.authenticate("other", signal), /could not review a token: no such issuer/);
  await assert.rejects(tokens.authenticate("other", signal), /TokenReview has no status/);
  assert.equal(asked.length, 11);
});

Deno.test("access: what is asked, and how long allowed and denied hold", async () => {
  const { asked, clock, options } = reviewer([{ allowed: true }, { allowed: false }, { allowed: true, denied: true }, {
    evaluationError: "no rules",
  }, { allowed: true }]);
  const access = accessWebhook({ ...options, allowedTtlMs: 300_000, deniedTtlMs: 30_000 });
  const ask = (subresource: string, name = "n1") =>
    access.authorize({
      user: jane,
      verb: "get",
      apiVersion: "v1",
      resource: "nodes",
      subresource,
      name,
      path: "/x",
    }, signal);
  assert.equal(await ask("metrics"), "allow");
  assert.equal(await ask("proxy"), "deny");
  assert.deepEqual(asked[0], {
    kind: "SubjectAccessReview",
    spec: {
      user: "jane",
      groups: ["dev"],
      uid: "u1",
      extra: { scopes: ["a"] },
      resourceAttributes: { verb: "get", version: "v1", resource: "nodes", subresource: "metrics", name: "n1" },
    },
  });
  await clock.advance(29_999);
  assert.deepEqual([await ask("metrics"), await ask("proxy"), asked.length], ["allow", "deny", 2]);
  await clock.advance(1);
  assert.deepEqual([await ask("proxy"), asked.length], ["deny", 3]);
  await assert.rejects(ask("stats"), /could not review an access: no rules/);
  await clock.advance(270_000);
  assert.deepEqual([await ask("metrics"), asked.length], ["allow", 5]);
});

Deno.test("access: an endless question is answered but not kept", async () => {
  const { asked, options } = reviewer([{ allowed: true }, { allowed: true }]);
  const access = accessWebhook({ ...options, allowedTtlMs: 300_000, deniedTtlMs: 30_000 });
  const attributes = {
    verb: "get",
    apiVersion: "v1",
    resource: "nodes",
    subresource: "proxy",
    name: "n",
    path: "/",
  } as const;
  const big = { ...attributes, user: { name: "x".repeat(10_000), groups: [] } };
  await access.authorize(big, signal);
  await access.authorize(big, signal);
  assert.equal(asked.length, 2);
});

Deno.test("expiring cache: the oldest makes room, one question at a time, a caller who gives up spoils no other", async () => {
  const clock = new FakeClock();
  const cache = new ExpiringCache<string>({ clock, limit: 2 });
  let asks = 0;
  const ask = (value: string) => () => {
    asks++;
    return Promise.resolve(value);
  };
  for (const key of ["a", "b"]) await cache.get(key, ask(key), () => 1000);
  await cache.get("a", ask("never"), () => 1000);
  await cache.get("c", ask("c"), () => 1000);
  assert.equal(asks, 3);
  assert.equal(await cache.get("a", ask("never"), () => 1000), "a");
  assert.equal(await cache.get("b", ask("b2"), () => 1000), "b2");

  const first = Promise.withResolvers<string>();
  const one = cache.get("d", () => first.promise, () => 1000);
  const two = cache.get("d", ask("second"), () => 1000);
  const three = cache.get("d", ask("third"), () => 1000);
  first.reject(new KubeletError("Aborted", "gone"));
  await assert.rejects(one, /gone/);
  assert.deepEqual([await two, await three], ["second", "second"]);
});
