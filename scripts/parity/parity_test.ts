import assert from "@assert";
import type { Event } from "../../mod/kube/types.ts";
import { differences, sorted } from "./differences.ts";
import { eventTree } from "./events.ts";
import { families } from "./pages.ts";
import { plain, plainText } from "./plain.ts";
import { intended } from "./intended.ts";
import { objects, scenarios } from "./scenarios.ts";

const uid = "0f8fad5b-d9cb-469f-a165-70867728950e";
const container = "a".repeat(64);

for (
  const [what, text, expected] of [
    ["a container", `containerd://${container} died`, "<container> died"],
    ["an image's digest stays", `sha256:${container}`, `sha256:${container}`],
    ["a UID, also in a control group", `${uid} pod${uid.replaceAll("-", "_")}`, "<uid> pod<uid>"],
    ["a time", "at 2026-01-02T03:04:05.678Z", "at <time>"],
    [
      "what took so long, not what was set",
      "in 1.25s (2m3.5s, 12ms) back-off 20s",
      "in <duration> (<duration>, <duration>) back-off 20s",
    ],
    ["an address, but loopback", "10.1.2.3:80 127.0.0.1:9", "<ip>:80 127.0.0.1:9"],
    ["the local end of a connection", "read 10.0.0.1:45678->10.0.0.2:80", "read <address>:<port>-><ip>:80"],
    ["the name of a token's volume", "kube-api-access-x7k2p", "kube-api-access-<random>"],
    ["a static pod's UID", `x_default(${"b".repeat(32)})`, "x_default(<uid>)"],
  ] as const
) {
  Deno.test(`normalised text: ${what}`, () => assert.equal(plainText(text), expected));
}

Deno.test("an object without what differs by run, and who wrote which field", () => {
  const object = {
    metadata: {
      name: "p",
      uid,
      resourceVersion: "7",
      annotations: { "kubernetes.io/config.hash": "abc" },
      managedFields: [{
        manager: "kubelet",
        operation: "Update",
        subresource: "status",
        time: "2026-01-02T03:04:05Z",
        fieldsV1: {
          "f:status": { "f:phase": {}, 'k:{"type":"Ready"}': { ".": {}, "f:status": {}, "f:lastProbeTime": {} } },
        },
      }],
    },
    status: { hostIP: "10.1.1.1", size: 5 },
  };
  assert.deepEqual(plain(object), {
    metadata: {
      name: "p",
      annotations: { "kubernetes.io/config.hash": "<hash>" },
      managedFields: {
        "kubelet Update status": { "status/phase": true, 'status/[{"type":"Ready"}]/status': true },
      },
    },
    status: { hostIP: "<ip>", size: 5 },
  });
  assert.deepEqual(plain({ ip: "10.1.1.1", n: 3 }, { addresses: true, measured: true }), {
    ip: "10.1.1.1",
    n: "<number>",
  });
});

Deno.test("differences by path: elements by name, what is missing as a whole, the order when both have the same", () => {
  const reference = { a: 1, list: [{ name: "x", v: 1 }, { name: "y", v: 2 }], words: ["p", "q"], gone: { deep: [1] } };
  const ours = { a: 1, list: [{ name: "y", v: 2 }, { name: "x", v: 3 }], words: ["q"], more: null };
  assert.deepEqual(differences(reference, ours), [
    { at: "gone", reference: { deep: [1] }, ours: undefined },
    { at: "list[x].v", reference: 1, ours: 3 },
    { at: "list#order", reference: "x y", ours: "y x" },
    { at: "more", reference: undefined, ours: null },
    { at: "words[p]", reference: "p", ours: undefined },
  ]);
  assert.deepEqual(differences(reference, reference), []);
});

Deno.test("an intended difference is one whose place and values are as listed", () => {
  const found = differences({ a: "one", b: "one", c: 1 }, { a: "two", b: "three", c: 2 });
  const { open, intended: meant, unused } = sorted(found, [
    { at: "*", why: "w", reference: /one/, ours: /two/ },
    { at: "c.d", why: "never" },
  ]);
  assert.deepEqual(open.map(({ at }) => at), ["b", "c"]);
  assert.deepEqual(meant.map(({ difference, why }) => `${difference.at} ${why}`), ["a w"]);
  assert.deepEqual(unused.map(({ at }) => at), ["c.d"]);
});

Deno.test("a page of metrics: types, and the names of labels", () => {
  const page = [
    "# HELP n_total N",
    "# TYPE n_total counter",
    'n_total{b="1",a="x\\"} y"} 5',
    'n_total{a="2"} 6',
    "# TYPE s histogram",
    's_bucket{le="1"} 1',
    "s_sum 1",
  ].join("\n");
  assert.deepEqual(families(page), {
    n_total: { type: "counter", labels: "a | a,b" },
    s: { type: "histogram", labels: "" },
  });
});

Deno.test("events by object and text, once or several times, with the fields that they have", () => {
  const event = (count: number, reason = "Pulled"): Event => ({
    metadata: { name: "p.1", namespace: "default" },
    involvedObject: { kind: "Pod", name: "p", fieldPath: "spec.containers{c}" },
    reason,
    message: `${uid} is there`,
    type: "Normal",
    count,
    source: { component: "kubelet" },
    reportingComponent: "kubelet",
    reportingInstance: "n",
  });
  const { texts } = eventTree([event(1), event(1), event(1, "Started"), event(7, "BackOff")]) as { texts: unknown };
  assert.deepEqual(texts, {
    "Pod p spec.containers{c}: Normal Pulled: <uid> is there": "several",
    "Pod p spec.containers{c}: Normal Started: <uid> is there": "once",
    "Pod p spec.containers{c}: Normal BackOff: <uid> is there": "told",
  });
});

Deno.test("pods have names of their own and moments to look at; every intended difference has a reason", () => {
  const all = scenarios("n");
  assert.equal(new Set(all.map(({ name }) => name)).size, all.length);
  for (const { name, pod, steps, static: manifest } of all) {
    assert.equal(pod.metadata?.name, name);
    assert.equal(pod.spec?.nodeName, manifest ? undefined : "n");
    assert.equal(new Set(steps.map((step) => step.name)).size, steps.length);
    assert(steps.length > 0);
  }
  assert(objects.length > 0);
  assert(intended.every(({ at, why }) => at.length > 3 && why.length > 10));
});
