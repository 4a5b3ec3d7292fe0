import assert from "@assert";
import { errno, FakeHost } from "../base/fake_host.ts";
import { FakeClock } from "../base/fake_clock.ts";
import { RecordingLogger } from "../base/log.ts";
import { Scope } from "../base/scope.ts";
import type { BoundPod } from "../kube/types.ts";
import { FileSource } from "./file.ts";
import { manifest } from "./testing.ts";

const dir = "/etc/kubernetes/manifests";
const period = 20_000;

function make(files: Record<string, string> = {}, path = dir) {
  const clock = new FakeClock();
  const host = new FakeHost({ clock, files });
  const log = new RecordingLogger();
  const source = new FileSource({ host, clock, log, nodeName: "node1", path, periodMs: period });
  const errors = () => log.lines.filter(({ level }) => level === "error").map(({ fields }) => `${fields["problem"]}`);
  return { clock, host, log, source, errors };
}

const names = (pods: readonly BoundPod[] | undefined) => pods?.map(({ metadata }) => metadata.name);

async function running(made: ReturnType<typeof make>): Promise<{ seen: (string[] | undefined)[] } & AsyncDisposable> {
  const seen: (string[] | undefined)[] = [];
  const scope = new Scope("test");
  scope.spawn("file", (signal) => made.source.run(signal, (pods) => void seen.push(names(pods))));
  await made.clock.advance(0);
  return { seen, [Symbol.asyncDispose]: () => scope.close() };
}

Deno.test("a directory gives its regular files; dot files, directories and devices are left out and never opened", async () => {
  const made = make({
    [`${dir}/b.yaml`]: manifest("b"),
    [`${dir}/a.json`]: manifest("a"),
    [`${dir}/.hidden.yaml`]: manifest("hidden"),
    [`${dir}/sub/c.yaml`]: manifest("c"),
    "/elsewhere/d.yaml": manifest("d"),
  });
  await made.host.symlink("/elsewhere/d.yaml", `${dir}/d.yaml`);
  await made.host.symlink("/nowhere", `${dir}/e.yaml`);
  made.host.putNode(`${dir}/f.yaml`, "fifo");
  assert.deepEqual(names(await made.source.list("period")), ["a-node1", "b-node1", "d-node1"]);
  const opened = made.host.operations.filter(({ operation }) => operation === "readBytes").map(({ path }) => path);
  assert.deepEqual(opened, ["a.json", "b.yaml", "d.yaml"].map((name) => `${dir}/${name}`));
  assert.deepEqual([...made.source.problems.keys()], ["e.yaml", "f.yaml", "sub"].map((name) => `${dir}/${name}`));
});

Deno.test("a bad file keeps the others; its message names file, field and value, and is logged once", async () => {
  const bad = JSON.stringify({
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name: "x" },
    spec: { containers: [{ name: "c", image: "i", ports: [{ containerPort: "80a" }] }] },
  });
  const { source, errors } = make({ [`${dir}/a.yaml`]: manifest("a"), [`${dir}/bad.yaml`]: bad });
  for (const look of ["period", "watch", "period"] as const) {
    assert.deepEqual(names(await source.list(look)), ["a-node1"]);
  }
  assert.deepEqual(errors(), [
    `${dir}/bad.yaml: spec.containers[0].ports[0].containerPort: want an integer, got "80a"`,
  ]);
});

Deno.test("a misspelled field is named when its absence makes the pod invalid", async () => {
  const { source, errors } = make({
    [`${dir}/a.yaml`]: manifest("a").replace("containers", "contianers"),
  });
  assert.deepEqual(names(await source.list("period")), []);
  assert.match(errors()[0] ?? "", /spec\.containers: is required.*; spec\.contianers: unknown field.*"containers"/);
});

Deno.test("a file that turned bad keeps its pod until a periodic look finds the same bad text again", async () => {
  const { host, source, errors } = make({ [`${dir}/a.yaml`]: manifest("a") });
  await source.list("period");
  await host.write(`${dir}/a.yaml`, "apiVersion: v1\nkind: Po");
  assert.deepEqual(names(await source.list("period")), ["a-node1"], "perhaps it is being written");
  assert.deepEqual(names(await source.list("watch")), ["a-node1"], "events don't count");
  assert.deepEqual(names(await source.list("period")), []);
  await host.write(`${dir}/a.yaml`, manifest("a"));
  assert.deepEqual(names(await source.list("watch")), ["a-node1"]);
  assert.equal(errors().length, 1);
  assert.equal(source.problems.size, 0);
});

Deno.test("an unreadable file keeps its pod; an unreadable directory says nothing", async () => {
  const { host, source } = make({ [`${dir}/a.yaml`]: manifest("a") });
  await source.list("period");
  const denied = host.fault((operation) => operation === "readBytes" ? errno("EACCES") : undefined);
  assert.deepEqual(names(await source.list("watch")), ["a-node1"]);
  assert.match(source.problems.get(`${dir}/a.yaml`) ?? "", /EACCES|denied/i);
  for (let look = 0; look < 3; look++) assert.deepEqual(names(await source.list("period")), ["a-node1"]);
  denied[Symbol.dispose]();
  host.fault((operation) => operation === "readDir" ? errno("EIO") : undefined);
  assert.equal(await source.list("period"), undefined);
});

Deno.test("a file that goes while the directory is read is no problem", async () => {
  const { host, source, errors } = make({ [`${dir}/a.yaml`]: manifest("a"), [`${dir}/b.yaml`]: manifest("b") });
  let gone: Promise<void> | undefined;
  host.fault((operation, path) => {
    if (operation === "stat" && path === `${dir}/b.yaml`) gone ??= host.remove(path);
    return undefined;
  });
  assert.deepEqual(names(await source.list("watch")), ["a-node1"]);
  await gone;
  assert.deepEqual([errors(), source.problems.size, host.exists(`${dir}/b.yaml`)], [[], 0, false]);
});

Deno.test("texts that are no manifest are refused without harm", async () => {
  const cases: [string | Uint8Array, RegExp][] = [
    ["", /is empty/],
    ["\0\0\0", /NUL/],
    [new Uint8Array([0xff, 0xfe, 0x41]), /UTF-8/],
    [new Uint8Array(10 * 1024 * 1024), /limit is 10485760/],
    ["[".repeat(100_000), /nested/],
    ["a: &a [*a]", /contains itself/],
    ["kind: Pod", /apiVersion ""/],
    ["apiVersion: v1\nkind: PodList\nitems: []", /want an object of apiVersion v1 and kind Pod, got/],
    ["apiVersion: v1\nkind: Pod\nmetadata: {}", /metadata\.name: a pod needs a name/],
    ["apiVersion: v1\nkind: Pod\nmetadata: {name: x, uid: ../../etc}", /metadata\.uid: "\.\.\/\.\.\/etc" can't name/],
  ];
  for (const [text, problem] of cases) {
    const { host, source } = make({ [`${dir}/a.yaml`]: manifest("a") });
    await host.write(`${dir}/bad.yaml`, text);
    assert.deepEqual(names(await source.list("period")), ["a-node1"]);
    assert.match(source.problems.get(`${dir}/bad.yaml`) ?? "", problem);
  }
});

Deno.test("a missing path is an empty source; it is found when it comes, and empties when it goes", async () => {
  const { host, source } = make();
  assert.deepEqual(await source.list("period"), []);
  await host.mkdir(dir);
  await host.write(`${dir}/a.yaml`, manifest("a"));
  assert.deepEqual(names(await source.list("period")), ["a-node1"]);
  await host.removeTree(dir);
  assert.deepEqual(await source.list("period"), []);
});

Deno.test("a single file is a source; when it turns bad nothing is said", async () => {
  const path = "/etc/pod.yaml";
  const { host, source } = make({ [path]: manifest("a") }, path);
  assert.deepEqual(names(await source.list("period")), ["a-node1"]);
  await host.write(path, "nonsense");
  assert.equal(await source.list("period"), undefined);
  assert.equal(await source.list("period"), undefined);
  assert.equal(source.problems.size, 1);
  await host.remove(path);
  assert.deepEqual(await source.list("period"), []);
});

Deno.test("the same manifest has the same UID after a restart; another path or node another one", async () => {
  const files = { [`${dir}/a.yaml`]: manifest("a") };
  const uid = async (path: string, text: Record<string, string>) =>
    (await make(text, path).source.list("period"))?.[0]?.metadata.uid;
  const first = await uid(dir, files);
  assert.match(first ?? "", /^[0-9a-f]{32}$/);
  assert.equal(await uid(dir, files), first);
  assert.equal(await uid(`${dir}/`, files), first, "a trailing slash is no other path");
  assert.notEqual(await uid(dir, { [`${dir}/b.yaml`]: manifest("a") }), first);
});

Deno.test("an event is looked at after it has settled, and without events each period is", async () => {
  const made = make({ [`${dir}/a.yaml`]: manifest("a") });
  await using source = await running(made);
  assert.deepEqual(source.seen, [["a-node1"]]);
  await made.host.write(`${dir}/b.yaml`, manifest("b"));
  await made.clock.advance(100);
  assert.deepEqual(source.seen.at(-1), ["a-node1", "b-node1"]);
  await made.host.rename(`${dir}/b.yaml`, `${dir}/c.yaml`);
  await made.host.remove(`${dir}/a.yaml`);
  await made.clock.advance(500);
  assert.deepEqual(source.seen.at(-1), ["b-node1"]);
  const before = source.seen.length;
  await made.clock.advance(period);
  assert.equal(source.seen.length, before + 1);
});

Deno.test("a watch that fails is tried again, and the periodic looks go on", async () => {
  const made = make({ [`${dir}/a.yaml`]: manifest("a") });
  const full = made.host.fault((operation) => operation === "watch" ? errno("ENOSPC") : undefined);
  await using source = await running(made);
  await made.host.write(`${dir}/b.yaml`, manifest("b"));
  await made.clock.advance(period);
  assert.deepEqual(source.seen.at(-1), ["a-node1", "b-node1"]);
  full[Symbol.dispose]();
  await made.clock.advance(period);
  await made.host.write(`${dir}/c.yaml`, manifest("c"));
  await made.clock.advance(100);
  assert.deepEqual(source.seen.at(-1), ["a-node1", "b-node1", "c-node1"]);
});

Deno.test("at the start a manifest that cannot be read holds up what is said, for a while", async () => {
  const { host, source } = make({ [`${dir}/a.yaml`]: manifest("a"), [`${dir}/b.yaml`]: manifest("b") });
  const broken = host.fault((op, path) => op === "readBytes" && path === `${dir}/b.yaml` ? errno("EIO") : undefined);
  assert.equal(await source.list("period"), undefined);
  assert.equal(await source.list("period"), undefined);
  broken[Symbol.dispose]();
  assert.deepEqual(names(await source.list("period")), ["a-node1", "b-node1"]);

  const other = make({ [`${dir}/a.yaml`]: manifest("a"), [`${dir}/b.yaml`]: manifest("b") });
  other.host.fault((op, path) => op === "readBytes" && path === `${dir}/b.yaml` ? errno("EIO") : undefined);
  const said: unknown[] = [];
  for (let look = 0; look < 6; look++) said.push((await other.source.list("period"))?.length);
  assert.deepEqual(said, [undefined, undefined, undefined, undefined, 1, 1]);
});
