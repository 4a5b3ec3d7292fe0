import { create } from "@bufbuild/protobuf";
import assert from "@assert";
import { ContainerState, ContainerStatusSchema } from "../../cri/gen/runtime_pb.ts";
import { FakeHost } from "../../mod/base/fake_host.ts";
import { terminationMessage } from "./termination.ts";

const file = "/root/pods/u/containers/c/0a1b2c3d";
const log = "/var/log/pods/n_p_u/c/0.log";
const line = (content: string) => `2026-01-02T03:04:05.1Z stderr F ${content}\n`;

interface Given {
  state?: ContainerState;
  exitCode?: number;
  reason?: string;
  message?: string;
  policy?: string;
  path?: string;
  file?: string | Uint8Array;
  log?: string;
}

async function message(given: Given, prepare: (host: FakeHost) => void | Promise<void> = () => {}): Promise<string> {
  const host = new FakeHost();
  if (given.file !== undefined) host.put(file, given.file);
  if (given.log !== undefined) host.put(log, given.log);
  await prepare(host);
  const status = create(ContainerStatusSchema, {
    state: given.state ?? ContainerState.CONTAINER_EXITED,
    exitCode: given.exitCode ?? 1,
    reason: given.reason ?? "Error",
    message: given.message ?? "",
    logPath: log,
    mounts: [{ containerPath: "/data", hostPath: "/other" }, { containerPath: "/dev/termination-log", hostPath: file }],
    annotations: {
      "io.kubernetes.container.terminationMessagePath": given.path ?? "/dev/termination-log",
      "io.kubernetes.container.terminationMessagePolicy": given.policy ?? "File",
    },
  });
  return await terminationMessage(host, status);
}

const logs = "FallbackToLogsOnError";

Deno.test("termination messages: file, policy, log, joining", async () => {
  const cases: [string, Given, string][] = [
    ["file", { file: "bye" }, "bye"],
    ["joined with the runtime's", { file: "bye", message: "OOM" }, "OOM: bye"],
    ["runtime's only", { message: "OOM", file: "" }, "OOM"],
    ["nothing", {}, ""],
    ["only the last 4096 bytes", { file: "x".repeat(100) + "y".repeat(4096) }, "y".repeat(4096)],
    ["half a character goes", { file: "é".repeat(3000) + "z" }, "é".repeat(2047) + "z"],
    ["not exited", { state: ContainerState.CONTAINER_RUNNING, file: "early" }, ""],
    ["no path", { path: "", file: "bye" }, ""],
    ["relative path", { path: "dev/termination-log", file: "bye" }, "bye"],
    ["no such mount", { path: "/elsewhere", file: "bye" }, ""],
    ["log is not asked for", { file: "", log: line("crash") }, ""],
    ["log after an error", { policy: logs, file: "", log: line("crash") }, "crash\n"],
    ["log without a file", { policy: logs, log: line("crash") }, "crash\n"],
    ["log without a mount", { policy: logs, path: "", log: line("crash") }, "crash\n"],
    ["the file wins", { policy: logs, file: "mine", log: line("crash") }, "mine"],
    ["no log after success", { policy: logs, exitCode: 0, log: line("fine") }, ""],
    ["no log of what never ran", { policy: logs, reason: "ContainerCannotRun", log: line("x") }, ""],
    [
      "80 lines",
      { policy: logs, log: Array.from({ length: 90 }, (_, i) => line(`${i}`)).join("") },
      Array.from({ length: 80 }, (_, i) => `${i + 10}\n`).join(""),
    ],
    ["2048 bytes", { policy: logs, log: line("a".repeat(3000)) }, "a".repeat(2047) + "\n"],
  ];
  for (const [name, given, want] of cases) assert.equal(await message(given), want, name);
});

Deno.test("what cannot be read is said, and nothing hangs", async () => {
  assert.match(
    await message({}, (host) => host.putNode(file, "fifo")),
    /^Error on reading termination log .*0a1b2c3d: it is a fifo, not a regular file$/,
  );
  assert.match(
    await message({ file: "x", policy: logs, log: line("l") }, (host) => void host.denied(file)),
    /^Error on reading termination log /,
  );
  assert.match(
    await message({ policy: logs }),
    /^Error on reading termination message from logs: there is no log file at "\/var\/log/,
  );
});

Deno.test("a huge log is read from its end only", async () => {
  const got = await message({ policy: logs, log: line("first") + line("m".repeat(300_000)) });
  assert.equal(got, "m".repeat(2047) + "\n");
});

Deno.test("a link in the place of the termination file is not followed, a log's is", async () => {
  const leading = (from: string) => (host: FakeHost) => {
    host.put("/elsewhere", line("secret"));
    host.put(`${from}.beside`, "");
    return host.symlink("/elsewhere", from);
  };
  assert.match(await message({}, leading(file)), /0a1b2c3d: it is a symlink, not a regular file$/);
  assert.equal(await message({ policy: logs }, leading(log)), "secret\n");
});

Deno.test("what takes the file's place between the look and the read is neither waited for nor followed", async () => {
  for (const kind of ["symlink", "fifo"] as const) {
    const said = await message({ file: "bye" }, (host) => {
      const look = host.lstat.bind(host);
      host.lstat = async (path) => {
        const info = await look(path);
        if (path === file) {
          await host.remove(file);
          host.put("/etc/shadow", "secret");
          host.putNode(file, kind, "/etc/shadow");
        }
        return info;
      };
    });
    assert.match(said, /^Error on reading termination log \/root\/pods/, kind);
    assert.doesNotMatch(said, /secret/);
  }
});
