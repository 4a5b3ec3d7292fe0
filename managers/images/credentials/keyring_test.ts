import assert from "@assert";
import { FakeClock } from "../../../mod/base/fake_clock.ts";
import { FakeHost } from "../../../mod/base/fake_host.ts";
import { RecordingLogger, silent } from "../../../mod/base/log.ts";
import { ApiError } from "../../../mod/kube/api/types.ts";
import { RecordingEvents } from "../../../mod/kube/events.ts";
import type { BoundPod, Secret } from "../../../mod/kube/types.ts";
import { credentialHash, readDockercfg, readDockerConfigJson } from "./docker_config.ts";
import { joinedKeyring, pullSecretKeyring } from "./keyring.ts";
import { nodeConfigKeyring } from "./node_config.ts";
import { RegistryKeyring } from "./registry_keyring.ts";
import { registryMatches } from "./registry_match.ts";

const { signal } = new AbortController();
const auth = (user: string, password: string) => ({ auth: btoa(`${user}:${password}`) });
const pod = (...names: (string | undefined)[]): BoundPod => ({
  metadata: { name: "p", namespace: "ns", uid: "u" },
  spec: { containers: [], imagePullSecrets: names.map((name) => name === undefined ? {} : { name }) },
});
const json = (auths: unknown) => JSON.stringify({ auths });

Deno.test("registry addresses: which repositories they are for", () => {
  const cases: [string, string, boolean][] = [
    ["reg.example.com", "reg.example.com/a/b", true],
    ["*.example.com", "reg.example.com/a", true],
    ["*.example.com", "example.com/a", false],
    ["*.example.com", "a.b.example.com/a", false],
    ["*.*.example.com", "a.b.example.com/a", true],
    ["prefix*suffix.example.com", "prefix-x-suffix.example.com/a", true],
    ["prefix*suffix.example.com", "prefixsuffix.example.com/a", true],
    ["prefix*suffix.example.com", "prefix.example.com/a", false],
    ["a*a.io", "a.io/x", false],
    ["a*b*c.io", "aXbYc.io/x", true],
    ["a*b*c.io", "aXc.io/x", false],
    ["reg.example.com/team", "reg.example.com/team/app", true],
    ["reg.example.com/team", "reg.example.com/teamwork/app", true],
    ["reg.example.com/team", "reg.example.com/other", false],
    ["reg.example.com:5000", "reg.example.com:5000/a", true],
    ["reg.example.com:5000", "reg.example.com/a", false],
    ["reg.example.com", "reg.example.com:5000/a", false],
    ["localhost:5000", "localhost:5000/a", true],
    ["[::1]:5000", "[::1]:5000/a", true],
    ["*", "localhost/a", true],
    ["*".repeat(50) + "b.io", "a".repeat(5000) + ".io/x", false],
  ];
  for (const [pattern, repository, expected] of cases) {
    assert.equal(registryMatches(pattern, repository), expected, `${pattern.slice(0, 40)} ${repository.slice(0, 40)}`);
  }
});

Deno.test("credentials: the more specific address first, several for one, the default registry's own key", () => {
  const cases: [string, string, string[]][] = [
    ["a path before its registry", "quay.example.com/team/app", ["team", "all"]],
    ["another path", "quay.example.com/other/app", ["all"]],
    ["scheme, version and slash do not count", "v2.example.com/x", ["versioned"]],
    ["a version and a path", "v1.example.com/team/x", ["path"]],
    ["the default registry", "docker.io/library/busybox", ["hub"]],
    ["none", "nowhere.example.com/x", []],
  ];
  const keyring = new RegistryKeyring();
  keyring.add(readDockerConfigJson(
    json({
      "quay.example.com": auth("all", "x"),
      "https://quay.example.com/team": auth("team", "x"),
      "http://v2.example.com/v2/": auth("versioned", "x"),
      "https://v1.example.com/v1/team": auth("path", "x"),
      "https://index.docker.io/v1/": auth("hub", "x"),
    }),
    "test",
  ));
  for (const [what, repository, users] of cases) {
    assert.deepEqual(keyring.lookup(repository).map((c) => c.username), users, what);
  }
  keyring.add(readDockercfg(JSON.stringify({ "quay.example.com": auth("second", "x") }), "test"));
  assert.deepEqual(keyring.lookup("quay.example.com/a").map((c) => c.username), ["all", "second"]);
});

Deno.test("configurations: entries by user or auth; what is broken is refused without being shown", () => {
  const users = readDockerConfigJson(
    json({
      a: { username: "u", password: "p:w", email: "e" },
      b: auth("x", "y:z"),
      c: { auth: btoa("n:o").replace(/=+$/, "") },
    }),
    "test",
  );
  assert.deepEqual([...users], [
    ["a", { username: "u", password: "p:w", email: "e" }],
    ["b", { username: "x", password: "y:z", email: "" }],
    ["c", { username: "n", password: "o", email: "" }],
  ]);
  assert.equal(readDockerConfigJson("{}", "test").size, 0);
  const secret = "s3cret";
  const broken: [string, RegExp][] = [
    [`{"auths": ${secret}`, /it is no JSON$/],
    [`["${secret}"]`, /it is no JSON object/],
    [json(secret), /auths is no JSON object/],
    [json({ r: secret }), /registry "r": the entry is no JSON object/],
    [json({ r: { auth: btoa(secret) } }), /must be formatted as base64\(username:password\)/],
    [json({ r: { auth: `${secret}!` } }), /auth is no base64/],
    [json({ r: { password: [secret] } }), /password is no text/],
  ];
  for (const [text, expected] of broken) {
    assert.throws(() => readDockerConfigJson(text, "pull secret ns/s"), (thrown: Error) => {
      assert.match(thrown.message, expected);
      assert.ok(!thrown.message.includes(secret), thrown.message);
      return true;
    });
  }
});

Deno.test("a credential's digest is that of its JSON as pull records hold it", async () => {
  const cases = [
    [{ username: "u", password: "<p&>", email: "" }, String.raw`{"username":"u","password":"\u003cp\u0026\u003e"}`],
    [{ username: "", password: "", email: "e@x" }, `{"email":"e@x"}`],
  ] as const;
  for (const [user, text] of cases) {
    const bytes = new Uint8Array(await crypto.subtle.digest("SHA-256", new TextEncoder().encode(text)));
    assert.equal(credentialHash(user), bytes.toHex());
  }
});

Deno.test("pull secrets: both types; one that cannot be read is told, one that is broken fails the pull", async () => {
  const secrets = new Map<string, Secret>([
    ["new", {
      type: "kubernetes.io/dockerconfigjson",
      data: { ".dockerconfigjson": btoa(json({ "r.io": auth("new", "1") })) },
    }],
    ["old", {
      type: "kubernetes.io/dockercfg",
      data: { ".dockercfg": btoa(JSON.stringify({ "r.io": auth("old", "2") })) },
    }],
    ["opaque", { type: "Opaque", data: { ".dockerconfigjson": btoa(json({ "r.io": auth("no", "3") })) } }],
    ["empty", { type: "kubernetes.io/dockerconfigjson", data: {} }],
    ["broken", { type: "kubernetes.io/dockerconfigjson", data: { ".dockerconfigjson": btoa("{") } }],
  ]);
  const events = new RecordingEvents();
  const keyring = pullSecretKeyring({
    objects: {
      secret: (namespace, name) => {
        const found = secrets.get(name);
        if (found) return Promise.resolve({ ...found, metadata: { namespace, name, uid: `uid-${name}` } });
        return Promise.reject(new ApiError(`secret "${name}" not found`, { status: 404, reason: "NotFound" }));
      },
    },
    events,
    log: silent,
  });
  const lookup = (...names: (string | undefined)[]) =>
    keyring.lookup({ image: "r.io/a:1", repository: "r.io/a", pod: pod(...names), signal });
  assert.deepEqual(
    (await lookup("new", "old", "opaque", "empty")).map(({ username, password, source }) => [
      username,
      password,
      source,
    ]),
    [
      ["new", "1", { kind: "secret", uid: "uid-new", namespace: "ns", name: "new" }],
      ["old", "2", { kind: "secret", uid: "uid-old", namespace: "ns", name: "old" }],
    ],
  );
  assert.deepEqual(events.events, []);
  assert.equal((await lookup("gone", "new", "", undefined, "away")).length, 1);
  assert.deepEqual(events.events.map((e) => [e.type, e.reason, e.message]), [[
    "Warning",
    "FailedToRetrieveImagePullSecret",
    "Unable to retrieve some image pull secrets (gone, away); attempting to pull the image may not succeed.",
  ]]);
  await assert.rejects(lookup("broken"), /pull secret ns\/broken: it is no JSON/);
});

Deno.test("the node's own configuration: first file that can be used, read again after five minutes", async () => {
  const clock = new FakeClock();
  const host = new FakeHost({ clock });
  const log = new RecordingLogger();
  const keyring = nodeConfigKeyring({ host, clock, log, rootDir: "/r" });
  const users = async () =>
    (await keyring.lookup({ image: "r.io/a", repository: "r.io/a", pod: pod(), signal })).map((c) => c.username);
  assert.deepEqual(await users(), []);
  host.put("/root/.dockercfg", JSON.stringify({ "r.io": auth("legacy", "x") }));
  assert.deepEqual(await users(), [], "kept");
  await clock.advance(300_000);
  assert.deepEqual(await users(), ["legacy"]);
  host.put("/root/.docker/config.json", json({ "r.io": auth("home", "x") }));
  await clock.advance(300_000);
  assert.deepEqual(await users(), ["home"]);
  host.put("/r/config.json", "no JSON");
  await clock.advance(300_000);
  assert.deepEqual(await users(), ["home"], "what is broken is passed over");
  host.put("/r/config.json", json({ "r.io": auth("root", "x") }));
  await clock.advance(300_000);
  assert.deepEqual(await users(), ["root"]);
  const [credential] = await keyring.lookup({ image: "r.io/a", repository: "r.io/a", pod: pod(), signal });
  assert.equal(credential?.source, undefined, "any pod of the node may use it");
});

Deno.test("several keyrings: in their order", async () => {
  const one = (username: string) => ({
    lookup: () => Promise.resolve([{ username, password: "", hash: username }]),
  });
  const joined = joinedKeyring([one("a"), { lookup: () => Promise.resolve([]) }, one("b")]);
  const found = await joined.lookup({ image: "x", repository: "x", pod: pod(), signal });
  assert.deepEqual(found.map((c) => c.username), ["a", "b"]);
});
