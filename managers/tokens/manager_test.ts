import assert from "@assert";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import { FakeApi } from "../../mod/kube/api/fake/fake_api.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import { isApiNotFound } from "../../mod/kube/api/types.ts";
import type { TokenRequest } from "../../mod/kube/types.ts";
import { ServiceAccountTokens } from "./manager.ts";
import type { TokenWanted } from "./types.ts";

const hour = 3600_000;

function scene(random = 0) {
  const clock = new FakeClock();
  const api = new FakeApi({ clock });
  const log = new RecordingLogger();
  const due: string[] = [];
  const tokens = new ServiceAccountTokens({
    client: api.client("main", { node: "n1" }),
    clock,
    random: () => random,
    log,
    onDue: (uid) => void due.push(uid),
  });
  api.create(resources.serviceAccounts, { metadata: { name: "sa", namespace: "ns" } });
  const pod = (name: string) => {
    const made = api.create(resources.pods, {
      metadata: { name, namespace: "ns" },
      spec: { nodeName: "n1", containers: [{ name: "c", image: "i" }] },
    });
    return { name, uid: made.metadata?.uid ?? "" };
  };
  const { signal } = new AbortController();
  const wanted = (more: Partial<TokenWanted> = {}): TokenWanted => ({
    namespace: "ns",
    serviceAccount: "sa",
    audiences: [],
    expirationSeconds: 3600,
    pod: { name: "p", uid: "" },
    ...more,
  });
  const asked = () => api.calls.filter((c) => c.subresource === "token").length;
  return { clock, api, log, due, tokens, pod, wanted, asked, signal };
}

Deno.test("a token is bound to its pod, for the audiences and the time asked for", async () => {
  const s = scene();
  const pod = s.pod("p");
  const { token, expiresAt } = await s.tokens.token(
    s.wanted({ pod, audiences: ["vault"], expirationSeconds: 7200, serviceAccountUid: "sa-uid" }),
    s.signal,
  );
  assert.equal(token, s.api.tokens[0]?.token);
  assert.equal(expiresAt, s.clock.now() + 2 * hour);
  const { metadata, spec } = s.api.calls.find((c) => c.subresource === "token")?.body as TokenRequest;
  assert.deepEqual(spec, {
    audiences: ["vault"],
    expirationSeconds: 7200,
    boundObjectRef: { apiVersion: "v1", kind: "Pod", name: "p", uid: pod.uid },
  });
  assert.deepEqual(metadata, { uid: "sa-uid" });
});

Deno.test("one token per account, pod, audiences and time; kept until it is due", async () => {
  const s = scene();
  const [p, q] = [s.pod("p"), s.pod("q")];
  const get = async (more: Partial<TokenWanted>) =>
    (await s.tokens.token(s.wanted({ pod: p, ...more }), s.signal)).token;
  const first = await get({});
  assert.equal(await get({}), first);
  const others = [await get({ pod: q }), await get({ audiences: ["x"] }), await get({ expirationSeconds: 600 })];
  assert.equal(new Set([first, ...others]).size, 4);
  assert.equal(s.tokens.size, 4);
  s.tokens.forget(p.uid);
  assert.equal(s.tokens.size, 1);
  assert.notEqual(await get({}), first);
});

Deno.test("renewed after 80 % of its life or 24 hours, up to 10 s sooner", async () => {
  const cases: { seconds: number; random: number; keptMs: number }[] = [
    { seconds: 3600, random: 0, keptMs: 2880_000 },
    { seconds: 3600, random: 0.99, keptMs: 2880_000 - 9000 },
    { seconds: 600, random: 0, keptMs: 480_000 },
    { seconds: 7 * 24 * 3600, random: 0, keptMs: 24 * hour },
    { seconds: 7 * 24 * 3600, random: 0.5, keptMs: 24 * hour - 5000 },
  ];
  for (const { seconds, random, keptMs } of cases) {
    const s = scene(random);
    const wanted = s.wanted({ pod: s.pod("p"), expirationSeconds: seconds });
    const { token } = await s.tokens.token(wanted, s.signal);
    await s.clock.advance(keptMs);
    assert.equal((await s.tokens.token(wanted, s.signal)).token, token, `${seconds} s, still`);
    await s.clock.advance(1);
    assert.notEqual((await s.tokens.token(wanted, s.signal)).token, token, `${seconds} s, due`);
  }
});

Deno.test("a token that cannot be renewed serves until it expires", async () => {
  const s = scene();
  const wanted = s.wanted({ pod: s.pod("p") });
  const { token } = await s.tokens.token(wanted, s.signal);
  s.api.reach = "refused";
  await s.clock.advance(hour);
  assert.equal((await s.tokens.token(wanted, s.signal)).token, token);
  assert.match(s.log.lines.at(-1)?.message ?? "", /old one serves/);
  assert.ok(!JSON.stringify(s.log.lines).includes(token), "no token is logged");
  await s.clock.advance(1);
  await assert.rejects(s.tokens.token(wanted, s.signal), /expired and refresh failed: /);
  s.api.reach = "up";
  assert.notEqual((await s.tokens.token(wanted, s.signal)).token, token);
});

Deno.test("why there is no token is told in the API server's words", async () => {
  const s = scene();
  const wanted = s.wanted({ pod: s.pod("p"), serviceAccount: "none" });
  await assert.rejects(s.tokens.token(wanted, s.signal), (thrown: Error) => {
    assert.match(thrown.message, /^failed to fetch token: serviceaccounts? "none" not found/);
    return isApiNotFound(thrown);
  });
  const aborted = AbortSignal.abort();
  await assert.rejects(s.tokens.token(wanted, aborted), { code: "Aborted" });
});

Deno.test("pods are told when a token of theirs is due, or was not to be had; expired ones are dropped", async () => {
  const s = scene();
  const scope = new Scope("tokens");
  await using _ = scope;
  scope.spawn("run", (signal) => s.tokens.run(signal));
  await turn();
  const [p, q] = [s.pod("p"), s.pod("q")];
  await s.tokens.token(s.wanted({ pod: p, expirationSeconds: 600 }), s.signal);
  await assert.rejects(s.tokens.token(s.wanted({ pod: q, serviceAccount: "none" }), s.signal));
  await s.clock.advance(60_000);
  assert.deepEqual(s.due.splice(0), [q.uid]);
  s.tokens.forget(q.uid);
  await s.clock.advance(420_000);
  assert.deepEqual(s.due.splice(0), [], "480 s are not over before they are over");
  await s.clock.advance(60_000);
  assert.deepEqual(s.due.splice(0), [p.uid]);
  await s.clock.advance(120_000);
  assert.equal(s.tokens.size, 0);
});
