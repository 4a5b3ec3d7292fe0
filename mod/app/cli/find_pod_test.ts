import assert from "@assert";
import { onePodNamed, podsNamed } from "./find_pod.ts";

const pods = [
  { namespace: "default", name: "web-n", uid: "abcd1111" },
  { namespace: "kube-system", name: "web-n", uid: "abcd2222" },
  { namespace: "default", name: "db-n", uid: "eeee3333" },
  { namespace: "default", name: "db", uid: "ffff4444" },
];
const cases: [word: string, uids: string[]][] = [
  ["web-n", ["abcd1111", "abcd2222"]],
  ["web", ["abcd1111", "abcd2222"]],
  ["default/web", ["abcd1111"]],
  ["kube-system/web-n", ["abcd2222"]],
  ["db", ["ffff4444"]], // the whole name comes before the manifest's
  ["eeee", ["eeee3333"]],
  ["abcd", ["abcd1111", "abcd2222"]],
  ["eee", []], // too short
  ["", []],
  ["default/eeee", []],
  ["__proto__", []],
];
for (const [word, uids] of cases) {
  Deno.test(`pods named ${JSON.stringify(word)}`, () => {
    assert.deepEqual(podsNamed(word, pods, "n").map(({ uid }) => uid), uids);
  });
}

Deno.test("a name that means none or several is told with what there is", () => {
  assert.throws(() => onePodNamed("wep-n", pods, "n"), /there is no pod "wep-n"; did you mean web-n/);
  assert.throws(
    () => onePodNamed("web", pods, "n"),
    /name of 2 pods: default\/web-n \(uid abcd1111\), kube-system.*; write namespace\/name or a uid$/,
  );
  assert.throws(() => onePodNamed("abcd", pods, "n"), /"abcd" is the beginning of the uids of 2 pods/);
});

Deno.test("of one name the pod that is not ending is meant, and the others are known", () => {
  const old = { namespace: "default", name: "web-n", uid: "old1", leaving: true } as const;
  const now = { namespace: "default", name: "web-n", uid: "new1" };
  const other = { namespace: "kube-system", name: "web-n", uid: "sys1" };
  for (const word of ["web", "web-n", "default/web", "new1"]) {
    const { pod, ending } = onePodNamed(word, [old, now], "n");
    assert.deepEqual([pod.uid, ending], ["new1", word === "new1" ? [] : [old]], word);
  }
  assert.deepEqual(onePodNamed("old1", [old, now], "n"), { pod: old, ending: [] });
  assert.deepEqual(onePodNamed("web", [old], "n"), { pod: old, ending: [] });
  assert.equal(onePodNamed("default/web", [old, now, other], "n").pod, now);

  const says = (all: Parameters<typeof onePodNamed>[1], text: RegExp) =>
    assert.throws(() => onePodNamed("web", all, "n"), text);
  says(
    [old, { ...old, uid: "old2" }],
    /\(uid old1, ending\), .*\(uid old2, ending\); they have one name, so write a uid$/,
  );
  says([now, { ...now, uid: "new2" }], /\(uid new1\), .*\(uid new2\); they have one name, so write a uid$/);
  says([old, now, other], /\(uid old1, ending\).*\(uid new1, current\).*; write namespace\/name or a uid$/);
  says([now, { ...now, uid: "new2" }, other], /; write namespace\/name, or a uid where several have one name$/);
});
