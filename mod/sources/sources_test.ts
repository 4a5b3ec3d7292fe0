import assert from "@assert";
import { FakeClock } from "../base/fake_clock.ts";
import { FakeHost } from "../base/fake_host.ts";
import { RecordingLogger, silent } from "../base/log.ts";
import { Scope } from "../base/scope.ts";
import { RecordingEvents } from "../kube/events.ts";
import type { PodSource } from "./source.ts";
import { createSources, type SourcesConfig } from "./sources.ts";
import { manifest } from "./testing.ts";
import type { PodChange } from "./types.ts";

const dir = "/manifests";

function make(config: Partial<SourcesConfig>, files: Record<string, string>, stdin?: string, more?: PodSource[]) {
  const clock = new FakeClock();
  const host = new FakeHost({ clock, files });
  const log = new RecordingLogger();
  const events = new RecordingEvents();
  const sources = createSources({
    host,
    clock,
    log,
    events,
    nodeName: "node1",
    config: { fileCheckFrequencyMs: 20_000, httpCheckFrequencyMs: 20_000, ...config },
    fetch: () => Promise.resolve(new Response(manifest("from-url"))),
    ...(stdin === undefined ? {} : { stdin: new Blob([stdin]).stream() }),
    ...(more === undefined ? {} : { more }),
  });
  const scope = new Scope("test");
  sources.run(scope);
  const batches: string[][] = [];
  const ready: boolean[] = [];
  scope.spawn("consumer", async (signal) => {
    for await (const batch of sources.changes(signal)) {
      ready.push(sources.allReady);
      batches.push(batch.map(({ op, pod }: PodChange) => `${op} ${pod.metadata.name}`));
    }
  });
  return { clock, host, log, events, sources, scope, batches, ready };
}

Deno.test("an edited manifest is removed and added in one batch; a deleted one is removed", async () => {
  const made = make({ staticPodPath: dir }, { [`${dir}/a.yaml`]: manifest("a") });
  await using _scope = made.scope;
  await made.clock.advance(0);
  await made.host.write(`${dir}/a.yaml`, manifest("a", { image: "busybox:2" }), { atomic: true });
  await made.clock.advance(500);
  await made.host.remove(`${dir}/a.yaml`);
  await made.clock.advance(500);
  assert.deepEqual(made.batches, [["add a-node1"], ["remove a-node1", "add a-node1"], ["remove a-node1"]]);
});

Deno.test("with a fixed UID an edit is an update", async () => {
  const made = make({ staticPodPath: dir }, { [`${dir}/a.yaml`]: manifest("a", { uid: "fixed" }) });
  await using _scope = made.scope;
  await made.clock.advance(0);
  await made.host.write(`${dir}/a.yaml`, manifest("a", { uid: "fixed", image: "busybox:2" }));
  await made.clock.advance(500);
  // The hash annotation is the UID, so the content alone tells.
  assert.deepEqual(made.batches, [["add a-node1"], ["update a-node1"]]);
});

Deno.test("all sources must have spoken before all are ready; a source without pods speaks too", async () => {
  let speak = () => {};
  const api: PodSource = {
    name: "api",
    problems: new Map(),
    run: (signal, emit) => {
      speak = () => emit([]);
      return new Promise((resolve) => signal.addEventListener("abort", () => resolve(), { once: true }));
    },
  };
  const made = make({ staticPodPath: "/missing", staticPodURL: "http://127.0.0.1:1/" }, {}, undefined, [api]);
  await using _scope = made.scope;
  assert.equal(made.sources.allReady, false);
  await made.clock.advance(0);
  assert.equal(made.batches.length, 2);
  assert.deepEqual([...made.batches].sort(), [[], ["add from-url-node1"]]);
  assert.equal(made.sources.allReady, false);
  speak();
  await made.clock.advance(0);
  assert.deepEqual(made.ready, [false, false, true]);
});

Deno.test("without any source all are ready at once", () => {
  const sources = createSources({
    host: new FakeHost({}),
    clock: new FakeClock(),
    log: silent,
    nodeName: "n",
    config: { fileCheckFrequencyMs: 1, httpCheckFrequencyMs: 1 },
  });
  assert.equal(sources.allReady, true);
});

Deno.test("two files with one pod name: the first file wins, and an event says so", async () => {
  const files = { [`${dir}/a.yaml`]: manifest("a"), [`${dir}/b.yaml`]: manifest("a", { image: "other:1" }) };
  const made = make({ staticPodPath: dir }, files);
  await using _scope = made.scope;
  await made.clock.advance(60_000);
  assert.deepEqual(made.batches, [["add a-node1"]]);
  assert.deepEqual(made.events.events.map(({ type, reason }) => [type, reason]), [["Warning", "FailedValidation"]]);
  assert.match(
    made.events.events[0]?.message ?? "",
    /^Error validating pod a-node1_default\([0-9a-f]{32}\) from file due to duplicate pod name "a-node1", ignoring$/,
  );
  const [said] = made.log.lines.filter(({ level }) => level === "error");
  assert.deepEqual([said?.fields.path, said?.fields.keptPath], [`${dir}/b.yaml`, `${dir}/a.yaml`]);
  const problem = `its pod is left out, as ${dir}/a.yaml has the same name "a-node1"; change one of the two`;
  assert.deepEqual([...made.sources.problems()], [[`${dir}/b.yaml`, problem]]);
  await made.host.write(`${dir}/b.yaml`, manifest("b"), { atomic: true });
  await made.clock.advance(500);
  assert.deepEqual([...made.sources.problems()], []);
});

Deno.test("two files with one UID are both named", async () => {
  const files = {
    [`${dir}/a.yaml`]: manifest("a", { uid: "one" }),
    [`${dir}/b.yaml`]: manifest("b", { uid: "one" }),
  };
  const made = make({ staticPodPath: dir }, files);
  await using _scope = made.scope;
  await made.clock.advance(500);
  const problem = `its pod is left out, as ${dir}/a.yaml has the same uid "one"; change one of the two`;
  assert.deepEqual([...made.sources.problems()], [[`${dir}/b.yaml`, problem]]);
});

Deno.test("standard input gives the pods of all its documents at its end; a bad one is left out", async () => {
  const text = `${manifest("a")}\n---\n# nothing\n---\nkind: Pod\n---\napiVersion: v1\nkind: Pod\n` +
    "metadata: {name: b}\nspec: {containers: [{name: c, image: i}]}\n";
  const made = make({ staticPodPath: "-" }, {}, text);
  await using _scope = made.scope;
  for (let i = 0; i < 5; i++) await made.clock.advance(0);
  assert.deepEqual(made.batches, [["add a-node1", "add b-node1"]]);
  assert.equal(made.sources.problems().size, 1);
  assert.ok(made.sources.allReady);
});
