import assert from "@assert";
import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { FakeHost } from "../../mod/base/fake_host.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import { DiskUsage, walk } from "./disk_usage.ts";

const { signal } = new AbortController();

Deno.test("a walk counts whole blocks and inodes, follows no link and stays on its file system", async () => {
  const clock = new FakeClock();
  const host = new FakeHost({
    clock,
    files: { "/d/a": "x".repeat(4097), "/d/sub/b": "x", "/big": "x".repeat(99_999) },
  });
  host.putNode("/d/link", "symlink", "/big");
  host.putNode("/d/around", "symlink", "/d");
  host.putDir("/d/mnt");
  host.putKernelFs("/d/mnt", "tmpfs", { files: () => ({ huge: "x".repeat(50_000) }) });
  const usage = await walk({ host, clock, path: "/d", signal });
  // The directory, a, sub, b, and two links; links have the length of their targets.
  assert.deepEqual([usage?.bytes, usage?.inodes], [8192 + 4096 + 2 * 4096, 6]);
  assert.equal(await walk({ host, clock, path: "/none", signal }), undefined);
  assert.equal((await walk({ host, clock, path: "/d/a", signal }))?.bytes, 8192, "of a file, the file");
});

Deno.test("a file with two names counts once; what vanishes meanwhile does not count", async () => {
  const info = { size: 1, mode: 0, uid: 0, gid: 0, dev: 1, mtimeMs: 0 };
  const names: Record<string, string[]> = { "/d": ["a", "b", "gone"] };
  const inos: Record<string, number> = { "/d": 1, "/d/a": 2, "/d/b": 2 };
  const usage = await walk({
    clock: new FakeClock(),
    path: "/d",
    signal,
    host: {
      readDir: (path) => Promise.resolve((names[path] ?? []).map((name) => ({ name, kind: "file" as const }))),
      lstat: (path) => {
        const ino = inos[path];
        const kind = path === "/d" ? "directory" as const : "file" as const;
        return Promise.resolve(ino === undefined ? undefined : { ...info, ino, kind });
      },
    },
  });
  assert.deepEqual([usage?.bytes, usage?.inodes], [8192, 2]);
});

function setUp() {
  const clock = new FakeClock();
  const host = new FakeHost({ clock, files: { "/a/f": "x", "/b/f": "x" } });
  const log = new RecordingLogger();
  const scope = new Scope("test");
  return { clock, host, log, scope, usage: new DiskUsage({ host, clock, log, scope }) };
}

Deno.test("what was measured is kept for a minute; older is told, and measured anew behind the answer", async () => {
  const { clock, host, scope, usage } = setUp();
  await using _scope = scope;
  const bytes = async () => (await usage.of(["/a"], 100)).get("/a")?.bytes;
  assert.equal(await bytes(), 4096);
  host.put("/a/more", "x");
  await clock.advance(59_000);
  assert.equal(await bytes(), 4096);
  await clock.advance(1000);
  assert.equal(await bytes(), 4096);
  await scope.settled();
  assert.equal(await bytes(), 8192);
  assert.equal(clock.pending, 0, "nothing waits while nobody asks");
});

Deno.test("a directory that hangs holds up an answer for its patience only, and nothing after it fails", async () => {
  const { clock, host, scope } = setUp();
  await using _scope = scope;
  const { promise, resolve } = Promise.withResolvers<void>();
  const slow = {
    lstat: async (path: string) => {
      if (path === "/a") await promise;
      return await host.lstat(path);
    },
    readDir: (path: string) => host.readDir(path),
  };
  const usage = new DiskUsage({ host: slow, clock, log: new RecordingLogger(), scope });
  let answered = false;
  const first = usage.of(["/a", "/b"], 500).then((found) => {
    answered = true;
    return found;
  });
  await clock.advance(499);
  assert.equal(answered, false);
  await clock.advance(1);
  assert.deepEqual([...(await first).keys()], []);
  resolve();
  await scope.settled();
  await turn();
  assert.deepEqual([...(await usage.of(["/a", "/b"], 500)).keys()], ["/a", "/b"]);
});

Deno.test("a directory that cannot be read is left out and said; the end of the agent ends a walk", async () => {
  const { host, scope, usage, log } = setUp();
  using _denied = host.denied("/a");
  assert.deepEqual([...(await usage.of(["/a", "/b"], 500)).keys()], ["/b"]);
  assert.match(log.lines.map(({ message }) => message).join(), /could not be measured/);
  await scope.close();
  const ended = new AbortController();
  ended.abort();
  await assert.rejects(
    walk({ host, clock: new FakeClock(), path: "/b", signal: ended.signal }),
    (error: { code?: string }) => error.code === "Aborted",
  );
});
