import assert from "@assert";
import type { BoundPod, PodStatus } from "../../kube/types.ts";
import { type ObservedContainer, type ObservedPod, unobserved } from "../../pod/observed.ts";
import { ask, startServer, TestBackend } from "../testing.ts";
import { checkpointTimeout } from "./checkpoint.ts";

const pod: BoundPod = {
  metadata: { name: "web", namespace: "ns", uid: "u1" },
  spec: { containers: [{ name: "main", image: "i:1" }] },
};
const status: PodStatus = {
  phase: "Running",
  conditions: [{ type: "Ready", status: "True", lastTransitionTime: "2026-01-01T00:00:00Z" }],
};

function container(name: string, state: ObservedContainer["state"]): ObservedContainer {
  return {
    id: `id-${name}`,
    name,
    restartCount: 0,
    sandboxId: "s",
    state,
    createdAt: 1,
    startedAt: 1,
    finishedAt: 0,
    exitCode: 0,
    reason: "",
    message: "",
    image: "i:1",
    imageRef: "sha256:1",
    hash: undefined,
    annotations: {},
    logPath: "",
    mounts: [],
  };
}
const seen: ObservedPod = {
  ...unobserved(pod, 1),
  containers: [container("main", "running"), container("old", "exited")],
};

Deno.test("/pods and /runningpods/ print pods as Go does", async () => {
  const backend = new TestBackend();
  backend.list = [{ pod, status }, { pod: { ...pod, metadata: { ...pod.metadata, name: "new" } }, status: undefined }];
  backend.seen = [seen, { ...unobserved(pod, 1), name: "ended", containers: [container("main", "exited")] }];
  await using server = await startServer({}, { backend });
  const items = async (path: string): Promise<unknown> =>
    JSON.parse((await ask(`https://127.0.0.1:${server.https}${path}`)).body).items;
  const spec = { containers: [{ name: "main", image: "i:1", resources: {} }] };
  const ready = { type: "Ready", status: "True", lastProbeTime: null, lastTransitionTime: "2026-01-01T00:00:00Z" };
  assert.deepEqual(await items("/pods"), [
    { metadata: pod.metadata, spec, status: { phase: "Running", conditions: [ready] } },
    { metadata: { ...pod.metadata, name: "new" }, spec, status: {} },
  ]);
  assert.deepEqual(await items("/runningpods/"), [{ metadata: pod.metadata, spec, status: {} }]);
});

Deno.test("a checkpoint goes to the runtime, with no less time than any call has", async () => {
  const calls: unknown[][] = [];
  const backend = new TestBackend();
  backend.list = [{ pod, status }];
  backend.seen = [seen];
  backend.runtime.checkpointContainer = (id, location, timeout, { because }) => {
    calls.push([id, location.replace(/\d{4}-.*Z/, "TIME"), timeout, because.reason]);
    return calls.length < 3 ? Promise.resolve() : Promise.reject(new Error("no criu"));
  };
  await using server = await startServer({}, { backend });
  const post = async (path: string) => {
    const { status, body } = await ask(`https://127.0.0.1:${server.https}/checkpoint/${path}`, { method: "POST" });
    return `${status} ${body.replaceAll(server.dir, "DIR").replace(/\d{4}-[^"]*Z/, "TIME")}`;
  };
  const file = "DIR/checkpoints/checkpoint-web_ns-main-TIME.tar";
  assert.equal(await post("ns/web/main"), `200 {"items":["${file}"]}`);
  assert.equal(await post("ns/web/main?timeout=1&timeout=300"), `200 {"items":["${file}"]}`);
  assert.equal(await post("ns/web/main"), "500 checkpointing of ns/web/main failed (no criu)");
  assert.equal(await post("ns/web/none"), "404 container none does not exist");
  assert.equal(await post("other/web/main"), "404 pod does not exist");
  assert.equal(await post("ns/web/main?timeout=1s"), "404 cannot parse value of timeout parameter");
  assert.equal(
    await post("ns/web/main?timeout=-1"),
    "500 checkpointing of ns/web/main failed (CheckpointContainer requires the timeout value to be > 0)",
  );
  backend.seen = [];
  assert.equal(await post("ns/web/main"), "500 checkpointing of ns/web/main failed (container main not found)");
  assert.deepEqual(calls.map(([id, , timeout, reason]) => [id, timeout, reason]), [
    ["id-main", 120, "Checkpoint"],
    ["id-main", 300, "Checkpoint"],
    ["id-main", 120, "Checkpoint"],
  ]);
});

Deno.test("the timeout of a checkpoint", () => {
  const cases: [query: string, want: number | undefined][] = [
    ["", 0],
    ["timeout=5", 5],
    ["timeout=%2B5", 5],
    ["timeout=x&timeout=7", 7],
    ["timeout=", undefined],
    ["timeout=9223372036854775808", undefined],
    ["timeout=1e3", undefined],
  ];
  for (const [query, want] of cases) assert.equal(checkpointTimeout(new URLSearchParams(query)), want, query);
});
