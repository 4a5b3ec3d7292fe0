import assert from "@assert";
import { createDenoHost } from "./deno_host.ts";
import { isAborted } from "./errors.ts";
import { FakeHost } from "./fake_host.ts";
import { HostError } from "./host_error.ts";

const bits = { gid: 4321, fileBits: 0o660, directoryBits: 0o2770 };

async function within(body: (dir: string) => Promise<void>): Promise<void> {
  const dir = await Deno.realPath(await Deno.makeTempDir({ prefix: "denolet-group-" }));
  try {
    await body(dir);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

const fails = (code: string) => (thrown: unknown) => thrown instanceof HostError && thrown.errno === code;

const facts = async (path: string) => {
  const { gid, mode } = await Deno.lstat(path);
  return [gid, (mode ?? 0) & 0o7777];
};

Deno.test("groupTree: files and directories get the group and the bits, links and what they lead to do not", () =>
  within(async (dir) => {
    const host = createDenoHost();
    const volume = `${dir}/volume`;
    await Deno.mkdir(`${volume}/a/b`, { recursive: true, mode: 0o700 });
    for (let i = 0; i < 40; i++) await Deno.writeTextFile(`${volume}/a/f${i}`, "x", { mode: 0o400 });
    await Deno.writeTextFile(`${dir}/outside`, "x", { mode: 0o600 });
    await Deno.mkdir(`${dir}/elsewhere`, { mode: 0o700 });
    await Deno.symlink(`${dir}/outside`, `${volume}/link`);
    await Deno.symlink(`${dir}/elsewhere`, `${volume}/a/b/link`);
    let entries = 0;
    await host.groupTree(volume, { ...bits, onEntry: () => entries++ });
    assert.equal(entries, 43);
    for (const path of ["", "/a", "/a/b"]) assert.deepEqual(await facts(volume + path), [4321, 0o2770], path);
    assert.deepEqual(await facts(`${volume}/a/f39`), [4321, 0o660]);
    assert.deepEqual(await facts(`${dir}/outside`), [0, 0o600]);
    assert.deepEqual(await facts(`${dir}/elsewhere`), [0, 0o700]);
  }));

Deno.test("groupTree: a link in the place of the directory is refused; a fifo does not hang; an abort ends it", () =>
  within(async (dir) => {
    const host = createDenoHost();
    await Deno.mkdir(`${dir}/volume`);
    await Deno.symlink(`${dir}/volume`, `${dir}/link`);
    await assert.rejects(
      host.groupTree(`${dir}/link`, bits),
      fails("ELOOP"),
    );
    const { code } = await new Deno.Command("/usr/bin/mkfifo", { args: [`${dir}/volume/fifo`] }).output();
    assert.equal(code, 0);
    await host.groupTree(`${dir}/volume`, bits);
    assert.equal((await Deno.lstat(`${dir}/volume/fifo`)).gid, 4321);
    await assert.rejects(host.groupTree(`${dir}/volume`, { ...bits, signal: AbortSignal.abort() }), isAborted);
    await assert.rejects(
      host.groupTree(`${dir}/none`, bits),
      fails("ENOENT"),
    );
  }));

Deno.test("FakeHost groupTree does as the real one", async () => {
  const host = new FakeHost({ files: { "/v/a/f": "x", "/out": "x" } });
  host.putNode("/v/link", "symlink", "/out");
  await host.groupTree("/v", bits);
  assert.deepEqual([(await host.stat("/v/a"))?.mode, (await host.stat("/v/a"))?.gid], [0o2775, 4321]);
  assert.deepEqual([(await host.stat("/v/a/f"))?.mode, (await host.stat("/v/a/f"))?.gid], [0o664, 4321]);
  assert.equal((await host.stat("/out"))?.gid, 0);
  host.putNode("/l", "symlink", "/v");
  await assert.rejects(host.groupTree("/l", bits), fails("ELOOP"));
});
