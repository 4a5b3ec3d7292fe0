import assert from "@assert";
import { createDenoHost } from "./deno_host.ts";
import { FakeHost } from "./fake_host.ts";

Deno.test("kernel files read at once: whole, undefined when there are none, an error for what may not be read", async () => {
  const host = createDenoHost();
  assert.equal(host.readTextNow("/proc/version"), Deno.readTextFileSync("/proc/version"));
  assert.equal(host.readTextNow("/proc/self/nothing"), undefined);
  assert.equal(host.readTextNow("/proc/version/below"), undefined);
  assert.throws(() => host.readTextNow("/proc"), /readTextNow \/proc: /);
  const dir = await Deno.makeTempDir({ prefix: "denolet-now-" });
  try {
    // Longer than one read, and letters cut in two by it.
    const long = "ä".repeat(100_000);
    await Deno.writeTextFile(`${dir}/long`, `x${long}`);
    assert.equal(host.readTextNow(`${dir}/long`), `x${long}`);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("the host in memory reads at once as the real one does", () => {
  const host = new FakeHost({ files: { "/proc/stat": "btime 1\n" } });
  assert.equal(host.readTextNow("/proc/stat"), "btime 1\n");
  assert.equal(host.readTextNow("/proc/none"), undefined);
  using _denied = host.denied("/proc/stat");
  assert.throws(() => host.readTextNow("/proc/stat"), /\/proc\/stat/);
});

Deno.test("a kernel file that stays open tells anew at each read, and nothing when it has gone", async () => {
  const host = createDenoHost();
  using uptime = host.keepOpen("/proc/uptime");
  assert.match(uptime?.read() ?? "", /^\d+\.\d+ /);
  assert.equal(uptime?.read()?.split(" ").length, 2, "from its beginning each time");
  assert.equal(host.keepOpen("/proc/none"), undefined);
  const child = new Deno.Command("/usr/bin/sleep", { args: ["600"] }).spawn();
  using limits = host.keepOpen(`/proc/${child.pid}/limits`);
  assert.match(limits?.read() ?? "", /Max open files/);
  child.kill("SIGKILL");
  await child.status;
  assert.equal(limits?.read(), undefined);
  limits?.[Symbol.dispose]();
});

Deno.test("the host in memory keeps files as the real one does", async () => {
  const host = new FakeHost({ files: { "/group/usage": "1" } });
  using kept = host.keepOpen("/group/usage");
  host.put("/group/usage", "2");
  assert.equal(kept?.read(), "2");
  await host.removeTree("/group");
  host.put("/group/usage", "3");
  assert.equal(kept?.read(), undefined, "another file of the same name");
});
