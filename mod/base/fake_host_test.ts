import assert from "@assert";
import { FakeClock, turn } from "./fake_clock.ts";
import { errno, FakeHost } from "./fake_host.ts";
import { errnoOf, HostError, isMissing } from "./host_error.ts";

const fails = (code: string) => (thrown: unknown) => thrown instanceof HostError && thrown.errno === code;

Deno.test("FakeHost keeps files, modes, owners and mtimes", async () => {
  const clock = new FakeClock(1000);
  const host = new FakeHost({ clock, files: { "/etc/a": "one" } });
  assert.equal(await host.readText("/etc/a"), "one");
  await host.mkdir("/var/lib/x", { mode: 0o750 });
  assert.equal((await host.stat("/var/lib"))?.mode, 0o750);
  await clock.advance(500);
  await host.write("/var/lib/x/f", "hello", { mode: 0o640, atomic: true });
  await host.chown("/var/lib/x/f", 7, 8);
  const info = await host.stat("/var/lib/x/f");
  assert.deepEqual([info?.kind, info?.size, info?.mode, info?.uid, info?.gid, info?.mtimeMs], [
    "file",
    5,
    0o640,
    7,
    8,
    1500,
  ]);
  assert.equal(new TextDecoder().decode(await host.readTail("/var/lib/x/f", 2)), "lo");
  assert.deepEqual(host.tree("/var/lib"), ["x/", "x/f"]);
});

Deno.test("FakeHost tells a missing path from other failures", async () => {
  const host = new FakeHost({ files: { "/a/f": "" } });
  assert.equal(await host.stat("/a/none"), undefined);
  assert.equal(await host.lstat("/a/f/none"), undefined);
  await assert.rejects(host.readText("/a/none"), (e: unknown) => isMissing(e) && /readText \/a\/none/.test(String(e)));
  await assert.rejects(host.readText("/a"), fails("EISDIR"));
  await assert.rejects(host.writeControl("/a/none", "1"), isMissing);
  await assert.rejects(host.write("/none/f", ""), isMissing);
  await host.remove("/a/none");
  await host.removeTree("/none");
});

Deno.test("FakeHost follows links as the kernel does", async () => {
  const host = new FakeHost({ files: { "/real/f": "x" } });
  await host.symlink("/real", "/link");
  await host.symlink("../link/f", "/real/up");
  await host.symlink("loop", "/loop");
  assert.equal(await host.readText("/link/up"), "x");
  assert.equal(await host.realPath("/link/../real/up"), "/real/f");
  assert.equal((await host.lstat("/link"))?.kind, "symlink");
  assert.equal(await host.readLink("/link"), "/real");
  await assert.rejects(host.readText("/loop"), fails("ELOOP"));
  await assert.rejects(host.symlink("x", "/link"), fails("EEXIST"));
  await host.symlink("/elsewhere", "/new");
  await host.rename("/new", "/link");
  assert.equal(await host.readLink("/link"), "/elsewhere");
});

Deno.test("FakeHost covers a directory by a mount, and removeTree stops at it", async () => {
  const host = new FakeHost({ files: { "/pods/v/under": "1" } });
  await host.mount({ source: "tmpfs", target: "/pods/v", type: "tmpfs", options: ["size=4"] });
  assert.equal(await host.stat("/pods/v/under"), undefined);
  await host.write("/pods/v/f", "1234");
  await assert.rejects(host.write("/pods/v/g", "5"), fails("ENOSPC"));
  await assert.rejects(host.removeTree("/pods"), /removeTree \/pods: \/pods\/v is a mount point/);
  await assert.rejects(host.rename("/pods/v/f", "/pods/f"), fails("EXDEV"));
  assert.equal(host.text("/pods/v/f"), "1234");
  assert.deepEqual((await host.mounts()).map((m) => `${m.type} ${m.target}`), ["ext4 /", "tmpfs /pods/v"]);
  await host.unmount("/pods/v");
  await host.unmount("/pods/v");
  assert.equal(host.text("/pods/v/under"), "1");
  await host.removeTree("/pods");
  assert.equal(host.exists("/pods"), false);
});

Deno.test("FakeHost bind mounts show the same inode; read-only ones refuse writes", async () => {
  const host = new FakeHost({ files: { "/data/f": "x", "/target/under": "" } });
  await host.mount({ source: "/data", target: "/target", options: ["bind"] });
  await host.write("/target/g", "y");
  assert.equal(host.text("/data/g"), "y");
  await host.mount({ source: "/data", target: "/target", options: ["remount", "bind", "ro"] });
  await assert.rejects(host.write("/target/h", "z"), fails("EROFS"));
  await host.write("/data/h", "z");
});

Deno.test("FakeHost removeTree does not follow links", async () => {
  const host = new FakeHost({ files: { "/keep/f": "x", "/gone/g": "" } });
  await host.symlink("/keep", "/gone/link");
  await host.removeTree("/gone");
  assert.deepEqual(host.tree("/"), ["keep/", "keep/f"]);
});

Deno.test("FakeHost watch yields after changes below the path, once for many", async () => {
  const host = new FakeHost({ files: { "/m/a": "" } });
  const stop = new AbortController();
  let seen = 0;
  const watching = (async () => {
    for await (const _ of host.watch("/m", stop.signal)) seen++;
  })();
  await turn();
  await host.write("/other", "");
  await turn();
  assert.equal(seen, 0);
  host.put("/m/b", "1");
  host.put("/m/c", "1");
  await turn();
  assert.equal(seen, 1);
  await host.remove("/m/b");
  await turn();
  assert.equal(seen, 2);
  stop.abort();
  await watching;
});

Deno.test("FakeHost faults hit the operations they name", async () => {
  const host = new FakeHost({ files: { "/d/f": "x" } });
  {
    using _ = host.full("/d");
    await assert.rejects(host.write("/d/g", ""), /ENOSPC.*free some/);
    assert.equal(await host.readText("/d/f"), "x");
  }
  {
    using _ = host.readOnly("/d");
    await assert.rejects(host.remove("/d/f"), fails("EROFS"));
  }
  {
    using _ = host.denied("/d");
    await assert.rejects(host.readText("/d/f"), fails("EACCES"));
  }
  using _ = host.fault((op, path) => op === "unmount" && path === "/d" ? errno("EBUSY") : undefined);
  await assert.rejects(host.unmount("/d"), fails("EBUSY"));
  await host.write("/d/g", "ok");
});

Deno.test("FakeHost runs programs, records kills and holds locks", async () => {
  const host = new FakeHost({
    run: (command) => command === "/bin/true" ? { code: 0, stdout: "", stderr: "" } : undefined,
  });
  assert.equal((await host.run("/bin/true", ["x"])).code, 0);
  await assert.rejects(host.run("/bin/none", []), (e: unknown) => errnoOf(e) === "ENOENT");
  host.kill(5, "SIGKILL");
  assert.deepEqual(host.kills, [{ pid: 5, signal: "SIGKILL" }]);
  const lock = await host.lock("/lock");
  assert.ok(lock);
  assert.equal(await host.lock("/lock"), undefined);
  lock?.[Symbol.dispose]();
  assert.ok(await host.lock("/lock"));
});

Deno.test("FakeHost kernel file systems make and remove control files with their directory", async () => {
  const host = new FakeHost();
  host.putKernelFs("/cg", "cgroup2", {
    files: () => ({ "cgroup.procs": "", "cpu.max": "max 100000" }),
    onWrite: (path, data) => {
      if (path.endsWith("cpu.max") && data === "bad") throw errno("EINVAL");
      return data + "\n";
    },
  });
  await host.mkdir("/cg/a/b");
  await host.writeControl("/cg/a/cpu.max", "5 100");
  assert.equal(await host.readText("/cg/a/cpu.max"), "5 100\n");
  await assert.rejects(host.writeControl("/cg/a/cpu.max", "bad"), fails("EINVAL"));
  await assert.rejects(host.remove("/cg/a"), fails("ENOTEMPTY"));
  host.put("/cg/a/b/cgroup.procs", "7\n");
  await assert.rejects(host.remove("/cg/a/b"), fails("EBUSY"));
  host.put("/cg/a/b/cgroup.procs", "");
  await host.remove("/cg/a/b");
  await host.remove("/cg/a");
  assert.equal(host.exists("/cg/a"), false);
});

Deno.test("FakeHost open: reads in pieces, and goes on reading a file that was renamed", async () => {
  const host = new FakeHost({ files: { "/l/f": "0123456789" } });
  host.putNode("/l/pipe", "fifo");
  await assert.rejects(host.open("/l/pipe"), fails("EINVAL"));
  await assert.rejects(host.open("/l/none"), isMissing);
  const file = await host.open("/l/f");
  const into = new Uint8Array(4);
  assert.equal(await file.read(into, 8), 2);
  assert.deepEqual([...into.subarray(0, 2)], [0x38, 0x39]);
  await host.rename("/l/f", "/l/f.1");
  host.put("/l/f", "new");
  assert.equal(await file.read(into, 0), 4);
  assert.notEqual((await file.info()).ino, (await host.stat("/l/f"))?.ino);
  file[Symbol.dispose]();
  await assert.rejects(file.read(into, 0), fails("EBADF"));
});
