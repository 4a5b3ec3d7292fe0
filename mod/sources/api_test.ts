import assert from "@assert";
import { FakeClock, turn } from "../base/fake_clock.ts";
import { RecordingLogger } from "../base/log.ts";
import { Scope } from "../base/scope.ts";
import type { Informer, ObjectName } from "../kube/api/types.ts";
import { RecordingEvents } from "../kube/events.ts";
import { configMirror } from "../kube/pod.ts";
import type { BoundPod, Pod } from "../kube/types.ts";
import { ApiSource } from "./api.ts";
import { takeApiPod } from "./api_pod.ts";

const podOf = (name: string, uid: string, rest: { metadata?: object; spec?: object } = {}): Pod => ({
  metadata: { name, namespace: "default", uid, ...rest.metadata },
  spec: { nodeName: "n1", containers: [{ name: "c", image: "i" }], ...rest.spec },
});

class Pods implements Informer<Pod> {
  readonly objects = new Map<string, Pod>();
  synced = false;
  ran = 0;
  readonly #first = Promise.withResolvers<void>();
  constructor(readonly onChange: () => void) {}
  whenSynced(signal: AbortSignal): Promise<void> {
    signal.addEventListener("abort", () => this.#first.reject(signal.reason), { once: true });
    return this.#first.promise;
  }
  get({ name, namespace }: ObjectName): Pod | undefined {
    return this.objects.get(`${namespace}/${name}`);
  }
  all(): Pod[] {
    return [...this.objects.values()];
  }
  run(signal: AbortSignal): Promise<void> {
    this.ran++;
    return new Promise((_, reject) => signal.addEventListener("abort", () => reject(signal.reason), { once: true }));
  }
  put(...pods: Pod[]): void {
    for (const pod of pods) this.objects.set(`${pod.metadata?.namespace}/${pod.metadata?.name}`, pod);
    this.onChange();
  }
  drop(pod: Pod): void {
    this.objects.delete(`${pod.metadata?.namespace}/${pod.metadata?.name}`);
    this.onChange();
  }
  sync(): void {
    this.synced = true;
    this.#first.resolve();
    this.onChange();
  }
}

function setUp() {
  const clock = new FakeClock();
  const log = new RecordingLogger();
  const events = new RecordingEvents();
  const t = { nodeRead: true };
  const made: Pods[] = [];
  const source = new ApiSource({
    nodeName: "n1",
    clock,
    log,
    events,
    informer: (onChange) => {
      const informer = new Pods(onChange);
      made.push(informer);
      return informer;
    },
    nodeRead: () => t.nodeRead,
  });
  const pods = made[0];
  if (!pods) throw new Error("no informer was made");
  const emitted: BoundPod[][] = [];
  const scope = new Scope("test");
  const start = async () => {
    scope.spawn("source", (signal) => source.run(signal, (given) => emitted.push([...given])));
    await turn();
  };
  return { t, clock, log, events, source, pods, emitted, scope, start };
}

const names = (pods: readonly BoundPod[] | undefined) => pods?.map((p) => `${p.metadata.name}/${p.metadata.uid}`);

Deno.test("nothing is asked before the node was read, nothing is told before the first list is whole", async () => {
  const { t, clock, source, pods, emitted, scope, start } = setUp();
  t.nodeRead = false;
  await start();
  await clock.advance(1000);
  assert.equal(pods.ran, 0);
  t.nodeRead = true;
  await clock.advance(100);
  assert.equal(pods.ran, 1);
  pods.put(podOf("a", "1"));
  await turn();
  assert.deepEqual([emitted.length, source.synced], [0, false]);
  pods.put(podOf("b", "2"));
  pods.sync();
  await turn();
  assert.deepEqual(emitted.map(names), [["a/1", "b/2"]]);
  await scope.close();
});

Deno.test("each change gives the full state, a pod's mark of deletion too although it is gone at once", async () => {
  const { pods, emitted, scope, start } = setUp();
  await start();
  pods.sync();
  assert.deepEqual(emitted.map(names), [[]]);
  pods.put(podOf("a", "1"), podOf("b", "2"));
  const marked = podOf("a", "1", { metadata: { deletionTimestamp: "x", deletionGracePeriodSeconds: 0 } });
  pods.put(marked);
  pods.drop(marked);
  pods.put(podOf("a", "3"));
  assert.deepEqual(emitted.map(names), [[], ["a/1", "b/2"], ["a/1", "b/2"], ["b/2"], ["b/2", "a/3"]]);
  assert.equal(emitted[2]?.[0]?.metadata.deletionGracePeriodSeconds, 0);
  await scope.close();
});

Deno.test("mirror pods are known and never wanted; managed fields are dropped", async () => {
  const { source, pods, emitted, scope, start } = setUp();
  let told = 0;
  source.subscribe(() => told++);
  pods.put(podOf("m", "1", { metadata: { annotations: { [configMirror]: "h" }, managedFields: [{}] } }));
  await start();
  pods.sync();
  assert.deepEqual(emitted.map(names), [[]]);
  assert.deepEqual(names(source.mirrors()), ["m/1"]);
  const got = source.get({ namespace: "default", name: "m" });
  assert.deepEqual([got?.metadata.uid, got?.metadata.managedFields, told], ["1", undefined, 1]);
  assert.equal(source.get({ namespace: "default", name: "x" }), undefined);
  assert.equal(source.get({ namespace: "default", name: "m" }), got);
  await scope.close();
});

Deno.test("a pod that cannot be used costs no other: it is told once, and again when it is otherwise wrong", async () => {
  const { log, events, source, pods, emitted, scope, start } = setUp();
  pods.put(podOf("good", "1"), podOf("bad", "2", { spec: { containers: [] } }));
  await start();
  pods.sync();
  pods.put(podOf("more", "3"));
  await turn();
  assert.deepEqual(emitted.map(names), [["good/1"], ["good/1", "more/3"]]);
  assert.equal(log.lines.length, 1);
  assert.deepEqual([...source.problems], [["api default/bad", "spec.containers: want at least one"]]);
  assert.deepEqual(events.events.map((e) => [e.reason, e.message]), [[
    "FailedValidation",
    "Error validating pod bad_default(2) from api, ignoring: spec.containers: want at least one",
  ]]);
  pods.put(podOf("bad", "2"));
  await turn();
  assert.deepEqual([names(emitted.at(-1))?.sort(), source.problems.size], [["bad/2", "good/1", "more/3"], 0]);
  await scope.close();
});

Deno.test("what could hurt the node is refused with its field", () => {
  const rows: [pod: Pod, problem: string][] = [
    [{}, "metadata.name: nothing is no name of a pod"],
    [podOf("../etc", "1"), 'metadata.name: "../etc" is no name of a pod'],
    [podOf("a", "1", { metadata: { namespace: "a/b" } }), 'metadata.namespace: "a/b" is no namespace'],
    [podOf("a", ".."), 'metadata.uid: ".." can\'t name a directory'],
    [{ metadata: { name: "a", namespace: "b", uid: "1" } }, "spec: want an object"],
    [podOf("a", "1", { spec: { nodeName: "n2" } }), 'spec.nodeName: "n2" is not this node'],
    [podOf("a", "1", { spec: { containers: {} } }), "spec.containers: want a list"],
    [podOf("a", "1", { spec: { containers: [null] } }), "spec.containers[0].name: nothing is no name"],
    [podOf("a", "1", { spec: { initContainers: [{ name: "a/b" }] } }), 'spec.initContainers[0].name: "a/b" is no name'],
    [
      podOf("a", "1", { spec: { volumes: [{ name: "v" }, { name: "v" }] } }),
      'spec.volumes[1].name: "v" is there twice',
    ],
    [
      podOf("a", "1", { spec: JSON.parse('{"ephemeralContainers":[{"name":"__proto__"}]}') }),
      'spec.ephemeralContainers[0].name: "__proto__" is no name',
    ],
  ];
  for (const [pod, problem] of rows) {
    const taken = takeApiPod(pod, "n1");
    assert.equal("problem" in taken ? taken.problem : "none", problem);
  }
});

Deno.test("a pod that is told without sense goes on as it was last told, and its deletion counts", async () => {
  const { source, pods, emitted, scope, start } = setUp();
  await start();
  pods.sync();
  pods.put(podOf("web", "1"));
  const good = emitted.at(-1)?.[0];
  pods.put(podOf("web", "1", { spec: { containers: [] } }));
  assert.equal(emitted.at(-1)?.[0], good, "the very same picture");
  assert.equal(source.problems.size, 1);
  pods.put(podOf("web", "1", {
    metadata: { deletionTimestamp: "2026-01-01T00:00:30Z", deletionGracePeriodSeconds: 30 },
    spec: { containers: [] },
  }));
  const ending = emitted.at(-1)?.[0];
  assert.deepEqual([ending?.metadata.deletionGracePeriodSeconds, ending?.spec], [30, good?.spec]);
  // Another pod of that name is another pod.
  pods.put(podOf("web", "2", { spec: { containers: [] } }));
  assert.deepEqual(names(emitted.at(-1)), []);
  await scope.close();
});
