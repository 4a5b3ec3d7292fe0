import assert from "@assert";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { silent } from "../../mod/base/log.ts";
import { seeded } from "../../mod/base/random.ts";
import { Scope } from "../../mod/base/scope.ts";
import { FakeApi } from "../../mod/kube/api/fake/fake_api.ts";
import { createInformer } from "../../mod/kube/api/informer.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import { ApiError, isApiNotFound } from "../../mod/kube/api/types.ts";
import type { BoundPod, PodSpec, Secret } from "../../mod/kube/types.ts";
import { createPodObjects } from "./manager.ts";
import type { ChangeStrategy } from "./types.ts";

const resyncMs = 60_000;

function scene(strategy: ChangeStrategy = "Watch", ttlMs?: number) {
  const clock = new FakeClock();
  const api = new FakeApi({ clock });
  const scope = new Scope("objects");
  const client = api.client("main", { node: "n1" });
  const told: string[] = [];
  const objects = createPodObjects({
    strategy,
    client,
    watch: (resource) => ({ namespace, name, onChange, onList, onFailure }) =>
      createInformer({
        client,
        resource,
        namespace,
        fieldSelector: `metadata.name=${name}`,
        clock,
        random: seeded(1),
        log: silent,
        onChange,
        onList,
        onFailure,
      }),
    clock,
    log: silent,
    scope,
    resyncMs,
    ttlMs: () => ttlMs,
    onChange: (uid, live) => void told.push(`${uid} ${live ? "volumes" : "containers"}`),
  });
  const { signal } = new AbortController();
  /** A pod of this node (`other`: of another one), as the API server has it. */
  const pod = (name: string, spec: Partial<PodSpec>, other = false): BoundPod => {
    const made = api.create(resources.pods, {
      metadata: { name, namespace: "ns" },
      spec: { nodeName: other ? "n2" : "n1", containers: [{ name: "c", image: "i" }], ...spec },
    });
    return { ...made, metadata: { ...made.metadata, name, namespace: "ns", uid: name }, spec: made.spec! };
  };
  const secret = (name: string, text: string, more: Partial<Secret> = {}) => {
    const there = api.get(resources.secrets, { name, namespace: "ns" }) !== undefined;
    const object = { metadata: { name, namespace: "ns" }, data: { k: btoa(text) }, ...more };
    return there ? api.put(resources.secrets, object) : api.create(resources.secrets, object);
  };
  /** What a reader gets: the text, or why not. */
  const read = async (name: string): Promise<string> => {
    let done: string | undefined;
    objects.secret("ns", name, signal).then(
      (s) => done = atob(s.data?.["k"] ?? ""),
      (e: Error) => done = `${e instanceof ApiError ? e.status : e.name}: ${e.message}`,
    );
    for (let i = 0; done === undefined && i < 200; i++) {
      await turn();
      if (done === undefined) await clock.advance(100);
    }
    return done ?? "no answer";
  };
  const calls = (resource: string) => {
    const found = api.calls.filter((c) => c.resource === resource).map((c) => `${c.verb} ${c.fieldSelector ?? c.name}`);
    return [...new Set(found)];
  };
  const settle = async () => {
    for (let i = 0; i < 10; i++) await turn();
  };
  return { clock, api, scope, objects, told, pod, secret, read, calls, settle, signal };
}

const volume = (name: string) => ({ volumes: [{ name: "v", secret: { secretName: name } }] });
const env = (name: string) => ({ containers: [{ name: "c", image: "i", envFrom: [{ secretRef: { name } }] }] });

Deno.test("Watch: one watch of one object, shared by pods, ended with the last of them", async () => {
  const s = scene();
  await using _ = s.scope;
  s.secret("a", "1");
  const [p, q] = [s.pod("p", volume("a")), s.pod("q", env("a"))];
  s.objects.register(p);
  s.objects.register(q);
  s.objects.register(p);
  assert.equal(await s.read("a"), "1");
  assert.deepEqual(s.calls("secrets"), ["list metadata.name=a", "watch metadata.name=a"]);
  assert.equal(s.api.watches, 1);
  s.objects.unregister("p");
  await s.settle();
  assert.equal(s.api.watches, 1);
  s.objects.unregister("q");
  s.objects.unregister("q");
  await s.settle();
  assert.equal(s.api.watches, 0);
  assert.match(await s.read("a"), /object "ns"\/"a" not registered/);
});

Deno.test("Watch: a change is told to pods whose volumes show it, an object that comes at last to all that missed it", async () => {
  const s = scene();
  await using _ = s.scope;
  s.secret("a", "1");
  for (const p of [s.pod("shows", volume("a")), s.pod("reads", env("a"))]) s.objects.register(p);
  for (const p of [s.pod("w1", volume("late")), s.pod("w2", env("late"))]) s.objects.register(p);
  await s.settle();
  assert.deepEqual(s.told, [], "nobody has been told anything that is wrong now");
  assert.equal(await s.read("a"), "1");
  assert.equal(await s.read("late"), '404: secret "late" not found');
  s.secret("a", "2");
  await s.settle();
  assert.deepEqual(s.told.splice(0), ["shows volumes"]);
  assert.equal(await s.read("a"), "2");
  s.secret("late", "x");
  await s.settle();
  assert.deepEqual(s.told.splice(0).sort(), ["w1 volumes", "w2 containers"]);
  s.api.remove(resources.secrets, { namespace: "ns", name: "a" });
  await s.settle();
  assert.deepEqual(s.told, ["shows volumes"]);
  assert.equal(await s.read("a"), '404: secret "a" not found');
});

Deno.test("Watch: what is refused, what cannot be asked; what is known goes on serving", async () => {
  const s = scene();
  await using _ = s.scope;
  s.secret("a", "1");
  s.secret("foreign", "no");
  s.objects.register(s.pod("other", volume("foreign"), true));
  assert.match(await s.read("foreign"), /^403: failed to sync secret cache: .*forbidden/i);
  s.objects.register(s.pod("p", volume("a")));
  assert.equal(await s.read("a"), "1");
  s.api.reach = "refused";
  await s.clock.advance(10_000);
  assert.equal(await s.read("a"), "1");
  s.objects.register(s.pod("q", volume("b")));
  const down = await s.read("b");
  assert.match(down, /failed to sync secret cache: /);
  assert.doesNotMatch(down, /^40/);
  s.told.length = 0;
  s.secret("a", "2");
  s.api.reach = "up";
  await s.clock.advance(120_000);
  assert.deepEqual(s.told.sort(), ["p volumes", "q volumes"], "q hears that now somebody can say");
  assert.equal(await s.read("a"), "2");
  assert.equal(await s.read("b"), '404: secret "b" not found');
});

Deno.test("Watch: what is immutable is watched no longer, and kept", async () => {
  const s = scene();
  await using _ = s.scope;
  s.secret("a", "1", { immutable: true });
  s.objects.register(s.pod("p", volume("a")));
  assert.equal(await s.read("a"), "1");
  await s.settle();
  assert.equal(s.api.watches, 0);
  s.api.reach = "refused";
  await s.clock.advance(3_600_000);
  assert.equal(await s.read("a"), "1");
});

Deno.test("Watch: what only containers read is watched for five periods; a volume's contents as long as it is", async () => {
  const s = scene();
  await using _ = s.scope;
  s.secret("env", "1");
  s.secret("vol", "1");
  s.objects.register(s.pod("p", env("env")));
  s.objects.register(s.pod("q", volume("vol")));
  assert.equal(await s.read("env"), "1");
  assert.equal(await s.read("vol"), "1");
  await s.clock.advance(5 * resyncMs - 60_000);
  assert.equal(s.api.watches, 2);
  await s.clock.advance(180_000);
  assert.equal(s.api.watches, 1);
  s.secret("env", "2");
  assert.equal(await s.read("env"), "2", "whoever reads again gets what is so now");
  assert.equal(s.api.watches, 2);
  await s.clock.advance(10 * resyncMs);
  s.api.reach = "refused";
  assert.equal(await s.read("env"), "2", "the API server is away: the last that is known");
});

Deno.test("Watch: a changed definition of a pod takes over its references", async () => {
  const s = scene();
  await using _ = s.scope;
  s.secret("a", "1");
  s.secret("b", "2");
  const p = s.pod("p", volume("a"));
  s.objects.register(p);
  assert.equal(await s.read("a"), "1");
  const now = s.api.merge(resources.pods, { namespace: "ns", name: "p" }, { spec: volume("b") });
  s.objects.register({ ...p, spec: now.spec! });
  assert.equal(await s.read("b"), "2");
  assert.match(await s.read("a"), /not registered/);
});

Deno.test("Cache: fresh for its time to live, renewed by a new pod, looked at regularly, the last answer while nobody can say", async () => {
  const s = scene("Cache", 30_000);
  await using _ = s.scope;
  s.secret("a", "1");
  s.objects.register(s.pod("p", volume("a")));
  assert.equal(await s.read("a"), "1");
  s.secret("a", "2");
  await s.clock.advance(29_000);
  assert.equal(await s.read("a"), "1");
  s.objects.register(s.pod("q", env("a")));
  assert.equal(await s.read("a"), "2");
  s.secret("a", "3");
  await s.clock.advance(31_000);
  assert.equal(await s.read("a"), "3");
  s.api.reach = "refused";
  await s.clock.advance(31_000);
  assert.equal(await s.read("a"), "3");
  assert.deepEqual(s.told, ["p volumes"], "once a period");
  s.api.reach = "up";
  s.api.remove(resources.secrets, { namespace: "ns", name: "a" });
  assert.match(await s.read("a"), /^404/);
  s.secret("a", "4");
  assert.equal(await s.read("a"), "4", "what was missing is asked for again at once");
  assert.deepEqual(s.calls("secrets"), ["get a"]);
  s.objects.unregister("p");
  s.objects.unregister("q");
  assert.match(await s.read("a"), /not registered/);
});

Deno.test("Get: asked each time", async () => {
  const s = scene("Get");
  await using _ = s.scope;
  s.secret("a", "1");
  s.objects.register(s.pod("p", volume("a")));
  assert.equal(await s.read("a"), "1");
  s.secret("a", "2");
  assert.equal(await s.read("a"), "2");
  await s.clock.advance(resyncMs);
  assert.deepEqual(s.told, ["p volumes"]);
  s.api.remove(resources.secrets, { namespace: "ns", name: "a" });
  await assert.rejects(s.objects.secret("ns", "a", s.signal), isApiNotFound);
});
