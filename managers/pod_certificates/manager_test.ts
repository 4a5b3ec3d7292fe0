import assert from "@assert";
import { createPrivateKey } from "node:crypto";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { seeded } from "../../mod/base/random.ts";
import { Scope } from "../../mod/base/scope.ts";
import { FakeApi } from "../../mod/kube/api/fake/fake_api.ts";
import { createInformer } from "../../mod/kube/api/informer.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import type { BoundPod, PodCertificateProjection } from "../../mod/kube/types.ts";
import { PodCertificates } from "./manager.ts";
import { type PodCertificateRequest, podCertificateRequests } from "./types.ts";

const hour = 3600_000;
const source: PodCertificateProjection = {
  signerName: "example.com/x",
  keyType: "ED25519",
  maxExpirationSeconds: 7200,
  userAnnotations: { a: "b" },
};
const pod: BoundPod = {
  metadata: { name: "p", namespace: "ns", uid: "u" },
  spec: { containers: [], serviceAccountName: "sa" },
};

function scene() {
  const clock = new FakeClock();
  const api = new FakeApi({ clock });
  const scope = new Scope("certificates");
  const log = new RecordingLogger();
  const events = new RecordingEvents();
  const changed: string[] = [];
  const node: { name: string; uid: string | undefined } = { name: "n1", uid: "node-uid" };
  const certificates = new PodCertificates({
    client: api.client(),
    watch: (onChange) => {
      const options = { client: api.client(), clock, random: seeded(1), log, onChange };
      const informer = createInformer({ ...options, resource: podCertificateRequests });
      scope.spawn("watch", (signal) => informer.run(signal));
      return informer;
    },
    accountUid: (namespace, name) => Promise.resolve(`uid of ${namespace}/${name}`),
    node: () => node,
    clock,
    random: () => 0,
    log,
    events,
    scope,
    onChange: (uid) => void changed.push(uid),
  });
  /** Keys are made by the machine, not by the clock. */
  const settle = async () => {
    for (let i = 0; i < 200; i++) await turn();
  };
  const requests = () => api.list(podCertificateRequests);
  /** Waits until there are so many requests. */
  const requested = async (count: number) => {
    for (let i = 0; i < 100_000 && requests().length !== count; i++) await turn();
    assert.equal(requests().length, count);
    await settle();
  };
  const answer = async (type: string, more: PodCertificateRequest["status"] = {}) => {
    const last = requests().at(-1);
    const condition = { type, status: "True", reason: "Because", message: "so", lastTransitionTime: "" };
    const name = { namespace: "ns", name: last?.metadata?.name ?? "" };
    api.merge(podCertificateRequests, name, { status: { conditions: [condition], ...more } });
    await settle();
  };
  const issue = (chain: string, hours = 1) => {
    const at = (ms: number) => new Date(clock.now() + ms).toISOString();
    return answer("Issued", {
      certificateChain: chain,
      beginRefreshAt: at(hours * hour),
      notAfter: at(2 * hours * hour),
    });
  };
  const bundle = (of: BoundPod = pod) => certificates.bundle(of, "v", source);
  const states = () => certificates.states().map(({ signer, state, count }) => `${signer} ${state} ${count}`);
  const told = () => events.events.splice(0).map((e) => `${e.reason}: ${e.message}`);
  return {
    clock,
    api,
    scope,
    log,
    changed,
    node,
    certificates,
    settle,
    requests,
    requested,
    answer,
    issue,
    bundle,
    states,
    told,
  };
}

const pem = (text: string) => `-----BEGIN CERTIFICATE-----\n${btoa(text)}\n-----END CERTIFICATE-----\n`;

Deno.test("a certificate is asked for once, shown when it is issued, renewed in time with a new key", async () => {
  const s = scene();
  await using _ = s.scope;
  assert.throws(() => s.bundle(), /credential bundle is not issued yet/);
  assert.throws(() => s.bundle(), /credential bundle is not issued yet/);
  assert.deepEqual(s.states(), ["example.com/x not_yet_issued 1"]);
  await s.requested(1);
  const [request] = s.requests();
  const { stubPKCS10Request, ...spec } = request?.spec ?? { stubPKCS10Request: "" };
  assert.deepEqual(spec, {
    signerName: "example.com/x",
    podName: "p",
    podUID: "u",
    serviceAccountName: "sa",
    serviceAccountUID: "uid of ns/sa",
    nodeName: "n1",
    nodeUID: "node-uid",
    maxExpirationSeconds: 7200,
    unverifiedUserAnnotations: { a: "b" },
  });
  assert.ok(Uint8Array.fromBase64(stubPKCS10Request).length > 60);
  assert.deepEqual(request?.metadata?.ownerReferences, [{ apiVersion: "v1", kind: "Pod", name: "p", uid: "u" }]);
  await s.issue(`# first\n${pem("leaf")}between\n${pem("root")}`);
  assert.deepEqual(s.changed, ["u"]);
  const first = s.bundle();
  assert.equal(first.chain, pem("leaf") + pem("root"));
  assert.deepEqual(s.states(), ["example.com/x fresh 1"]);
  assert.equal(createPrivateKey(first.key).asymmetricKeyType, "ed25519");

  await s.clock.advance(hour + 60_000);
  await s.requested(2);
  assert.equal(s.bundle(), first, "the old one serves meanwhile");
  await s.clock.advance(600_000);
  await s.settle();
  assert.deepEqual(s.told(), ["CertificateOverdueForRefresh: PodCertificate refresh overdue"]);
  assert.deepEqual(s.states(), ["example.com/x overdue_for_refresh 1"]);
  await s.clock.advance(hour);
  await s.settle();
  assert.deepEqual(s.told(), ["CertificateExpired: PodCertificate expired"]);
  assert.equal(s.bundle(), first);
  assert.deepEqual(s.states(), ["example.com/x expired 1"]);
  await s.issue(pem("second"));
  assert.equal(s.bundle().chain, pem("second"));
  assert.notEqual(s.bundle().key, first.key);
  s.certificates.forget("u");
  assert.equal(s.certificates.size, 0);
});

Deno.test("a request that is denied or fails is the end of it, and told", async () => {
  for (const [type, word, told] of [["Denied", "denied", "was denied"], ["Failed", "failed", "failed"]] as const) {
    const s = scene();
    await using _ = s.scope;
    assert.throws(() => s.bundle());
    await s.requested(1);
    await s.answer(type);
    const facts = 'reason="Because"';
    assert.throws(() => s.bundle(), {
      message: `PodCertificateRequest was permanently ${word}: ${facts} message="so"`,
    });
    assert.deepEqual(s.states(), [`example.com/x ${word} 1`]);
    const name = s.requests()[0]?.metadata?.name;
    assert.deepEqual(s.told(), [`${type}: PodCertificateRequest ns/${name} ${told}, ${facts}, message="so"`]);
    await s.clock.advance(10 * hour);
    await s.settle();
    assert.equal(s.requests().length, 1);
  }
});

Deno.test("what cannot be asked is asked again; a request that somebody deleted is made anew", async () => {
  const s = scene();
  await using _ = s.scope;
  s.node.uid = undefined;
  assert.throws(() => s.bundle());
  await s.settle();
  assert.equal(s.requests().length, 0);
  assert.match(String(s.log.lines.find((l) => l.level === "error")?.fields["error"]), /has not been read yet/);
  s.node.uid = "node-uid";
  await s.clock.advance(60_000);
  await s.requested(1);
  s.api.remove(podCertificateRequests, { namespace: "ns", name: s.requests()[0]?.metadata?.name ?? "" });
  await s.settle();
  await s.clock.advance(540_000);
  await s.settle();
  assert.equal(s.requests().length, 0, "it may only be late");
  for (let i = 0; i < 4; i++) {
    await s.clock.advance(60_000);
    await s.settle();
  }
  await s.requested(1);
});
