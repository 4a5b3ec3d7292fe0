import assert from "@assert";
import { FakeClock, turnUntil } from "../../mod/base/fake_clock.ts";
import { FakeHost } from "../../mod/base/fake_host.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { ApiError } from "../../mod/kube/api/types.ts";
import { CertificateManager } from "./manager.ts";
import type { CertificatePair } from "./pair.ts";
import { type CertificateTemplate, makeKey, makeRequest } from "./request.ts";
import { retryMs, rotateAt } from "./rotation.ts";
import { servingSigner } from "./signing.ts";
import { CertificateStore } from "./store.ts";
import { FakeSigning, testAuthority } from "./testing.ts";

const hour = 3_600_000;
const dir = "/pki";
const template = (ip: string): CertificateTemplate => ({
  commonName: "system:node:n1",
  organizations: ["system:nodes"],
  dnsNames: ["n1"],
  ipAddresses: [ip, "fd00::1"],
});

async function scene() {
  const clock = new FakeClock();
  const host = new FakeHost({ files: {} });
  const log = new RecordingLogger();
  const store = new CertificateStore({ dir, prefix: "kubelet-server", host, log });
  const api = new FakeSigning();
  const authority = await testAuthority(clock);
  const stop = new AbortController();
  const pairs: CertificatePair[] = [];
  const counts = { failures: 0, rotated: [] as number[] };
  const world = { ip: "10.0.0.1" as string | undefined };
  const manager = new CertificateManager({
    what: "serving",
    store,
    client: api,
    signer: servingSigner,
    template: () => world.ip === undefined ? undefined : template(world.ip),
    onPair: (pair) => pairs.push(pair),
    onFailure: () => counts.failures++,
    onRotated: (ms) => counts.rotated.push(ms),
    clock,
    random: () => 0.5,
    log,
  });
  const signLast = async (lifeMs: number) => {
    const cert = await authority.sign(atob(api.last.spec.request), lifeMs);
    api.answer(api.last, { certificate: btoa(cert) });
  };
  const running = manager.run(stop.signal).catch((thrown: Error) => thrown);
  const end = async () => {
    stop.abort();
    await running;
    assert.equal(clock.pending, 0);
  };
  return { clock, host, log, store, api, authority, pairs, counts, world, manager, signLast, end };
}

Deno.test("a serving certificate is asked for, kept under its link, and renewed when most of its life is over", async () => {
  const { clock, host, store, api, pairs, counts, manager, signLast, end } = await scene();
  await turnUntil(() => api.requests.size === 1);
  assert.equal(manager.ttlMs, Infinity);
  const { metadata, spec } = api.last;
  assert.match(metadata?.name ?? "", /^csr-/);
  assert.deepEqual([spec.signerName, spec.usages], [servingSigner.signerName, ["digital signature", "server auth"]]);
  await signLast(10 * hour);
  await turnUntil(() => pairs.length === 1);
  const [first] = pairs;
  assert.deepEqual(first?.names, ["DNS:n1", "IP:10.0.0.1", "IP:fd00::1"]);
  assert.equal(first?.subject, "O=system:nodes\nCN=system:node:n1");
  assert.equal(await host.readText(store.currentPath), (first?.cert ?? "") + (first?.key ?? ""));
  assert.equal((await host.stat(store.currentPath))?.mode, 0o600);
  assert.deepEqual(await store.load(), first);

  await clock.advance(8 * hour - 60_000);
  assert.equal(api.requests.size, 1);
  await clock.advance(60_000);
  await turnUntil(() => api.requests.size === 2);
  await signLast(10 * hour);
  await turnUntil(() => pairs.length === 2);
  assert.deepEqual(counts, { failures: 0, rotated: [8 * hour] });
  assert.notEqual(pairs[1]?.key, first?.key);
  await end();
});

Deno.test("an API server that cannot be asked for a while is asked again", async () => {
  const { clock, log, api, pairs, counts, signLast, end } = await scene();
  api.faults.push(...[1, 2].map(() => new ApiError("busy", { status: 500, reason: "InternalError" })));
  await turnUntil(() => counts.failures === 1);
  await clock.advance(2_100);
  await turnUntil(() =>
    log.lines.some(({ message }) => /waiting for a certificate/.test(message)) || counts.failures > 1
  );
  assert.equal(counts.failures, 2);
  await clock.advance(4_200);
  await turnUntil(() => api.requests.size === 1);
  await signLast(hour);
  await turnUntil(() => pairs.length === 1);
  await end();
});

Deno.test("new addresses need a new certificate; none is asked for while they are not known", async () => {
  const { clock, api, pairs, world, signLast, end } = await scene();
  await turnUntil(() => api.requests.size === 1);
  await signLast(10 * hour);
  await turnUntil(() => pairs.length === 1);
  world.ip = undefined;
  await clock.advance(60_000);
  assert.equal(api.requests.size, 1);
  world.ip = "10.0.0.2";
  await clock.advance(10_000);
  await turnUntil(() => api.requests.size === 2);
  await signLast(10 * hour);
  await turnUntil(() => pairs.length === 2);
  assert.ok(pairs[1]?.names.includes("IP:10.0.0.2"));
  await clock.advance(hour);
  assert.equal(api.requests.size, 2);
  await end();
});

Deno.test("a request that is denied, deleted or fails is made again after the contract's delays", async () => {
  const { clock, log, api, pairs, counts, signLast, end } = await scene();
  await turnUntil(() => api.requests.size === 1);
  api.answer(api.last, { conditions: [{ type: "Denied", status: "True", reason: "Policy", message: "not here" }] });
  await turnUntil(() => counts.failures === 1);
  assert.match(JSON.stringify(log.lines), /csr-0 was denied: Policy: not here/);
  await clock.advance(2_099);
  assert.equal(api.requests.size, 1);
  api.faults.push(new ApiError("no", { status: 403, reason: "Forbidden" }));
  await clock.advance(1);
  await turnUntil(() => counts.failures === 2);
  await clock.advance(4_200);
  await turnUntil(() => api.requests.size === 2);
  await signLast(hour);
  await turnUntil(() => pairs.length === 1);
  await end();
});

Deno.test("an earlier life's certificate is taken over, and a spoilt file is told and replaced", async () => {
  const one = await scene();
  await turnUntil(() => one.api.requests.size === 1);
  await one.signLast(10 * hour);
  await turnUntil(() => one.pairs.length === 1);
  await one.end();
  const log = new RecordingLogger();
  const store = new CertificateStore({ dir, prefix: "kubelet-server", host: one.host, log });
  assert.deepEqual(await store.load(), one.pairs[0]);
  await one.host.write(store.currentPath, "rubbish", {});
  assert.equal(await store.load(), undefined);
  assert.match(JSON.stringify(log.lines), /kubelet-server-current\.pem.*there is no certificate in it/);
});

Deno.test("a pair that another hand put there is taken over, and no other is asked for", async () => {
  const { clock, store, api, authority, pairs, signLast, end } = await scene();
  await turnUntil(() => api.requests.size === 1);
  await signLast(10 * hour);
  await turnUntil(() => pairs.length === 1);
  await clock.advance(7 * hour);
  const key = await makeKey();
  const cert = await authority.sign(await makeRequest(key, template("10.0.0.1")), 10 * hour);
  await store.save(cert, key, clock.now());
  await clock.advance(hour);
  await turnUntil(() => pairs.length === 2);
  assert.equal(pairs[1]?.key, key);
  await clock.advance(6 * hour);
  assert.equal(api.requests.size, 1);
  await clock.advance(hour);
  await turnUntil(() => api.requests.size === 2);
  await end();
});

Deno.test("when to rotate and how long to wait", () => {
  const life = { notBefore: 1000, notAfter: 2000 };
  assert.deepEqual([0, 0.5, 1].map((chance) => Math.round(rotateAt(life, () => chance))), [1700, 1800, 1900]);
  assert.deepEqual([1, 2, 3, 4, 5, 6, 99].map((failures) => retryMs(failures, () => 0)), [
    2_000,
    4_000,
    8_000,
    16_000,
    32_000,
    32_000,
    32_000,
  ]);
  assert.ok(Math.abs(retryMs(1, () => 1) - 2_200) < 1);
});
