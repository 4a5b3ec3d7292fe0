import assert from "@assert";
import { create } from "@bufbuild/protobuf";
import { NamespaceMode, type RuntimeHandler, RuntimeHandlerSchema } from "../../cri/gen/runtime_pb.ts";
import { FakeHost, type FakeHostOptions } from "../../mod/base/fake_host.ts";
import { silent } from "../../mod/base/log.ts";
import { seeded } from "../../mod/base/random.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { createUserNamespaces } from "./manager.ts";
import { divideIds, nodeIds, parseSubIds } from "./range.ts";
import { parseRecord, recordText } from "./record.ts";

const root = "/var/lib/kubelet";
const with_ = [handler("", true), handler("plain", false)];

function handler(name: string, userNamespaces: boolean): RuntimeHandler {
  return create(RuntimeHandlerSchema, { name, features: { userNamespaces } });
}

function pod(uid: string, hostUsers?: boolean): BoundPod {
  return {
    metadata: { name: uid, namespace: "ns", uid },
    spec: { containers: [], ...(hostUsers === undefined ? {} : { hostUsers }) },
  } as unknown as BoundPod;
}

function machine(options: FakeHostOptions = {}): FakeHost {
  const host = new FakeHost(options);
  for (const uid of ["a", "b", "c"]) host.putDir(`${root}/pods/${uid}`);
  return host;
}

function manager(host: FakeHost, more: Partial<Parameters<typeof createUserNamespaces>[0]> = {}) {
  return createUserNamespaces({
    host,
    random: seeded(1),
    log: silent,
    rootDir: root,
    idsPerPod: 65_536,
    maxPods: 110,
    handlers: () => with_,
    ...more,
  });
}

const three = `0: kubelet 65536 ${3 * 65_536}\n`;
const subIds = (uids = three, gids = uids): FakeHostOptions => ({
  files: { "/etc/passwd": "root:x:0:0::/:\nkubelet:x:999:999::/:\n", "/usr/bin/getsubids": "" },
  run: (_command, args) => ({ code: 0, stdout: args[0] === "-g" ? gids : uids, stderr: "" }),
});

Deno.test("userns: pods without hostUsers false have the node's, whatever the runtime", async () => {
  const userns = manager(machine(), { handlers: () => [] });
  for (const hostUsers of [undefined, true]) {
    assert.deepEqual(await userns.of(pod("a", hostUsers), ""), { mode: NamespaceMode.NODE });
  }
});

Deno.test("userns: refused when the handler cannot, or is not known", async () => {
  const rows: [readonly RuntimeHandler[], string, RegExp][] = [
    [[], "", /can't set `spec.hostUsers: false`, runtime does not support user namespaces/],
    [with_, "plain", /RuntimeClass handler "plain" does not support user namespaces/],
    [with_, "other", /RuntimeClass handler "other" is not known/],
    [[handler("", false)], "", /runtime does not support/],
  ];
  for (const [handlers, name, expected] of rows) {
    const host = machine();
    await assert.rejects(manager(host, { handlers: () => handlers }).of(pod("a", false), name), expected);
    assert.equal(host.exists(`${root}/pods/a/userns`), false);
  }
});

Deno.test("userns: a pod keeps its ids, over a restart too; two pods at once get different ones", async () => {
  const host = machine();
  const userns = manager(host);
  const [a, b] = await Promise.all([userns.of(pod("a", false), ""), userns.of(pod("b", false), "")]);
  assert.notDeepEqual(a, b);
  const [range] = a.uids ?? [];
  assert.equal(a.mode, NamespaceMode.POD);
  assert.deepEqual(a.gids, a.uids);
  assert.equal(range?.containerId, 0);
  assert.equal(range?.length, 65_536);
  assert.ok((range?.hostId ?? 0) >= 65_536 && (range?.hostId ?? 1) % 65_536 === 0);
  assert.equal(
    host.text(`${root}/pods/a/userns`),
    `{"uidMappings":[{"hostId":${range?.hostId},"containerId":0,"length":65536}],` +
      `"gidMappings":[{"hostId":${range?.hostId},"containerId":0,"length":65536}]}`,
  );
  assert.deepEqual(await userns.of(pod("a", false), ""), a);
  const restarted = manager(host, { random: seeded(9) });
  assert.deepEqual(await restarted.of(pod("b", false), ""), b);
  assert.deepEqual(await restarted.of(pod("a", false), ""), a);
});

Deno.test("userns: ranges on disk are taken, those of pods that are gone are free again, none is given twice", async () => {
  const host = machine(subIds());
  host.put(`${root}/pods/a/userns`, recordText(2 * 65_536, 65_536));
  const userns = manager(host, { maxPods: 3 });
  const firsts = [];
  for (const uid of ["b", "c"]) firsts.push((await userns.of(pod(uid, false), "")).uids?.[0]?.hostId);
  assert.deepEqual(new Set(firsts), new Set([65_536, 3 * 65_536]));
  host.putDir(`${root}/pods/d`);
  await assert.rejects(userns.of(pod("d", false), ""), /all 3 ranges of ids for user namespaces are taken/);
  await host.removeTree(`${root}/pods/a`);
  assert.equal((await userns.of(pod("d", false), "")).uids?.[0]?.hostId, 2 * 65_536);
});

Deno.test("userns: with a record that cannot be read no range is given, because it might be taken", async () => {
  const host = machine();
  host.put(`${root}/pods/a/userns`, "{");
  const userns = manager(host);
  for (const uid of ["a", "b"]) {
    await assert.rejects(userns.of(pod(uid, false), ""), /pods\/a\/userns cannot be used: it is no JSON; remove/);
  }
  await host.removeTree(`${root}/pods/a`);
  await userns.of(pod("b", false), "");
});

Deno.test("userns: a record that cannot be written takes no range", async () => {
  const host = machine(subIds(`0: kubelet 65536 65536`));
  const userns = manager(host, { maxPods: 1 });
  {
    using _full = host.full(`${root}/pods/a`);
    await assert.rejects(userns.of(pod("a", false), ""), /userns/);
  }
  assert.equal((await userns.of(pod("b", false), "")).uids?.[0]?.hostId, 65_536);
});

Deno.test("userns: records that are not ours are refused", () => {
  const ranges = { first: 65_536, length: 65_536, count: 3 };
  const map = (more: object = {}) => ({ hostId: 65_536, containerId: 0, length: 65_536, ...more });
  assert.equal(parseRecord(recordText(131_072, 65_536), ranges), 131_072);
  const rows: [unknown, RegExp][] = [
    [[], /one entry each/],
    [null, /one entry each/],
    [{ uidMappings: [map(), map()], gidMappings: [map()] }, /one entry each/],
    [{ uidMappings: [map()] }, /one entry each/],
    [{ uidMappings: [map()], gidMappings: [map({ hostId: 131_072 })] }, /differ in hostId/],
    [{ uidMappings: [map({ containerId: 1 })], gidMappings: [map({ containerId: 1 })] }, /containerId must be 0/],
    [{ uidMappings: [map({ length: 1 })], gidMappings: [map({ length: 1 })] }, /length is not 65536/],
    ...[0, 65_537, 4 * 65_536, -65_536, 1e300, "65536", null].map((hostId): [unknown, RegExp] => [
      { uidMappings: [map({ hostId })], gidMappings: [map({ hostId })] },
      /hostId is not the start/,
    ]),
  ];
  for (const [value, expected] of rows) assert.throws(() => parseRecord(JSON.stringify(value), ranges), expected);
});

Deno.test("userns: the node's ids: the default, those of getsubids, and what is refused", async () => {
  const wants = { idsPerPod: 65_536, maxPods: 3 };
  const all = { first: 65_536, length: 65_536, count: 65_535 };
  const passwd = { "/etc/passwd": "kubelet:x:1:1::/:\n" };
  assert.deepEqual(await nodeIds(new FakeHost(), wants), all);
  assert.deepEqual(await nodeIds(new FakeHost({ files: passwd }), wants), all);
  assert.deepEqual(await nodeIds(new FakeHost({ files: { "/usr/bin/getsubids": "" } }), wants), all);
  assert.deepEqual(await nodeIds(new FakeHost(), { ...wants, idsPerPod: 131_072 }), {
    first: 131_072,
    length: 131_072,
    count: 32_767,
  });
  assert.deepEqual(await nodeIds(new FakeHost(subIds()), wants), { first: 65_536, length: 65_536, count: 3 });
  await assert.rejects(nodeIds(new FakeHost(subIds(three, `0: kubelet 65536 65536`)), wants), /the same ids/);
  const failing: FakeHostOptions = { ...subIds(), run: () => ({ code: 1, stdout: "", stderr: "no entry\n" }) };
  await assert.rejects(nodeIds(new FakeHost(failing), wants), /getsubids kubelet failed: no entry/);
  for (const text of ["", "0: kubelet 1 2\n1: kubelet 3 4", "x", "0: kubelet a 5", "0: kubelet 4294967296 1"]) {
    assert.throws(() => parseSubIds(text), /getsubids kubelet printed/);
  }
});

Deno.test("userns: ids that do not divide into ranges are refused", () => {
  const unit = 65_536;
  const rows: [number, number, number, number, RegExp][] = [
    [unit, 10 * unit, unit + 1, 1, /no multiple of 65536/],
    [unit, 10 * unit, NaN, 1, /no multiple of 65536/],
    [unit, 10 * unit, 2 * unit, 1, /first id 65536 is no multiple of 131072/],
    [0, 10 * unit, unit, 1, /first id 0 is below 65536/],
    [unit, unit + 1, unit, 1, /number 65537 is no multiple/],
    [unit, 2 ** 32, unit, 1, /beyond 32 bits/],
    [unit, 10 * unit, unit, 11, /not enough for 11 pods/],
  ];
  for (const [first, total, idsPerPod, maxPods, expected] of rows) {
    assert.throws(() => divideIds({ first, total }, { idsPerPod, maxPods }), expected);
  }
});
