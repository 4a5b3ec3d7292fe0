import assert from "@assert";
import fc from "fast-check";
import type { ObservedContainer, ObservedPod } from "../../mod/pod/observed.ts";
import { defaultGcPolicy, extraDeadContainers, type GcContainer, type GcPolicy, planContainerGC } from "./plan.ts";

/** `pod/name@age state`, age in seconds; the id is the text before the state. */
function containers(...texts: string[]): GcContainer[] {
  return texts.map((text) => {
    const [id = "", state = "exited"] = text.split(" ");
    const [, podUid = "", name = "", age = ""] = /^(\w+)\/(\w+)@(\d+)$/.exec(id) ?? [];
    const known = (["created", "running", "unknown"] as const).find((s) => s === state) ?? "exited";
    return { id, podUid, name, sandboxId: `${podUid}-box`, createdAt: -Number(age) * 1000, state: known };
  });
}

interface Given {
  of: string[];
  gone?: string[];
  policy?: Partial<GcPolicy>;
  sourcesReady?: boolean;
}

function removed({ of, gone = [], policy = {}, sourcesReady = true }: Given): string[] {
  const plan = planContainerGC({
    containers: containers(...of),
    sandboxes: [],
    mayGo: (uid) => gone.includes(uid),
    sourcesReady,
    policy: { ...defaultGcPolicy, ...policy },
    now: 0,
  });
  assert.ok(plan.containers.every((r) => r.message !== ""));
  return plan.containers.map((r) => `${r.item.id} ${r.reason}`);
}

Deno.test("containers: what goes and why, oldest first", () => {
  const limit = "DeadContainerLimit", gone = "PodGone", node = "DeadContainersOnNode";
  const cases: [string, Given, string[]][] = [
    ["nothing", { of: [] }, []],
    ["one dead instance is kept", { of: ["p/a@10 exited"] }, []],
    ["the older ones go", { of: ["p/a@10", "p/a@30", "p/a@20"] }, [`p/a@30 ${limit}`, `p/a@20 ${limit}`]],
    ["a running one does not count", { of: ["p/a@5 running", "p/a@10", "p/a@20"] }, [`p/a@20 ${limit}`]],
    ["names and pods are apart", { of: ["p/a@1", "p/b@2", "q/a@3"] }, []],
    ["pod gone: all dead go, a running one stays", { of: ["p/a@9", "p/a@5 running", "q/a@7"], gone: ["p"] }, [
      `p/a@9 ${gone}`,
    ]],
    ["sources not ready: nothing counts as gone", { of: ["p/a@9", "p/a@5"], gone: ["p"], sourcesReady: false }, [
      `p/a@9 ${limit}`,
    ]],
    ["min age", { of: ["p/a@59", "p/a@60", "p/a@61"], policy: { minAgeMs: 60_000 } }, [`p/a@61 ${limit}`]],
    ["keep none", { of: ["p/a@1"], policy: { maxPerContainer: 0 } }, [`p/a@1 ${limit}`]],
    ["keep all", { of: ["p/a@1", "p/a@2"], policy: { maxPerContainer: -1 } }, []],
    ["unknown counts as dead", { of: ["p/a@1", "p/a@2 unknown"] }, [`p/a@2 ${limit}`]],
    ["one that is about to start stays", { of: ["p/a@1 created"], policy: { maxPerContainer: 0 } }, []],
    ["one that never started goes", { of: ["p/a@1", "p/a@2 created"] }, [`p/a@2 ${limit}`]],
    ["created of a pod that is gone", { of: ["p/a@1 created"], gone: ["p"] }, [`p/a@1 ${gone}`]],
    [
      "node limit: shared out evenly",
      { of: ["p/a@1", "p/a@2", "p/a@3", "q/a@4"], policy: { maxPerContainer: -1, maxContainers: 2 } },
      [`p/a@3 ${node}`, `p/a@2 ${node}`],
    ],
    [
      "node limit: then the oldest",
      { of: ["p/a@1", "q/a@2", "r/a@3"], policy: { maxContainers: 1 } },
      [`r/a@3 ${node}`, `q/a@2 ${node}`],
    ],
    ["node limit 0", { of: ["p/a@1", "q/a@2"], policy: { maxContainers: 0 } }, [`q/a@2 ${node}`, `p/a@1 ${node}`]],
  ];
  for (const [name, given, want] of cases) assert.deepEqual(removed(given), want, name);
});

Deno.test("sandboxes: not ready, empty, and not the newest of a pod that is there", () => {
  const box = (id: string, podUid: string, age: number, ready = false) => ({ id, podUid, createdAt: -age, ready });
  const held = (sandboxId: string, state: GcContainer["state"] = "running"): GcContainer => ({
    ...containers("p/a@1")[0] ?? assert.fail(),
    id: `in-${sandboxId}`,
    sandboxId,
    state,
  });
  const plan = (
    sandboxes: ReturnType<typeof box>[],
    options: { of?: GcContainer[]; gone?: boolean; ready?: boolean } = {},
  ) =>
    planContainerGC({
      containers: options.of ?? [],
      sandboxes,
      mayGo: () => options.gone ?? false,
      sourcesReady: options.ready ?? true,
      policy: defaultGcPolicy,
      now: 0,
    }).sandboxes.map((r) => `${r.item.id} ${r.reason}`);
  assert.deepEqual(plan([box("new", "p", 1), box("old", "p", 2), box("older", "p", 3)]), [
    "older OldSandbox",
    "old OldSandbox",
  ]);
  assert.deepEqual(plan([box("new", "p", 1), box("old", "p", 2, true)]), [], "a ready one stays");
  assert.deepEqual(plan([box("new", "p", 1), box("old", "p", 2)], { of: [held("old")] }), [], "it is not empty");
  assert.deepEqual(plan([box("one", "p", 1)]), [], "the only one stays");
  assert.deepEqual(plan([box("one", "p", 1), box("up", "p", 0, true)], { gone: true }), ["one PodGone"]);
  assert.deepEqual(plan([box("one", "p", 1)], { gone: true, ready: false }), []);
  assert.deepEqual(plan([box("one", "p", 1)], { gone: true, of: [held("one", "exited")] }), ["one PodGone"]);
  assert.deepEqual(plan([box("one", "p", 1)], { gone: true, of: [held("one")] }), [], "its container still runs");
});

Deno.test("whatever the node looks like, nothing that runs goes and no pod loses its newest instance", () => {
  const state = fc.constantFrom("created" as const, "running" as const, "exited" as const, "unknown" as const);
  const item = fc.record({ podUid: fc.constantFrom("p", "q", "r"), name: fc.constantFrom("a", "b"), state });
  fc.assert(fc.property(fc.array(item), fc.integer({ min: 1, max: 3 }), fc.boolean(), (items, most, ready) => {
    const all = items.map((i, at): GcContainer => ({ ...i, id: `${at}`, sandboxId: i.podUid, createdAt: at }));
    const plan = planContainerGC({
      containers: all,
      sandboxes: ["p", "q", "r"].map((podUid) => ({ id: podUid, podUid, createdAt: 0, ready: false })),
      mayGo: (uid) => uid === "r",
      sourcesReady: ready,
      policy: { ...defaultGcPolicy, maxPerContainer: most },
      now: 1000,
    });
    const out = new Set(plan.containers.map((r) => r.item.id));
    assert.equal(out.size, plan.containers.length);
    for (const { item } of plan.containers) {
      assert.notEqual(item.state, "running");
      const newest = all.findLast((c) => c.podUid === item.podUid && c.name === item.name);
      assert.ok(newest?.id !== item.id || (ready && item.podUid === "r"));
    }
    for (const { item } of plan.sandboxes) {
      assert.ok(all.every((c) => c.sandboxId !== item.id || out.has(c.id)));
      assert.ok(ready && item.id === "r");
    }
  }));
});

Deno.test("extra dead containers of a pod", () => {
  const one = (id: string, name: string, createdAt: number, state: ObservedContainer["state"] = "exited") =>
    ({ id, name, createdAt, state }) as ObservedContainer;
  const observed: ObservedPod = {
    uid: "u",
    name: "p",
    namespace: "n",
    sandboxes: [],
    readAt: 0,
    containers: [
      one("b2", "b", 9),
      one("a4", "a", 8, "running"),
      one("a3", "a", 7),
      one("a2", "a", 6),
      one("a1", "a", 5),
      one("b1", "b", 4),
    ],
  };
  const ids = (options: Parameters<typeof extraDeadContainers>[1]) =>
    extraDeadContainers(observed, options).map((c) => c.id).sort();
  assert.deepEqual(ids({ keep: 1 }), ["a1", "a2", "b1"]);
  assert.deepEqual(ids({ keep: 1, containerId: "a3" }), ["a1", "a2"]);
  assert.deepEqual(ids({ keep: 1, containerId: "b2" }), ["b1"]);
  assert.deepEqual(ids({ keep: 2, containerId: "a4" }), ["a1"]);
  assert.deepEqual(ids({ keep: 1, containerId: "unknown" }), []);
  assert.deepEqual(ids({ keep: 1, containerId: "a3", all: true }), ["a1", "a2", "a3", "b1", "b2"]);
});

Deno.test("of instances created in one millisecond the higher attempt is the newer one, in whatever order they are listed", () => {
  const instance = (attempt: number, state: GcContainer["state"]): GcContainer => ({
    id: `${attempt}`,
    podUid: "p",
    name: "a",
    sandboxId: "s",
    createdAt: 5,
    attempt,
    state,
  });
  const both = [instance(0, "created"), instance(1, "exited")];
  for (const containers of [both, both.toReversed()]) {
    const plan = planContainerGC({
      containers,
      sandboxes: [],
      mayGo: () => false,
      sourcesReady: true,
      policy: defaultGcPolicy,
      now: 10,
    });
    assert.deepEqual(plan.containers.map((r) => r.item.id), ["0"]);
  }
});

Deno.test("a clock that was set back: the newest instance and sandbox are told by their attempts, and none stays for its age", () => {
  const dead = (attempt: number, createdAt: number): GcContainer => ({
    id: `c${attempt}`,
    podUid: "p",
    name: "a",
    sandboxId: `s${attempt}`,
    state: "exited",
    attempt,
    createdAt,
  });
  const plan = planContainerGC({
    containers: [dead(0, 900), dead(1, 20)],
    sandboxes: [
      { id: "s0", podUid: "p", attempt: 0, createdAt: 900, ready: false },
      { id: "s1", podUid: "p", attempt: 1, createdAt: 20, ready: false },
    ],
    mayGo: () => false,
    sourcesReady: true,
    policy: { ...defaultGcPolicy, minAgeMs: 10 },
    now: 50,
  });
  assert.deepEqual(plan.containers.map((r) => r.item.id), ["c0"]);
  assert.deepEqual(plan.sandboxes.map((r) => r.item.id), ["s0"]);
});

Deno.test("a clock that was set back: of a pod's dead containers the newest attempt is kept", () => {
  const one = (restartCount: number, createdAt: number) =>
    ({ id: `c${restartCount}`, name: "a", restartCount, createdAt, state: "exited" }) as ObservedContainer;
  const observed: ObservedPod = {
    uid: "u",
    name: "p",
    namespace: "n",
    sandboxes: [],
    readAt: 0,
    containers: [one(0, 900), one(1, 20)],
  };
  assert.deepEqual(extraDeadContainers(observed, { keep: 1 }).map(({ id }) => id), ["c0"]);
});
