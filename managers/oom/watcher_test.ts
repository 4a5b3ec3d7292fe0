import assert from "@assert";
import { Channel } from "../../mod/base/channel.ts";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { FakeHost } from "../../mod/base/fake_host.ts";
import { Journal } from "../../mod/base/journal.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import type { ObservedContainer, ObservedPod } from "../../mod/pod/observed.ts";
import { OomWatcher } from "./watcher.ts";

const uid = "1b1f-22";
const ids = { app: "aaaaaaaa01", other: "aaaaaaaa02" };
const pod: ObservedPod = {
  uid,
  name: "web",
  namespace: "default",
  readAt: 0,
  sandboxes: [],
  containers: Object.entries(ids).map(([name, id]) => ({ id, name }) as ObservedContainer),
};

async function watching(kernelLog = true) {
  const host = new FakeHost();
  const records = new Channel<string>();
  if (kernelLog) host.kernelRecords = records;
  const log = new RecordingLogger();
  const events = new RecordingEvents();
  const nodeEvents: string[] = [];
  const journal = new Journal({ clock: new FakeClock() });
  const watcher = new OomWatcher({
    host,
    log,
    journal,
    events: { pod: (e) => events.pod(e), node: (e) => nodeEvents.push(`${e.type} ${e.reason} ${e.message}`) },
    pods: () => [pod],
  });
  const stop = new AbortController();
  const running = watcher.run(stop.signal);
  const kill = async (limitOf: string, group: string, task = "stress,pid=7") => {
    const limit = limitOf === "/" ? "global_oom" : `oom_memcg=${limitOf}`;
    records.push(
      `oom-kill:constraint=CONSTRAINT_X,nodemask=(null),cpuset=/,mems_allowed=0,${limit},task_memcg=${group},task=${task},uid=0`,
    );
    await turn();
  };
  const noted = () => journal.records(uid).map((r) => [r.action, r.container, r.reason, r.message]);
  await turn();
  return {
    watcher,
    log,
    nodeEvents,
    kill,
    noted,
    events,
    end: async () => {
      stop.abort();
      await running;
    },
  };
}

Deno.test("a container at its limit: its process is in the pod's journal, and counted; no event of the node's", async () => {
  const t = await watching();
  for (
    const group of [
      `/kubepods/burstable/pod${uid}/${ids.app}`,
      `/kubepods.slice/kubepods-burstable.slice/kubepods-burstable-pod1b1f_22.slice/cri-containerd-${ids.app}.scope`,
      `/kubepods/pod${uid}/${ids.app}/inner/group`,
    ]
  ) await t.kill(group, group);
  const record = [
    "OOMKill",
    "app",
    "OOMKilled",
    "the kernel killed process stress (pid 7): container app was at its memory limit",
  ];
  assert.deepEqual(t.noted(), [record, record, record]);
  assert.deepEqual([t.watcher.eventsOf(ids.app), t.watcher.eventsOf(ids.other), t.watcher.systemEvents], [3, 0, 0]);
  assert.deepEqual([t.nodeEvents, t.events.events], [[], []]);
  await t.end();
});

Deno.test("a pod's limit, and a limit above it, are told apart from the container's", async () => {
  const t = await watching();
  const group = `/kubepods/burstable/pod${uid}/${ids.other}`;
  await t.kill(`/kubepods/burstable/pod${uid}`, group);
  await t.kill("/kubepods", group);
  assert.deepEqual(t.noted().map((n) => n.at(-1)), [
    "the kernel killed process stress (pid 7): the pod was at its memory limit",
    "the kernel killed process stress (pid 7): the group /kubepods was at its memory limit",
  ]);
  await t.end();
});

Deno.test("the machine out of memory is the event SystemOOM, with the process, whoever's it is", async () => {
  const t = await watching();
  await t.kill("/", "/system.slice/ssh.service", "sshd,pid=12");
  await t.kill("/", `/kubepods/pod${uid}/${ids.app}`);
  assert.deepEqual(t.nodeEvents, [
    "Warning SystemOOM System OOM encountered, victim process: sshd, pid: 12",
    "Warning SystemOOM System OOM encountered, victim process: stress, pid: 7",
  ]);
  assert.equal(t.watcher.systemEvents, 2);
  assert.deepEqual(t.noted().map((n) => n.at(-1)), [
    "the kernel killed process stress (pid 7): the machine was out of memory",
  ]);
  await t.end();
});

Deno.test("a machine without a kernel log is told once, and nothing fails", async () => {
  const t = await watching(false);
  await t.end();
  assert.deepEqual(t.log.lines.map((l) => [l.level, l.message]), [
    ["warn", "the kernel's log cannot be read: out-of-memory kills of the node are not told"],
  ]);
});
