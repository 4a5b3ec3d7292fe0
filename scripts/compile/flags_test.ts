import assert from "@assert";
import { repository } from "../lib/files.ts";
import { bakedHeader, cString, permissionFlags, planFlags, runFlags, tuningOf } from "./flags.ts";

async function agentSet(): Promise<Record<string, boolean | string[]>> {
  return JSON.parse(await Deno.readTextFile(`${repository}/deno.json`)).permissions.agent;
}

// Whoever makes this longer says why in docs/permissions.md.
const environment = [
  ...["DENOLET_*", "GRPC_*", "LOG_STREAM", "LOG_TOKENS", "NOTIFY_SOCKET", "WATCHDOG_PID", "WATCHDOG_USEC"],
  ...["grpc_proxy", "http_proxy", "https_proxy", "no_grpc_proxy", "no_proxy"],
].join(",");
const programs = [
  ...["/usr/bin/busctl", "/usr/bin/getsubids", "/usr/bin/kill", "/usr/bin/ln", "/usr/bin/mkdir", "/usr/bin/mount"],
  ...["/usr/bin/prlimit", "/usr/bin/touch", "/usr/bin/umount", "/usr/sbin/ip6tables", "/usr/sbin/iptables"],
].join(",");
const facts = [
  ...["cpus", "gid", "hostname", "loadavg", "networkInterfaces", "osRelease", "osUptime", "statfs"],
  ...["systemMemoryInfo", "uid"],
].join(",");
const closed = ["run", "--quiet", "--no-prompt", "--no-config", "--no-lock", "--no-remote", "--no-npm"];

Deno.test("audit: what the executable may do is exactly this; reading and writing come from its configuration", async () => {
  assert.deepEqual(runFlags(await agentSet(), { flags: [], environment: {} }), [
    ...closed,
    "--unstable-net",
    "--allow-net",
    `--allow-run=${programs}`,
    `--allow-env=${environment}`,
    `--allow-sys=${facts}`,
  ]);
});

Deno.test("audit: what the plan may do is exactly this", async () => {
  assert.deepEqual(planFlags(await agentSet(), { flags: [], environment: {} }), [
    ...closed,
    "--allow-read",
    "--allow-run=/usr/bin/mount",
    `--allow-env=${environment}`,
    "--allow-sys=uid",
  ]);
});

Deno.test("audit: no kind of permission is open but those that are known to be", async () => {
  const open = Object.entries(await agentSet()).filter(([, value]) => value === true).map(([kind]) => kind);
  assert.deepEqual(open, ["read", "write", "net"]);
});

Deno.test("permission flags: a kind, an unknown kind, a wrong value, a comma", () => {
  assert.deepEqual(permissionFlags({ read: ["/a,b", "/c"], net: true, run: [], ffi: false }), [
    "--allow-read=/a,,b,/c",
    "--allow-net",
  ]);
  assert.throws(() => permissionFlags({ raed: true }), /raed/);
  assert.throws(() => permissionFlags({ read: "x" as unknown as boolean }), /read/);
  assert.deepEqual(permissionFlags({ read: true, write: true }, ["write"]), ["--allow-read"]);
});

Deno.test("tuning is read out of scripts/agent.sh: flags and variables, not what a comment says", async () => {
  const script = [
    "# --v8-flags=--never",
    "export MALLOC_ARENA_MAX=1 MALLOC_TOP_PAD_=2",
    "  export OTHER=1",
    'exec "$deno" run --v8-flags=--a,--b=1 \\',
  ].join("\n");
  assert.deepEqual(tuningOf(script), {
    flags: ["--v8-flags=--a,--b=1"],
    environment: { MALLOC_ARENA_MAX: "1", MALLOC_TOP_PAD_: "2" },
  });
  const real = tuningOf(await Deno.readTextFile(`${repository}/scripts/agent.sh`));
  assert.equal(real.flags.length, 1, "scripts/agent.sh has V8 flags, written in one place");
  assert.deepEqual(
    Object.keys(real.environment).sort(),
    ["MALLOC_ARENA_MAX", "MALLOC_MMAP_THRESHOLD_", "MALLOC_TRIM_THRESHOLD_"],
    "every variable for malloc is found, however they stand there",
  );
});

Deno.test("C strings: quotes, backslashes, trigraphs, bytes beyond ASCII", () => {
  assert.equal(cString('a"b\\c??=\n1é'), '"a\\042b\\134c\\077\\077=\\0121\\303\\251"');
  const header = bakedHeader({
    digest: "d",
    made: "m",
    files: [{ name: "kubelet", size: 5 }],
    planFlags: ["p"],
    runFlags: [],
    environment: { A: "1" },
  });
  assert.match(header, /files\[\] = \{\{"kubelet", 5\}\};/);
  assert.match(header, /run_flags\[\] = \{NULL\};/);
  assert.match(header, /environment\[\] = \{"A", "1", NULL\};/);
});
