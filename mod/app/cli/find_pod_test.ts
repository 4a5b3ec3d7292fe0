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
  assert.throws(() => onePodNamed("web", pods, "n"), /2 pods: default\/web-n \(uid abcd1111\), kube-system/);
});
