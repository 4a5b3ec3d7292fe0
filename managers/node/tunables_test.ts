import assert from "@assert";
import { FakeHost } from "../../mod/base/fake_host.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { openFilesLimits, raiseOpenFiles } from "./open_files.ts";
import { applyTunables, kernelTunables } from "./tunables.ts";

const wrong = Object.fromEntries(kernelTunables.map(([name]) => [`/proc/sys/${name}`, "7\n"]));
const right = Object.fromEntries(kernelTunables.map(([name, value]) => [`/proc/sys/${name}`, `${value}\n`]));

Deno.test("kernel tunables are set", async () => {
  const host = new FakeHost({ files: wrong });
  await applyTunables({ host, protect: false, log: new RecordingLogger() });
  const now = await Promise.all(kernelTunables.map(([name]) => host.readText(`/proc/sys/${name}`)));
  assert.deepEqual(now.map((text) => text.trim()), ["1", "0", "10", "1", "1000000", "25000000"]);
});

Deno.test("protectKernelDefaults: nothing is set, each that differs is named with both values and the remedy", async () => {
  const host = new FakeHost({ files: { ...right, "/proc/sys/kernel/panic": "0\n" } });
  await assert.rejects(applyTunables({ host, protect: true, log: new RecordingLogger() }), {
    code: "BadConfig",
    message: "[invalid kernel flag: kernel/panic, expected value: 10, actual value: 0]: set them (sysctl -w), or let " +
      "the agent do it: protectKernelDefaults: false",
  });
  assert.equal(await host.readText("/proc/sys/kernel/panic"), "0\n");
  await applyTunables({ host: new FakeHost({ files: right }), protect: true, log: new RecordingLogger() });
});

Deno.test("tunables that cannot be set are told, and the agent runs on", async () => {
  const host = new FakeHost({ files: wrong });
  using _denied = host.denied("/proc/sys/kernel/panic");
  const log = new RecordingLogger();
  await applyTunables({ host, protect: false, log });
  assert.equal(log.lines.length, 1);
  assert.match(String(log.lines[0]?.fields.failed), /^kernel\/panic: /);
  assert.equal((await host.readText("/proc/sys/vm/overcommit_memory")).trim(), "1");
});

const limits = (soft: string, hard: string) =>
  `Limit                     Soft Limit           Hard Limit           Units\n` +
  `Max processes             1                    2                    processes\n` +
  `Max open files            ${soft}                 ${hard}               files\n`;

Deno.test("the limits of open files as procfs tells them", () => {
  assert.deepEqual(openFilesLimits(limits("1024", "20000")), { soft: 1024, hard: 20000 });
  assert.deepEqual(openFilesLimits(limits("1024", "unlimited")), { soft: 1024, hard: Infinity });
  assert.equal(openFilesLimits("nothing"), undefined);
});

const cases: [string, string, string, boolean, string[]][] = [
  ["open files: raised", "1024", "4096", false, ["--pid=7 --nofile=1000000:1000000"]],
  ["open files: a higher hard limit stays", "1024", "2000000", false, ["--pid=7 --nofile=1000000:2000000"]],
  ["open files: enough already", "1000000", "1000000", false, []],
  ["open files: the kernel refuses: up to the hard limit", "1024", "20000", true, [
    "--pid=7 --nofile=1000000:1000000",
    "--pid=7 --nofile=20000:20000",
  ]],
  ["open files: the kernel refuses, and the hard limit is reached", "20000", "20000", true, [
    "--pid=7 --nofile=1000000:1000000",
  ]],
];
for (const [name, soft, hard, refused, expected] of cases) {
  Deno.test(name, async () => {
    const ran: string[] = [];
    const host = new FakeHost({ files: { "/proc/self/limits": limits(soft, hard) } });
    const log = new RecordingLogger();
    const run = (_program: string, args: string[]) => {
      ran.push(args.join(" "));
      const fails = refused && ran.length === 1;
      return Promise.resolve({ code: fails ? 1 : 0, stdout: "", stderr: fails ? "Operation not permitted\n" : "" });
    };
    await raiseOpenFiles({
      host: { procRoot: "/proc", readText: (path) => host.readText(path), run },
      pid: 7,
      wanted: 1_000_000,
      log,
      signal: new AbortController().signal,
    });
    assert.deepEqual(ran, expected);
    assert.equal(log.lines.length, refused ? 1 : 0);
  });
}
