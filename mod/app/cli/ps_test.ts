import assert from "@assert";
import type { LocalImage, LocalPod } from "../../server/local/types.ts";
import { explainImage } from "./explain/image.ts";
import { podList, podTable } from "./ps.ts";

const now = Date.UTC(2026, 0, 1);
const one = (name: string, more: Partial<LocalPod> = {}): LocalPod => ({
  pod: {
    metadata: { name, namespace: "default", uid: `uid-${name}` },
    spec: { containers: [{ name: "c", image: "docker.io/library/web:1", resources: {} }] },
  },
  ...more,
});

Deno.test("ps: a table by name, with rejected and leaving pods", () => {
  const pods = [
    one("b", { status: { phase: "Failed", reason: "OutOfcpu", startTime: new Date(now - 65_000).toISOString() } }),
    one("a", { leaving: true, status: { phase: "Running", podIP: "10.0.0.1" } }),
  ];
  assert.deepEqual(podTable({ pods, left: 3 }, now).split("\n"), [
    "NAMESPACE   NAME   READY   STATUS        RESTARTS   AGE    IP         UID",
    "default     a      0/1     Terminating   0          -      10.0.0.1   uid-a",
    "default     b      0/1     OutOfcpu      0          1m5s   -          uid-b",
    "and 3 pods more",
    "",
  ]);
  assert.equal(podTable({ pods: [], left: 0 }, now), "No pods.\n");
  const [first] = JSON.parse(podList({ pods, left: 0 })).items;
  assert.deepEqual([first.kind, first.metadata.name, first.status.reason], ["Pod", "b", "OutOfcpu"]);
});

const none = { images: [], usagePercent: 3 };

Deno.test("explain image: whether the next collection removes it, and why; what is not known is said", () => {
  const image = (more: Partial<LocalImage>): LocalImage => ({
    id: "sha256:abcdef0123456789",
    names: ["docker.io/library/web:2"],
    size: 3 * 2 ** 20,
    remove: true,
    message: "nothing has used it for 2h",
    ...more,
  });
  const seen = { images: [image({}), image({ id: "sha256:ffff", names: ["other:1"] })], usagePercent: 91 };
  const told =
    "On the node as sha256:abcdef0123456789, 3.0 MiB: the next collection removes it, as nothing has used it " +
    "for 2h (the disk of the images is 91 % full).";
  for (const name of ["web:2", "docker.io/library/web:2", "abcdef01"]) {
    assert.equal(explainImage(name, [], seen).split("\n\n")[1], told);
  }
  assert.match(explainImage("abc", [], seen), /does not have it/, "too little of an id");
  const kept = { ...seen, images: [image({ remove: false, message: "a container uses it" })] };
  assert.match(explainImage("web:2", [], kept), /it stays, as a container uses it/);
  assert.match(explainImage("web:2", [], "the runtime is down"), /is not known: the runtime is down/);
});

Deno.test("explain image: who uses it, under whichever of its names", () => {
  assert.match(explainImage("web:1", [one("a")], none), /is used by:\n {2}default\/a, container c/);
  assert.equal(
    explainImage("web:2", [one("a")], none),
    "Image web:2: no pod of this agent uses it.\n\nThe node does not have it.",
  );
});
