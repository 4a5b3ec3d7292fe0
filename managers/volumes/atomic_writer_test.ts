import assert from "@assert";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { errno, FakeHost } from "../../mod/base/fake_host.ts";
import { type PayloadFile, payloadPath, writeAtomically } from "./atomic_writer.ts";

function scene() {
  const clock = new FakeClock(Date.UTC(2026, 0, 2, 3, 4, 5));
  const host = new FakeHost({ clock });
  host.putDir("/v", 0o777);
  const write = (files: Record<string, string | PayloadFile>, gid?: number) =>
    writeAtomically({
      host,
      clock,
      target: "/v",
      gid,
      payload: new Map(
        Object.entries(files).map(([path, f]) => [path, typeof f === "string" ? { data: f, mode: 0o644 } : f]),
      ),
    });
  return { clock, host, write };
}

const first = "..2026_01_02_03_04_05.000000000";

Deno.test("payload paths: table of the contract's limits", () => {
  const good: [string, string][] = [["a", "a"], ["a/b", "a/b"], ["./a//b/", "a/b"], ["a/..b", "a/..b"], [".a", ".a"]];
  for (const [path, plain] of good) assert.equal(payloadPath(path), plain);
  const bad: [string, RegExp][] = [
    ["", /must not be empty/],
    ["/a", /must be relative path/],
    ["a/../b", /must not contain '\.\.'/],
    ["..", /must not contain '\.\.'/],
    ["..data", /must not start with '\.\.'/],
    ["./..data", /must not start with '\.\.'/],
    ["a\0", /zero byte/],
    [".", /must name a file/],
    ["x".repeat(256), /filenames must be less than or equal to 255/],
    ["a/".repeat(2049), /less than or equal to 4096/],
  ];
  for (const [path, expected] of bad) {
    assert.throws(() => payloadPath(path), { code: "Volume", message: expected }, path.slice(0, 20));
  }
});

Deno.test("a first write shows links through ..data", async () => {
  const { host, write } = scene();
  assert.equal(await write({ "a": "1", "d/x": { data: "2", mode: 0o100400 }, "d/e/y": "3" }), true);
  assert.deepEqual(host.tree("/v"), [
    `${first}/`,
    `${first}/a`,
    `${first}/d/`,
    `${first}/d/e/`,
    `${first}/d/e/y`,
    `${first}/d/x`,
    `..data -> ${first}`,
    "a -> ..data/a",
    "d -> ..data/d",
  ]);
  assert.equal(host.text("/v/d/e/y"), "3");
  assert.equal((await host.stat("/v/d/x"))?.mode, 0o400);
});

Deno.test("an unchanged payload writes nothing; a changed one swaps all at once and drops old names", async () => {
  const { host, clock, write } = scene();
  await write({ a: "1", gone: "x" });
  host.operations.length = 0;
  assert.equal(await write({ gone: "x", a: "1" }), false);
  const changes = ["write", "mkdir", "symlink", "rename", "remove", "removeTree", "chmod"];
  assert.deepEqual(host.operations.filter((o) => changes.includes(o.operation)), []);
  await clock.advance(1000);
  // While the new set is written, readers see the old one.
  const seen: (string | undefined)[] = [];
  {
    using _ = host.fault((op) => {
      if (op === "write" || op === "rename") seen.push(host.text("/v/a"));
      return undefined;
    });
    assert.equal(await write({ a: "2", b: "3" }), true);
  }
  assert.deepEqual(seen, ["1", "1", "1"]);
  assert.equal(await host.readLink("/v/..data"), "..2026_01_02_03_04_06.000000000");
  assert.equal(host.text("/v/a"), "2");
  assert.equal(host.text("/v/b"), "3");
  assert.equal(host.exists("/v/gone"), false);
  assert.equal(host.exists(`/v/${first}`), false);
});

Deno.test("a mode that changed is a change", async () => {
  const { host, write } = scene();
  await write({ a: { data: "1", mode: 0o644 } });
  assert.equal(await write({ a: { data: "1", mode: 0o600 } }), true);
  assert.equal((await host.stat("/v/a"))?.mode, 0o600);
});

Deno.test("a write that fails keeps the old set and leaves nothing behind", async () => {
  for (const operation of ["write", "symlink", "rename"] as const) {
    const { host, clock, write } = scene();
    await write({ a: "1" });
    await clock.advance(1000);
    {
      using _ = host.fault((op) => op === operation ? errno("ENOSPC") : undefined);
      await assert.rejects(write({ a: "2" }), /no space or no inodes left/, operation);
    }
    assert.equal(host.text("/v/a"), "1");
    assert.deepEqual(host.tree("/v").filter((p) => p.endsWith("/")), [`${first}/`]);
    assert.equal(await write({ a: "2" }), true);
    assert.equal(host.text("/v/a"), "2");
  }
});

Deno.test("what a crash left is put right", async () => {
  const { host, write } = scene();
  await write({ a: "1", b: "2" });
  host.putDir("/v/..2025_12_31_00_00_00.000000000/x");
  host.putNode("/v/..data_tmp", "symlink", "..nowhere");
  await host.remove("/v/b");
  await write({ a: "1", b: "2" });
  assert.equal(host.text("/v/b"), "2");
  assert.equal(host.exists("/v/..2025_12_31_00_00_00.000000000"), false);
  await write({ a: "3" });
  assert.equal(host.text("/v/a"), "3");
});

Deno.test("a ..data that leads elsewhere is not trusted", async () => {
  const { host, write } = scene();
  host.put("/etc/shadow", "secret");
  host.putNode("/v/..data", "symlink", "../etc");
  await write({ shadow: "mine" });
  assert.equal(host.text("/etc/shadow"), "secret");
  assert.equal(host.text("/v/shadow"), "mine");
});

Deno.test("a file that is another one's directory is refused", async () => {
  const { write } = scene();
  await assert.rejects(write({ a: "1", "a/b": "2" }), { code: "Volume", message: /"a" is a file and the directory/ });
});

Deno.test("fsGroup: files are the group's to read", async () => {
  const { host, write } = scene();
  await write({ "d/a": { data: "1", mode: 0o400 } }, 2000);
  const file = await host.stat("/v/d/a");
  assert.deepEqual([file?.gid, file?.mode], [2000, 0o440]);
  const dir = await host.stat("/v/d");
  assert.deepEqual([dir?.gid, dir?.mode], [2000, 0o2755]);
  assert.equal(await write({ "d/a": { data: "1", mode: 0o400 } }, 2000), false);
});
