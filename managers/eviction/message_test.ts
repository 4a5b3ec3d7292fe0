import assert from "@assert";
import type { Container } from "../../mod/kube/types.ts";
import { evictionMessage, type MessageInput } from "./message.ts";
import { observe } from "./observations.ts";
import { containerStats, fs, Gi, hard, memory, Mi, pod, podStats, snapshot } from "./testing.ts";
import { psiThresholds } from "./thresholds.ts";

const plain = { ignorePageCache: false };
const reading = observe(
  snapshot(1, {
    sample: {
      at: 1,
      memory: memory(10 * Gi - 50 * Mi),
      psi: { memory: { some: { total: 0, avg10: 50, avg60: 0, avg300: 0 }, full: noTime() } },
    },
    fs: fs(1, 9 * Gi, 100 * Gi, { inodesFree: 40, inodes: 1000 }),
    rlimit: { at: 1, maxPid: 32_768, running: 32_700 },
  }),
  plain,
);

function noTime() {
  return { total: 0, avg10: 12.34, avg60: 0, avg300: 0 };
}

function container(name: string, requests: Record<string, string> = {}): Container {
  return { name, image: "i", resources: { requests } };
}

function said(input: Pick<MessageInput, "signal" | "due"> & Partial<MessageInput>) {
  return evictionMessage({ pod: pod("web"), stats: undefined, observations: reading, ...plain, ...input });
}

Deno.test("messages: what ran short, the threshold and what was left", () => {
  for (
    const [due, want] of [
      [hard("memory.available", "100Mi"), "memory. Threshold quantity: 100Mi, available: 50Mi. "],
      [hard("memory.available", "25%"), "memory. Threshold quantity: 2560Mi, available: 50Mi. "],
      [hard("nodefs.available", "10Gi"), "ephemeral-storage. Threshold quantity: 10Gi, available: 9Gi. "],
      [hard("nodefs.inodesFree", "5%"), "inodes. Threshold quantity: 50, available: 40. "],
      [hard("pid.available", "1k"), "pids. Threshold quantity: 1k, available: 68. "],
    ] as const
  ) {
    assert.equal(said({ signal: due.signal, due: [due] }).message, `The node was low on resource: ${want}`);
  }
});

Deno.test("messages: the first threshold of the resource that could be read tells the figures; without any there are none", () => {
  const due = [
    hard("allocatableMemory.available", "1Gi"),
    hard("memory.available", "100Mi"),
    hard("pid.available", "1k"),
  ];
  const { message } = said({ signal: "allocatableMemory.available", due });
  assert.equal(message, "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. ");
  assert.equal(
    said({ signal: "memory.available", due, observations: new Map() }).message,
    "The node was low on resource: memory. ",
  );
});

Deno.test("messages: lost time is told as such", () => {
  const due = psiThresholds({ "memory.full.avg10": "10.5" });
  assert.equal(
    said({ signal: "memory.full.avg10", due }).message,
    "The node was low on resource: memory. Threshold of memory.full.avg10: 10.5 %, time lost: 12.34 %. ",
  );
});

Deno.test("messages: containers above their memory request, init containers too, and the event's annotations", () => {
  const using = (name: string, bytes: number) => containerStats(name, { sample: { at: 1, memory: memory(bytes) } });
  const web = pod("web", {
    containers: [container("a", { memory: "64Mi" }), container("b", { memory: "0.5Gi" }), container("c")],
    initContainers: [{ ...container("side", { memory: "1024Ki" }), restartPolicy: "Always" }],
  });
  const stats = podStats("web", {
    containers: [
      using("a", 65 * Mi),
      using("b", 512 * Mi),
      using("side", 3 * Mi),
      using("c", 12_345),
      using("debugger", Gi),
    ],
  });
  const found = said({ signal: "memory.available", due: [hard("memory.available", "100Mi")], pod: web, stats });
  assert.equal(
    found.message,
    "The node was low on resource: memory. Threshold quantity: 100Mi, available: 50Mi. " +
      "Container a was using 65Mi, request is 64Mi, has larger consumption of memory. " +
      "Container side was using 3Mi, request is 1Mi, has larger consumption of memory. " +
      "Container c was using 12345, request is 0, has larger consumption of memory. ",
  );
  assert.deepEqual(found.annotations, {
    offending_containers: "a,side,c",
    offending_containers_usage: "65Mi,3Mi,12345",
    starved_resource: "memory",
  });
});

Deno.test("messages: a pod that asks for memory as a whole is named with it", () => {
  const web = pod("web", { resources: { requests: { memory: "128Mi" } } });
  const stats = podStats("web", { sample: { at: 1, memory: memory(200 * Mi) } });
  const found = said({ signal: "memory.available", due: [], pod: web, stats });
  assert.equal(
    found.message,
    "The node was low on resource: memory. Pod web was using 200Mi, request is 128Mi, has larger consumption of memory. ",
  );
  assert.equal(found.annotations.offending_pod, "web");
  assert.equal(found.annotations.offending_pod_usage, "200Mi");
});

Deno.test("messages: storage is the writable layer and the logs of a container, when both are known", () => {
  const part = (mebibytes: number) => ({ at: 1, used: mebibytes * Mi });
  const web = pod("web", { containers: [container("a", { "ephemeral-storage": "10Mi" }), container("b")] });
  const containers = [containerStats("a", { rootfs: part(8), logs: part(4) }), containerStats("b", { logs: part(99) })];
  const due = [hard("nodefs.available", "10Gi")];
  const found = said({ signal: "nodefs.available", due, pod: web, stats: podStats("web", { containers }) });
  assert.equal(
    found.message,
    "The node was low on resource: ephemeral-storage. Threshold quantity: 10Gi, available: 9Gi. " +
      "Container a was using 12Mi, request is 10Mi, has larger consumption of ephemeral-storage. ",
  );
  assert.equal(found.annotations.starved_resource, "ephemeral-storage");
});

Deno.test("messages: of inodes, processes and pods of which nothing is known no container is named", () => {
  const stats = podStats("web", {
    containers: [containerStats("main", { sample: { at: 1, memory: memory(Gi), pids: 9 } })],
  });
  const found = said({ signal: "pid.available", due: [], stats });
  assert.deepEqual(found.annotations, {
    offending_containers: "",
    offending_containers_usage: "",
    starved_resource: "pids",
  });
  assert.deepEqual(said({ signal: "memory.available", due: [] }).annotations, {});
});
