import { create } from "@bufbuild/protobuf";
import assert from "@assert";
import { grpcCode, RuntimeError } from "../../cri/api.ts";
import { ContainerState, ContainerStatusResponseSchema, ContainerStatusSchema } from "../../cri/gen/runtime_pb.ts";
import { FakeHost } from "../../mod/base/fake_host.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { LogFiles } from "./log_files.ts";

const pod = { metadata: { name: "p", namespace: "n", uid: "u" } };
const id = "0123456789abcdef";
const logs = "/var/log/pods";
const links = "/var/log/containers";
const signal = new AbortController().signal;

function rig(files: Record<string, string> = {}, states: Record<string, ContainerState | Error> = {}) {
  const host = new FakeHost({ files });
  const log = new RecordingLogger();
  const logFiles = new LogFiles({
    host,
    log,
    podLogsDir: logs,
    linkDir: links,
    runtime: {
      containerStatus(id) {
        const state = Object.hasOwn(states, id) ? states[id] : undefined;
        if (state === undefined) return Promise.reject(new RuntimeError("ContainerStatus", grpcCode.NotFound, "gone"));
        if (state instanceof Error) return Promise.reject(state);
        return Promise.resolve(create(ContainerStatusResponseSchema, { status: { id, state } }));
      },
    },
  });
  return { host, log, logFiles };
}

Deno.test("directories of a container's logs", async () => {
  const { host, logFiles } = rig();
  host.putDir(logs, 0o750);
  await logFiles.prepare(pod, "c");
  await logFiles.prepare(pod, "c");
  assert.equal((await host.stat(`${logs}/n_p_u`))?.mode, 0o755);
  assert.equal((await host.stat(`${logs}/n_p_u/c`))?.mode, 0o755);
  assert.equal((await host.stat(logs))?.mode, 0o750);
});

Deno.test("restart count from the log files", async () => {
  const cases: [string[], number][] = [
    [[], 0],
    [["0.log"], 1],
    [["0.log", "9.log", "10.log"], 11],
    [["3.log.20260102-030405.gz"], 4],
    [["3.log.20260102-030405"], 4],
    [["other", "x3.log", "3.logs", "a.log"], 0],
    [["99999999999999999999.log", "1.log"], 2],
    [["7.log/inside"], 0],
  ];
  for (const [names, want] of cases) {
    const { logFiles } = rig(Object.fromEntries(names.map((n) => [`${logs}/n_p_u/c/${n}`, ""])));
    assert.equal(await logFiles.nextRestartCount(pod, "c"), want, names.join());
  }
  const { logFiles, host, log } = rig({ [`${logs}/n_p_u/c/4.log`]: "" });
  host.denied(`${logs}/n_p_u/c`);
  assert.equal(await logFiles.nextRestartCount(pod, "c"), 0);
  assert.equal(log.lines[0]?.level, "warn");
});

Deno.test("legacy links: made for a log that exists, corrected, removed", async () => {
  const { host, logFiles } = rig();
  const link = `${links}/p_n_c-${id}.log`;
  await logFiles.link(pod, "c", id, 0);
  assert.equal(host.exists(link), false, "no log, no link");
  host.put(`${logs}/n_p_u/c/0.log`, "");
  await logFiles.link(pod, "c", id, 0);
  assert.equal(await host.readLink(link), `${logs}/n_p_u/c/0.log`);
  await logFiles.link(pod, "c", id, 0);
  host.put(`${logs}/n_p_u/c/1.log`, "");
  await logFiles.link(pod, "c", id, 1);
  assert.equal(await host.readLink(link), `${logs}/n_p_u/c/1.log`);
  await logFiles.unlink(pod, [{ id, name: "c" }, { id: "absent-one", name: "c" }]);
  assert.equal(await host.lstat(link), undefined);
  assert.equal(host.exists(`${logs}/n_p_u/c/1.log`), true);

  // what an earlier agent did not come to
  await logFiles.adopt(pod, [
    { id, name: "c", state: "running", restartCount: 1 },
    { id: "ended", name: "c", state: "exited", restartCount: 0 },
  ]);
  assert.equal(await host.readLink(link), `${logs}/n_p_u/c/1.log`);
  assert.equal(await host.lstat(`${links}/p_n_c-ended.log`), undefined);
  await logFiles.unlink(pod, [{ id, name: "c" }]);

  // a container that the runtime has lost: found by where its link leads; another pod's of that name stays
  await logFiles.link(pod, "c", "lost", 1);
  await host.symlink(`${logs}/n_p_other/c/0.log`, `${links}/p_n_c-other.log`);
  await host.symlink(`${logs}/n_p_u/c/1.log`, `${links}/p_m_c-foreign.log`);
  await logFiles.unlink(pod, []);
  assert.equal(await host.lstat(`${links}/p_n_c-lost.log`), undefined);
  for (const name of ["p_n_c-other.log", "p_m_c-foreign.log"]) {
    assert.ok(await host.lstat(`${links}/${name}`), name);
    await host.remove(`${links}/${name}`);
  }

  const names = [...Array(3)].map(() => "y".repeat(63)).join("-");
  const wide = { metadata: { ...pod.metadata, name: names } };
  host.put(`${logs}/n_${names}_u/c/0.log`, "");
  await logFiles.link(wide, "c", "f".repeat(64), 0);
  const made = (await host.readDir(links)).map((e) => e.name);
  assert.deepEqual(made.map((n) => n.length), [255]);
  assert.ok(made[0]?.endsWith("f.log"));

  // what never had a log directory must not stand in the way of the pod's removal
  const tooWide = { metadata: { ...pod.metadata, name: "z".repeat(253) } };
  await logFiles.unlink(tooWide, [{ id, name: "c" }]);
  await logFiles.removePodLogs(tooWide);
});

Deno.test("the logs of a removed container go, its neighbours' stay", async () => {
  const dir = `${logs}/n_p_u/c`;
  const { host, logFiles } = rig({
    [`${dir}/1.log`]: "",
    [`${dir}/1.log.20260102-030405.gz`]: "",
    [`${dir}/1.log.20260102-040405`]: "",
    [`${dir}/11.log`]: "",
    [`${dir}/2.log`]: "",
    "/etc/passwd": "",
  });
  await host.mkdir(links);
  await host.symlink(`${dir}/1.log`, `${links}/p_n_c-${id}.log`);
  const labels = {
    "io.kubernetes.pod.name": "p",
    "io.kubernetes.pod.namespace": "n",
    "io.kubernetes.container.name": "c",
  };
  await logFiles.removeContainerLogs(create(ContainerStatusSchema, { id, logPath: `${dir}/1.log`, labels }));
  assert.deepEqual((await host.readDir(dir)).map((e) => e.name).sort(), ["11.log", "2.log"]);
  assert.equal(await host.lstat(`${links}/p_n_c-${id}.log`), undefined);
  for (const logPath of ["/etc/passwd", `${logs}/../../../etc/passwd`, `${logs}/x/../../../../etc/passwd`, ""]) {
    await logFiles.removeContainerLogs(create(ContainerStatusSchema, { id, logPath, labels: {} }));
  }
  assert.equal(host.exists("/etc/passwd"), true);
});

Deno.test("log directories of pods that may go are removed, nothing else", async () => {
  const { host, logFiles } = rig({
    [`${logs}/n_gone_u1/c/0.log`]: "",
    [`${logs}/n_here_u2/c/0.log`]: "",
    [`${logs}/lost+found/x`]: "",
    [`${logs}/my_u1/x`]: "",
    [`${logs}/n_file_u1`]: "",
  });
  await logFiles.removeLogDirs((uid) => uid !== "u2", signal);
  assert.deepEqual((await host.readDir(logs)).map((e) => e.name).sort(), [
    "lost+found",
    "my_u1",
    "n_file_u1",
    "n_here_u2",
  ]);
  await logFiles.removePodLogs({ metadata: { name: "here", namespace: "n", uid: "u2" } });
  assert.equal(host.exists(`${logs}/n_here_u2`), false);
  const none = rig();
  await none.logFiles.removeLogDirs(() => true, signal);
  assert.deepEqual(none.log.lines, []);
});

Deno.test("a log directory that cannot be removed does not stop the others", async () => {
  const { host, logFiles, log } = rig({ [`${logs}/n_a_u1/0.log`]: "", [`${logs}/n_b_u1/0.log`]: "" });
  host.denied(`${logs}/n_a_u1`);
  await logFiles.removeLogDirs(() => true, signal);
  assert.equal(host.exists(`${logs}/n_b_u1`), false);
  assert.equal(log.lines.filter((l) => l.level === "warn").length, 1);
});

Deno.test("dead links go only when their container has exited or is gone", async () => {
  const { host, logFiles, log } = rig({ "/target": "" }, {
    exited1: ContainerState.CONTAINER_EXITED,
    running: ContainerState.CONTAINER_RUNNING,
    created: ContainerState.CONTAINER_CREATED,
    silent: new RuntimeError("ContainerStatus", grpcCode.Unavailable, "down"),
  });
  await host.mkdir(links);
  const make = (name: string, target = "/nowhere") => host.symlink(target, `${links}/${name}`);
  await make("p_n_c-exited1.log");
  await make("p_n_c-unknown.log");
  await make("no id at all.log");
  await make("p_n_c-running.log");
  await make("p_n_c-created.log");
  await make("p_n_c-silent.log");
  await make("p_n_c-exited2.log", "/target");
  await make("p_n_c-exited1.txt");
  host.put(`${links}/p_n_c-exited3.log`, "a file of someone");
  await logFiles.sweepLinks(signal);
  assert.deepEqual((await host.readDir(links)).map((e) => e.name).sort(), [
    "p_n_c-created.log",
    "p_n_c-exited1.txt",
    "p_n_c-exited2.log",
    "p_n_c-exited3.log",
    "p_n_c-running.log",
    "p_n_c-silent.log",
  ]);
  assert.deepEqual(log.lines.filter((l) => l.level === "warn").map((l) => l.fields.link), [
    `${links}/p_n_c-silent.log`,
  ]);
});
