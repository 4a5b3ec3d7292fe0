import { create } from "@bufbuild/protobuf";
import assert from "@assert";
import { FakeRuntime } from "../../../cri/fake/runtime.ts";
import { type Image, ImageSchema } from "../../../cri/gen/runtime_pb.ts";
import { FakeClock } from "../../../mod/base/fake_clock.ts";
import { errno, FakeHost } from "../../../mod/base/fake_host.ts";
import { RecordingLogger } from "../../../mod/base/log.ts";
import { seeded } from "../../../mod/base/random.ts";
import { RecordingEvents } from "../../../mod/kube/events.ts";
import { createImageManager } from "../manager.ts";
import { allows, credentialsOf, merged, readRecord, writtenRecord } from "./pull_record.ts";
import { PullRecords, verificationRule } from "./pull_records.ts";
import type { PullCredential } from "./types.ts";

const { signal } = new AbortController();
const dir = "/r/image_manager";

const secret = (name: string, hash: string, uid = `uid-${name}`): PullCredential => ({
  username: "u",
  password: "p",
  hash,
  source: { kind: "secret", namespace: "ns", name, uid },
});
const account = (name: string): PullCredential => ({
  username: "u",
  password: "p",
  hash: "h",
  source: { kind: "serviceAccount", namespace: "ns", name, uid: `uid-${name}` },
});
const ofNode: PullCredential = { username: "u", password: "p", hash: "h" };
const image = { name: "r.io/a:1", bareName: "r.io/a", ref: "sha256:1" };

function scene(policy = "NeverVerifyPreloadedImages", allowlist: string[] = []) {
  const clock = new FakeClock(Date.UTC(2026, 0, 2, 3, 4, 5));
  const host = new FakeHost({ clock });
  const log = new RecordingLogger();
  const images: Image[] = [];
  const checked: string[] = [];
  const counts: string[] = [];
  const made = { listing: (): Promise<readonly Image[]> => Promise.resolve(images) };
  const make = () =>
    new PullRecords({
      host,
      clock,
      log,
      dir,
      rule: verificationRule(policy, allowlist),
      listImages: () => made.listing(),
      onChecked: (result) => void checked.push(result),
      onCounts: ({ intents, records }) => void counts.push(`${intents} ${records}`),
    });
  const records = make();
  const must = (of = records, credentials: PullCredential[] = [], what = image) =>
    of.mustPull({ image: what, credentials: () => Promise.resolve(credentials), signal });
  const pull = async (credential?: PullCredential, what = image) => {
    await records.intend(what.name, signal);
    await records.pulled(what, credential);
  };
  const files = () => host.tree(dir).filter((line) => line.includes("sha256-"));
  return Object.assign(made, { clock, host, log, images, checked, counts, make, records, must, pull, files });
}

Deno.test("policies: which images a pod must prove its right to", () => {
  const list = ["r.io/a", "r.io/team/*"];
  const cases: [string, string, boolean, boolean][] = [
    ["NeverVerify", "r.io/x", true, false],
    ["AlwaysVerify", "r.io/x", false, true],
    ["NeverVerifyPreloadedImages", "r.io/x", false, false],
    ["NeverVerifyPreloadedImages", "r.io/x", true, true],
    ["NeverVerifyAllowlistedImages", "r.io/a", true, false],
    ["NeverVerifyAllowlistedImages", "r.io/ab", false, true],
    ["NeverVerifyAllowlistedImages", "r.io/team/x", true, false],
    ["NeverVerifyAllowlistedImages", "r.io/teams", false, true],
  ];
  for (const [policy, bareName, pulledHere, expected] of cases) {
    assert.equal(verificationRule(policy, list)({ bareName, pulledHere }), expected, `${policy} ${bareName}`);
  }
});

Deno.test("whose credentials give a pod an image", () => {
  const known = merged(
    merged(undefined, { ref: "1", bareName: "a", added: credentialsOf(secret("s", "h1")), now: 0 }),
    { ref: "1", bareName: "a", added: credentialsOf(account("sa")), now: 0 },
  ).credentials.get("a") ?? credentialsOf(undefined);
  const cases: [string, PullCredential[], boolean, string | undefined][] = [
    ["none", [], false, undefined],
    ["the same", [secret("s", "h1")], true, undefined],
    ["the same credential in another Secret", [secret("t", "h1")], true, "t"],
    ["a newer credential in the same Secret", [secret("s", "h2")], true, "s"],
    ["a later Secret of the same name", [secret("s", "h2", "other")], false, undefined],
    ["another one", [secret("t", "h2")], false, undefined],
    ["one of several", [secret("t", "h2"), secret("s", "h1")], true, undefined],
    ["no digest", [secret("t", "")], false, undefined],
    ["the account", [account("sa")], true, undefined],
    ["another account", [account("sb")], false, undefined],
    ["the node's own", [ofNode], false, undefined],
  ];
  for (const [what, own, allowed, learn] of cases) {
    const answer = allows(known, own);
    assert.equal(answer.allowed, allowed, what);
    assert.equal(answer.learn?.source?.name, learn, what);
  }
});

Deno.test("records: a node's pull opens the image to all; nothing new changes nothing", () => {
  const note = (before: ReturnType<typeof merged> | undefined, added: PullCredential | undefined, now: number) =>
    merged(before, { ref: "1", bareName: "a", added: credentialsOf(added), now });
  const one = note(undefined, secret("s", "h"), 1);
  assert.equal(note(one, secret("s", "h"), 2), one);
  const open = note(one, undefined, 3);
  assert.deepEqual(open.credentials.get("a"), { anyPod: true, secrets: [], accounts: [] });
  assert.equal(note(open, secret("t", "h"), 4), open);
  const newer = note(one, secret("s", "h2"), 5);
  assert.deepEqual(newer.credentials.get("a")?.secrets.map((s) => s.credentialHash), ["h2"]);
  const unknown = merged(undefined, { ref: "1", bareName: "a", added: undefined, now: 1 });
  assert.equal(unknown.credentials.size, 0);
  assert.equal(merged(one, { ref: "1", bareName: "a", added: undefined, now: 9 }), one);
});

Deno.test("files: the contract's names, kinds and fields; read again after a restart", async () => {
  const s = scene();
  await s.records.intend(image.name, signal);
  const [pulling] = s.files();
  assert.match(pulling ?? "", /^pulling\/sha256-[0-9a-f]{64}$/);
  assert.deepEqual(JSON.parse(s.host.text(`${dir}/${pulling}`) ?? ""), {
    kind: "ImagePullIntent",
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    image: "r.io/a:1",
  });
  assert.equal((await s.host.stat(`${dir}/${pulling}`))?.mode, 0o600);
  await s.records.pulled(image, secret("s", "h1"));
  await s.pull(account("sa"));
  const [pulled, ...more] = s.files();
  assert.equal(more.length, 0, "the intent is over");
  const name = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(image.ref))).toHex();
  assert.equal(pulled, `pulled/sha256-${name}`);
  assert.deepEqual(JSON.parse(s.host.text(`${dir}/${pulled}`) ?? ""), {
    kind: "ImagePulledRecord",
    apiVersion: "kubelet.config.k8s.io/v1beta1",
    lastUpdatedTime: "2026-01-02T03:04:05Z",
    imageRef: "sha256:1",
    credentialMapping: {
      "r.io/a": {
        kubernetesSecrets: [{ uid: "uid-s", namespace: "ns", name: "s", credentialHash: "h1" }],
        kubernetesServiceAccounts: [{ uid: "uid-sa", namespace: "ns", name: "sa" }],
      },
    },
  });
  const [, begun, noted, ended] = s.counts;
  assert.deepEqual([begun, noted, ended], ["1 0", "1 1", "0 1"]);
  assert.equal(s.counts.at(-1), "0 1");
  const again = s.make();
  assert.equal(await s.must(again, [secret("s", "h1")]), false);
  assert.equal(s.counts.at(-1), "0 1", "told once they were read");
  assert.equal(await s.must(again, [secret("t", "h9")]), true);
});

Deno.test("who may use an image that is here", async () => {
  const other = { ...image, name: "mirror.io/a:1", bareName: "mirror.io/a" };
  const cases: [string, string, PullCredential | undefined | "preloaded", PullCredential[], string][] = [
    ["preloaded", "NeverVerifyPreloadedImages", "preloaded", [], "credentialPolicyAllowed"],
    ["preloaded, always verified", "AlwaysVerify", "preloaded", [secret("s", "h")], "mustAuthenticate"],
    ["pulled anonymously", "NeverVerifyPreloadedImages", undefined, [], "credentialRecordFound"],
    ["pulled with the node's own", "AlwaysVerify", ofNode, [], "credentialRecordFound"],
    ["with a Secret, by a pod without", "NeverVerifyPreloadedImages", secret("s", "h"), [], "mustAuthenticate"],
    ["with a Secret, by a pod with it", "AlwaysVerify", secret("s", "h"), [secret("s", "h")], "credentialRecordFound"],
    ["never verified", "NeverVerify", secret("s", "h"), [], "credentialPolicyAllowed"],
  ];
  for (const [what, policy, by, own, expected] of cases) {
    const s = scene(policy);
    if (by !== "preloaded") await s.pull(by);
    assert.equal(await s.must(s.records, own), expected === "mustAuthenticate", what);
    assert.deepEqual(s.checked, [expected], what);
  }
  const s = scene();
  await s.pull(undefined);
  assert.equal(await s.must(s.records, [], other), true, "the same image under another name is another matter");
});

Deno.test("a Secret that fits is learned for the next time", async () => {
  const s = scene();
  await s.pull(secret("s", "h1"));
  assert.equal(await s.must(s.records, [secret("copy", "h1")]), false);
  assert.equal(await s.must(s.make(), [secret("copy", "h2")]), false, "a newer credential of what was learned");
});

Deno.test("an agent that was killed while it pulled: the image is nobody's until somebody pulls it", async () => {
  const s = scene();
  await s.records.intend("r.io/a:1", signal);
  await s.records.intend("r.io/b:1", signal);
  s.images.push(create(ImageSchema, { id: "sha256:1", repoTags: ["r.io/a:1"] }));
  const again = s.make();
  assert.equal(
    await s.must(again, [secret("s", "h")]),
    true,
    "pulled by the agent, with whose credentials is not known",
  );
  assert.deepEqual(s.files().map((f) => f.split("/")[0]), ["pulled", "pulling"]);
  assert.equal(await s.must(again, [], { name: "r.io/b:1", bareName: "r.io/b", ref: "sha256:2" }), true);
});

Deno.test("two pulls of one image: the intent ends with the last; what has gone from the node is forgotten", async () => {
  const s = scene();
  await s.records.intend(image.name, signal);
  await s.records.intend(image.name, signal);
  await s.records.failed(image.name);
  assert.equal(s.files().length, 1);
  await s.records.pulled(image);
  assert.equal(s.files().length, 1);
  await s.records.prune(new Set(["sha256:1"]), s.clock.now() + 1);
  assert.equal(s.files().length, 1);
  await s.records.prune(new Set(), s.clock.now());
  assert.equal(s.files().length, 1, "a record newer than the question stays");
  await s.records.prune(new Set(), s.clock.now() + 1);
  assert.deepEqual(s.files(), []);
  assert.equal(await s.must(), false);
});

Deno.test("what cannot be written or read: a pull is not begun unrecorded; broken files are told and left out", async () => {
  const s = scene();
  const fault = s.host.readOnly(dir);
  s.host.putDir(`${dir}/pulled`);
  await assert.rejects(s.records.intend(image.name, signal), { code: "Host" });
  fault[Symbol.dispose]();
  await s.records.intend(image.name, signal);
  const late = s.host.fault((op, path) => op === "write" && path.includes("/pulled/") ? errno("ENOSPC") : undefined);
  await s.records.pulled(image, secret("s", "h"));
  late[Symbol.dispose]();
  assert.equal(await s.must(s.records, [secret("s", "h")]), true, "pulled, nobody knows by whom");
  for (
    const [name, text] of [["a", "{"], ["b", "null"], ["c", '{"kind":"Other"}'], ["d", '{"kind":"ImagePulledRecord"}']]
  ) {
    s.host.put(`${dir}/pulled/sha256-${name?.repeat(64)}`, text ?? "");
  }
  s.host.put(`${dir}/pulled/sha256-x.tmp`, "half");
  assert.equal(await s.must(s.make(), [secret("s", "h")]), true);
  assert.equal(s.log.lines.filter((l) => /cannot be read/.test(l.message)).length, 1);
  assert.equal(
    readRecord({ kind: "ImagePulledRecord", imageRef: "x", credentialMapping: { a: 1, b: { kubernetesSecrets: [1] } } })
      ?.credentials.size,
    1,
  );
  assert.deepEqual(writtenRecord({ ref: "x", updatedAt: 0, credentials: new Map() }), {
    lastUpdatedTime: "1970-01-01T00:00:00Z",
    imageRef: "x",
  });
});

Deno.test("the image manager: a pod without the Secret pulls for itself, or is told that the image is not there", async () => {
  const s = scene();
  const runtime = new FakeRuntime({ clock: s.clock, random: seeded(1) });
  const events = new RecordingEvents();
  const own = new Map<string, PullCredential[]>([["has", [secret("s", "h")]], ["hasnot", []]]);
  const manager = createImageManager({
    images: runtime,
    clock: s.clock,
    log: s.log,
    events,
    serialize: true,
    qps: 0,
    burst: 1,
    records: s.records,
    keyring: { lookup: ({ pod }) => Promise.resolve(own.get(pod.metadata.name) ?? []) },
  });
  await using _ = manager;
  const ensure = (name: string, imagePullPolicy: string) =>
    manager.ensure({
      pod: { metadata: { name, namespace: "ns", uid: name }, spec: { containers: [] } },
      container: { name: "c", image: "r.io/a:1", imagePullPolicy },
      sandboxConfig: {},
      runtimeHandler: "",
      signal,
    });
  const pulls = () => runtime.calls.filter((c) => c.call === "PullImage").length;
  await ensure("has", "IfNotPresent");
  await ensure("has", "IfNotPresent");
  assert.equal(pulls(), 1);
  await assert.rejects(ensure("hasnot", "Never"), /is not present with pull policy of Never/);
  await ensure("hasnot", "IfNotPresent");
  assert.equal(pulls(), 2, "it pulls with what it has, here nothing, and the registry decides");
  await ensure("hasnot", "Never");
  assert.equal(pulls(), 2, "the registry gave it without credentials: any pod may use it");
  using _full = s.host.fault((op, path) => op === "write" && path.startsWith(dir) ? errno("ENOSPC") : undefined);
  await assert.rejects(ensure("has", "Always"), {
    reason: "ErrImagePull",
    message: /^Failed to record image pull intent for container image "r\.io\/a:1": /,
  });
});
