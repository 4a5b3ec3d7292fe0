import assert from "@assert";
import { FakeClock, turn } from "../../../mod/base/fake_clock.ts";
import { FakeHost } from "../../../mod/base/fake_host.ts";
import type { CommandResult, Host } from "../../../mod/base/host.ts";
import { RecordingLogger } from "../../../mod/base/log.ts";
import type { BoundPod } from "../../../mod/kube/types.ts";
import type { TokenWanted } from "../../tokens/types.ts";
import { providersKeyring } from "./provider.ts";
import { type ProviderConfig, readProviderConfigs } from "./provider_config.ts";

const v1 = "credentialprovider.kubelet.k8s.io/v1";
const provider: ProviderConfig = {
  name: "ecr",
  apiVersion: v1,
  matchImages: ["*.example.com", "reg.io:5000/team"],
  defaultCacheMs: 60_000,
  args: ["get", "x"],
  env: { REGION: "eu" },
};

type Plugin = (request: Record<string, unknown>) => unknown;

function scene(config: Partial<ProviderConfig> = {}, more: { noAccounts?: boolean } = {}) {
  const clock = new FakeClock();
  const log = new RecordingLogger();
  const measured: string[] = [];
  const runs: { program: string; args: string[]; env: unknown; request: Record<string, unknown> }[] = [];
  const s = {
    plugin: ((request) => ({
      auth: { [String(request["image"]).split("/")[0] ?? ""]: { username: "u", password: "p" } },
    })) as Plugin,
    code: 0,
    hang: false,
    annotations: {} as Record<string, string>,
    token: "token-1",
    wanted: [] as TokenWanted[],
  };
  const host: Pick<Host, "run"> = {
    run: async (program, args, options = {}) => {
      const request = JSON.parse(options.stdin ?? "");
      runs.push({ program, args, env: options.env, request });
      if (s.hang) await new Promise(() => {});
      await turn();
      const answer = s.plugin(request);
      const stdout = typeof answer === "string" ? answer : JSON.stringify({
        kind: "CredentialProviderResponse",
        apiVersion: v1,
        cacheKeyType: "Image",
        ...answer as object,
      });
      return { code: s.code, stdout, stderr: "it says why\n" } satisfies CommandResult;
    },
  };
  const keyring = providersKeyring({
    configs: [{ ...provider, ...config }],
    binDir: "/plugins",
    host,
    clock,
    log,
    onRun: (plugin, _, failed) => void measured.push(`${plugin} ${failed ? "failed" : "answered"}`),
    ...(more.noAccounts ? {} : {
      accounts: {
        get: () => Promise.resolve({ uid: "sa-uid", annotations: s.annotations }),
        token: (wanted) => {
          s.wanted.push(wanted);
          return Promise.resolve({ token: s.token, expiresAt: 0 });
        },
      },
    }),
  });
  const lookup = (repository: string, pod: { name?: string; account?: string; signal?: AbortSignal } = {}) => {
    const { name = "p", account } = pod;
    const whole: BoundPod = {
      metadata: { name, namespace: "ns", uid: `uid-${name}` },
      spec: { containers: [], ...(account === undefined ? {} : { serviceAccountName: account }) },
    };
    const signal = pod.signal ?? new AbortController().signal;
    return keyring.lookup({ image: `${repository}:1`, repository, pod: whole, signal });
  };
  const errors = () => log.lines.splice(0).map((l) => String(l.fields["error"]));
  return { ...s, s, clock, runs, measured, lookup, errors };
}

Deno.test("a plugin is asked for images that it is for, as its configuration says", async () => {
  const t = scene();
  const [found] = await t.lookup("a.example.com/app");
  assert.deepEqual([found?.username, found?.password, found?.source], ["u", "p", undefined]);
  assert.deepEqual(t.runs, [{
    program: "/plugins/ecr",
    args: ["get", "x"],
    env: { REGION: "eu" },
    request: { kind: "CredentialProviderRequest", apiVersion: v1, image: "a.example.com/app" },
  }]);
  for (const other of ["example.com/app", "reg.io:5000/other", "reg.io/team"]) {
    assert.deepEqual(await t.lookup(other), [], other);
  }
  assert.equal(t.runs.length, 1);
});

Deno.test("credentials are kept per image, registry or for all, for the time that plugin or configuration says", async () => {
  const cases: [string, object, number][] = [
    ["per image", { cacheKeyType: "Image" }, 3],
    ["per registry", { cacheKeyType: "Registry" }, 2],
    ["for all", { cacheKeyType: "Global", auth: { "*.example.com": { username: "u", password: "p" } } }, 1],
    ["not at all", { cacheKeyType: "Global", cacheDuration: "0s" }, 6],
  ];
  for (const [what, answer, runs] of cases) {
    const t = scene();
    const before = t.s.plugin;
    t.s.plugin = (request) => ({ ...before(request) as object, ...answer });
    const images = ["a.example.com/1", "a.example.com/2", "b.example.com/1"];
    for (const image of [...images, ...images]) assert.equal((await t.lookup(image)).length, 1, what);
    assert.equal(t.runs.length, runs, what);
  }
  for (const [duration, kept] of [[undefined, 60_000], ["2h", 7_200_000]] as const) {
    const t = scene();
    const before = t.s.plugin;
    t.s.plugin = (request) => ({ ...before(request) as object, ...(duration ? { cacheDuration: duration } : {}) });
    await t.lookup("a.example.com/1");
    await t.clock.advance(kept);
    await t.lookup("a.example.com/1");
    assert.equal(t.runs.length, 1);
    await t.clock.advance(1);
    await t.lookup("a.example.com/1");
    assert.equal(t.runs.length, 2);
  }
});

Deno.test("equal requests at once share one run; whoever leaves does not end it", async () => {
  const t = scene();
  const leaver = new AbortController();
  const [one, two] = [t.lookup("a.example.com/1", { signal: leaver.signal }), t.lookup("a.example.com/1")];
  const left = assert.rejects(one, { code: "Aborted" });
  leaver.abort();
  await left;
  assert.equal((await two).length, 1);
  assert.equal(t.runs.length, 1);
  assert.deepEqual(t.measured, ["ecr answered"]);
});

Deno.test("a plugin that fails gives nothing and is logged, without what it printed; the next request asks again", async () => {
  const secret = "hidden-password";
  const cases: [string, (t: ReturnType<typeof scene>["s"]) => void, RegExp][] = [
    ["exit code", (s) => s.code = 3, /plugin ecr for image a\.example\.com\/1: exit status 3: it says why/],
    ["no JSON", (s) => s.plugin = () => `{"${secret}`, /error decoding credential provider plugin response/],
    ["kind", (s) => s.plugin = () => ({ kind: "Other", x: secret }), /error decoding/],
    ["version", (s) => s.plugin = () => ({ apiVersion: "x/v2" }), /expected apiVersion:.*v1, actual apiVersion:x\/v2/],
    ["cache key", (s) => s.plugin = () => ({ cacheKeyType: "Moon" }), /valid cacheKeyType: Moon/],
    ["auth", (s) => s.plugin = () => ({ auth: { r: { password: [secret] } } }), /error decoding/],
    ["duration", (s) => s.plugin = () => ({ cacheDuration: "soon" }), /error decoding/],
  ];
  for (const [what, change, expected] of cases) {
    const t = scene();
    change(t.s);
    assert.deepEqual(await t.lookup("a.example.com/1"), [], what);
    const [error = ""] = t.errors();
    assert.match(error, expected, what);
    assert.ok(!error.includes(secret), what);
    await t.lookup("a.example.com/1");
    assert.equal(t.runs.length, 2, what);
  }
});

Deno.test("a plugin that hangs is given up after a minute", async () => {
  const t = scene();
  t.s.hang = true;
  const found = t.lookup("a.example.com/1");
  await t.clock.advance(60_000);
  assert.deepEqual(await found, []);
  assert.match(t.errors()[0] ?? "", /did not end within 60 s/);
  assert.deepEqual(t.measured, ["ecr failed"]);
});

const token = {
  audience: "aud",
  required: true,
  requiredAnnotations: ["a/need"],
  optionalAnnotations: ["a/may"],
  cacheType: "ServiceAccount",
} as const;

Deno.test("a plugin gets the account's token and annotations; pods of one account share credentials", async () => {
  const t = scene({ token });
  t.s.annotations["a/need"] = "1";
  t.s.annotations["other"] = "2";
  const [found] = await t.lookup("a.example.com/1", { account: "sa" });
  assert.deepEqual(found?.source, { kind: "serviceAccount", uid: "sa-uid", namespace: "ns", name: "sa" });
  assert.deepEqual(t.runs[0]?.request, {
    kind: "CredentialProviderRequest",
    apiVersion: v1,
    image: "a.example.com/1",
    serviceAccountToken: "token-1",
    serviceAccountAnnotations: { "a/need": "1" },
  });
  assert.deepEqual(t.s.wanted[0], {
    namespace: "ns",
    serviceAccount: "sa",
    audiences: ["aud"],
    pod: { name: "p", uid: "uid-p" },
    serviceAccountUid: "sa-uid",
  });
  await t.lookup("a.example.com/1", { account: "sa", name: "q" });
  assert.equal(t.runs.length, 1);
  t.s.annotations["a/may"] = "3";
  await t.lookup("a.example.com/1", { account: "sa" });
  assert.equal(t.runs.length, 2, "other annotations, other credentials");
});

Deno.test("which pods a plugin with tokens is asked for", async () => {
  const cases: [string, Parameters<typeof scene>, string | undefined, number, RegExp | undefined][] = [
    ["no account, required", [{ token }], undefined, 0, undefined],
    [
      "no account, not required",
      [{ token: { ...token, required: false, requiredAnnotations: [] } }],
      undefined,
      1,
      undefined,
    ],
    ["the annotation is missing", [{ token }], "sa", 0, undefined],
    [
      "no API server",
      [{ token: { ...token, requiredAnnotations: [] } }, { noAccounts: true }],
      "sa",
      0,
      /take an API server/,
    ],
  ];
  for (const [what, made, account, runs, error] of cases) {
    const t = scene(...made);
    await t.lookup("a.example.com/1", account === undefined ? {} : { account });
    assert.equal(t.runs.length, runs, what);
    const [said] = t.errors();
    if (error) assert.match(said ?? "", error, what);
    else assert.equal(said, undefined, what);
  }
});

Deno.test("a token that comes back as the password is credentials for that token only", async () => {
  const echo: Plugin = ({ serviceAccountToken }) => ({
    auth: { "a.example.com": { username: "u", password: serviceAccountToken } },
  });
  const t = scene({ token: { ...token, requiredAnnotations: [] } });
  t.s.plugin = echo;
  assert.deepEqual(await t.lookup("a.example.com/1", { account: "sa" }), []);
  assert.match(t.errors()[0] ?? "", /needs cacheType: Token/);
  const u = scene({ token: { ...token, requiredAnnotations: [], cacheType: "Token" } });
  u.s.plugin = echo;
  assert.equal((await u.lookup("a.example.com/1", { account: "sa" }))[0]?.password, "token-1");
  await u.lookup("a.example.com/1", { account: "sa" });
  assert.equal(u.runs.length, 1);
  u.s.token = "token-2";
  assert.equal((await u.lookup("a.example.com/1", { account: "sa" }))[0]?.password, "token-2");
});

const head = "kind: CredentialProviderConfig\napiVersion: kubelet.config.k8s.io/v1\n";
const good =
  `${head}providers:\n- name: ecr\n  matchImages: ["*.io"]\n  defaultCacheDuration: 12h\n  apiVersion: ${v1}\n`;

Deno.test("configuration: a file, or those of a directory in order", async () => {
  const host = new FakeHost({ clock: new FakeClock() });
  host.put("/one.yaml", `${good}  args: [a]\n  env: [{name: K, value: v}]\n`);
  const { providers, hash } = await readProviderConfigs(host, "/one.yaml");
  assert.match(hash, /^sha256:[0-9a-f]{64}$/);
  host.put("/other.yaml", good);
  assert.notEqual((await readProviderConfigs(host, "/other.yaml")).hash, hash);
  assert.deepEqual(providers, [{
    name: "ecr",
    apiVersion: v1,
    matchImages: ["*.io"],
    defaultCacheMs: 12 * 3600_000,
    args: ["a"],
    env: { K: "v" },
  }]);
  host.put("/d/2.yml", good.replace("ecr", "second"));
  host.put(
    "/d/1.json",
    JSON.stringify({
      kind: "CredentialProviderConfig",
      apiVersion: "kubelet.config.k8s.io/v1beta1",
      providers: [{
        name: "first",
        matchImages: ["x"],
        defaultCacheDuration: "0s",
        apiVersion: v1,
        tokenAttributes: {
          serviceAccountTokenAudience: "aud",
          requireServiceAccount: true,
          requiredServiceAccountAnnotationKeys: ["example.com/a"],
          cacheType: "Token",
        },
      }],
    }),
  );
  host.put("/d/notes.txt", "no configuration");
  const { providers: both } = await readProviderConfigs(host, "/d");
  assert.deepEqual(both.map((p) => p.name), ["first", "second"]);
  assert.deepEqual(both[0]?.token, {
    audience: "aud",
    required: true,
    requiredAnnotations: ["example.com/a"],
    optionalAnnotations: [],
    cacheType: "Token",
  });
  host.put("/d/3.yaml", good.replace("ecr", "first"));
  await assert.rejects(readProviderConfigs(host, "/d"), /3\.yaml: there are two providers named "first"/);
});

Deno.test("configuration: what is wrong is named with its file and field", async () => {
  const host = new FakeHost({ clock: new FakeClock() });
  host.putDir("/empty");
  await assert.rejects(readProviderConfigs(host, "/none"), { code: "BadConfig", message: /there is nothing/ });
  await assert.rejects(readProviderConfigs(host, "/empty"), /no configuration files found in directory \/empty/);
  const attributes = (text: string) =>
    `${good}  tokenAttributes: {serviceAccountTokenAudience: a, requireServiceAccount: true, cacheType: Token, ${text}}\n`;
  const cases: [string, RegExp][] = [
    [head, /it has no providers/],
    [good.replace("kind: C", "kind: X"), /kind: must be CredentialProviderConfig/],
    [good.replace("k8s.io/v1\n", "k8s.io/v9\n"), /apiVersion: must be one of/],
    [`${good}  colour: red\n`, /providers\[0\]\.colour: unknown field/],
    [good.replace("name: ecr", "name: ../ecr"), /providers\[0\]\.name: must be the name of a program/],
    [good.replace('["*.io"]', "[]"), /matchImages: must name at least one image/],
    [good.replace('"*.io"', '"a b"'), /matchImages\[0\]/],
    [good.replace("12h", "-1h"), /defaultCacheDuration: must be greater than or equal to 0/],
    [good.replace("12h", "soon"), /defaultCacheDuration/],
    [good.replace("  defaultCacheDuration: 12h\n", ""), /defaultCacheDuration: is required/],
    [good.replace(v1, "other/v1"), /providers\[0\]\.apiVersion: must be one of/],
    [attributes("x: 1"), /tokenAttributes\.x: unknown field/],
    [attributes("").replace("cacheType: Token", "cacheType: Pod"), /cacheType: must be ServiceAccount or Token/],
    [attributes("").replace("requireServiceAccount: true, ", ""), /requireServiceAccount: is required/],
    [attributes("requiredServiceAccountAnnotationKeys: ['a b']"), /AnnotationKeys\[0\]: must be an annotation's key/],
    [
      attributes("requiredServiceAccountAnnotationKeys: [a], optionalServiceAccountAnnotationKeys: [a]"),
      /both required and/,
    ],
    [
      attributes("requiredServiceAccountAnnotationKeys: [a]").replace("Account: true", "Account: false"),
      /needs requireS/,
    ],
  ];
  for (const [text, expected] of cases) {
    host.put("/c.yaml", text);
    await assert.rejects(readProviderConfigs(host, "/c.yaml"), { code: "BadConfig", message: expected }, text);
  }
});
