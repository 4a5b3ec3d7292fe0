import assert from "@assert";
import { createDenoHost } from "./deno_host.ts";
import { isAborted } from "./errors.ts";
import { errnoOf, HostError, hostError, isMissing } from "./host_error.ts";
import type { Host } from "./host.ts";
import { parseMountinfo } from "./mountinfo.ts";

const fails = (code: string) => (thrown: unknown) => thrown instanceof HostError && thrown.errno === code;

/** Runs a test in its own directory; whatever it mounted there is unmounted. */
async function within(body: (host: Host, dir: string) => Promise<void>): Promise<void> {
  const host = createDenoHost();
  const dir = await Deno.realPath(await Deno.makeTempDir({ prefix: "denolet-host-" }));
  try {
    await body(host, dir);
  } finally {
    const below = (await host.mounts()).filter((m) => m.target.startsWith(`${dir}/`));
    for (const mount of below.reverse()) await host.unmount(mount.target);
    await host.removeTree(dir);
  }
}

Deno.test("mountinfo: escapes, optional fields, super options, broken lines", () => {
  const text = [
    "36 35 98:0 /mnt1 /mnt\\0402\\134x rw,noatime shared:12 master:1 - ext3 /dev/root rw,errors=continue",
    "37 36 0:1 / /caf\\303\\251 ro - tmpfs tmp\\011fs ro,size=4k",
    "nonsense",
    "",
  ].join("\n");
  assert.deepEqual(parseMountinfo(text), [{
    id: 36,
    source: "/dev/root",
    target: "/mnt 2\\x",
    type: "ext3",
    root: "/mnt1",
    options: ["rw", "noatime", "errors=continue"],
    propagation: ["shared:12", "master:1"],
  }, {
    id: 37,
    source: "tmp\tfs",
    target: "/café",
    type: "tmpfs",
    root: "/",
    options: ["ro", "size=4k"],
    propagation: [],
  }]);
});

Deno.test("errors say what an operator can do", () => {
  const cases: [string, string, RegExp][] = [
    ["write", "ENOSPC", /^write \/p: .*no space or no inodes left/],
    ["mkdir", "EROFS", /read-only: mount it read-write/],
    ["write", "EACCES", /must run as root/],
    ["readText", "EMFILE", /LimitNOFILE/],
    ["watch", "ENOSPC", /max_user_watches/],
    ["watch", "EMFILE", /max_user_instances/],
  ];
  for (const [operation, code, expected] of cases) {
    const error = hostError(operation, "/p", Object.assign(new Error("x"), { code }));
    assert.equal(error.code, "Host");
    assert.match(error.message, expected);
  }
  assert.equal(errnoOf(new Error("Bad thing (os error 30)")), "EROFS");
});

Deno.test("a right that the process lacks is told without the run-time's flags", () => {
  const refused = new Deno.errors.NotCapable('Requires all access to "/p", run again with the --allow-all flag');
  const { message, cause } = hostError("stat", "/p", refused);
  assert.match(message, /^stat \/p: .*started without that right.*: run it as root/);
  assert.doesNotMatch(message, /--allow/);
  assert.equal(cause, refused);
});

Deno.test("DenoHost files: write, modes, atomic over a link, tail, control, missing", async () => {
  await within(async (host, dir) => {
    await host.mkdir(`${dir}/a/b/`, { mode: 0o751 });
    assert.equal((await host.stat(`${dir}/a`))?.mode, 0o751);
    await host.mkdir(`${dir}/a/b`, { mode: 0o700 });
    assert.equal((await host.stat(`${dir}/a/b`))?.mode, 0o751);
    await host.write(`${dir}/f`, "0123456789", { mode: 0o666 });
    assert.equal((await host.stat(`${dir}/f`))?.mode, 0o666);
    await host.mkdir(`${dir}/f`).then(() => assert.fail("made"), (e: unknown) => assert.ok(e instanceof HostError));
    assert.equal(new TextDecoder().decode(await host.readTail(`${dir}/f`, 3)), "789");
    assert.equal(new TextDecoder().decode(await host.readBytes(`${dir}/f`, 4)), "0123");
    await host.symlink("f", `${dir}/l`);
    await host.write(`${dir}/l`, "new", { atomic: true, mode: 0o600 });
    assert.equal((await host.lstat(`${dir}/l`))?.kind, "file");
    assert.equal(await host.readText(`${dir}/f`), "0123456789");
    await host.writeControl(`${dir}/f`, "ab");
    assert.equal(await host.readText(`${dir}/f`), "ab23456789");
    await assert.rejects(host.writeControl(`${dir}/none`, "1"), isMissing);
    assert.equal(await host.stat(`${dir}/f/x`), undefined);
    await host.remove(`${dir}/none`);
    await host.removeTree(`${dir}/none/none`);
    assert.deepEqual((await host.readDir(dir)).map((e) => `${e.name} ${e.kind}`).sort(), [
      "a directory",
      "f file",
      "l file",
    ]);
    const space = await host.space(dir);
    assert.ok(space.total >= space.free && space.free > 0);
  });
});

Deno.test("DenoHost removeTree: links are removed, not followed; odd names and deep trees go too", async () => {
  await within(async (host, dir) => {
    await host.mkdir(`${dir}/keep`);
    await host.write(`${dir}/keep/f`, "x");
    await host.mkdir(`${dir}/gone/sub`);
    await host.symlink(`${dir}/keep`, `${dir}/gone/link`);
    await host.symlink("../../keep", `${dir}/gone/sub/link`);
    // 400 levels, and a name that is not UTF-8.
    await host.run("/bin/bash", [
      "-c",
      `cd "$1/gone" && mkdir -p "$(printf 'd/%.0s' {1..400})" && touch sub/$'bad\\xffname' && mkdir sub/$'dir\\xfe'`,
      "-",
      dir,
    ]);
    await host.removeTree(`${dir}/gone`);
    assert.equal(await host.lstat(`${dir}/gone`), undefined);
    await host.symlink(`${dir}/keep`, `${dir}/top`);
    await host.removeTree(`${dir}/top`);
    assert.equal(await host.readText(`${dir}/keep/f`), "x");
  });
});

Deno.test("DenoHost mounts: tmpfs, removeTree stops at it, unmount twice", async () => {
  await within(async (host, dir) => {
    await host.mkdir(`${dir}/t/with space`);
    const target = `${dir}/t/with space`;
    await host.mount({ source: "tmpfs", target, type: "tmpfs", options: ["size=65536", "mode=0700"] });
    const entry = (await host.mounts()).find((m) => m.target === target);
    assert.equal(entry?.type, "tmpfs");
    await host.write(`${target}/f`, "x");
    await assert.rejects(host.removeTree(`${dir}/t`), /with space is a mount point: nothing was removed/);
    assert.equal(await host.readText(`${target}/f`), "x");
    await assert.rejects(host.write(`${target}/big`, new Uint8Array(100_000)), fails("ENOSPC"));
    await host.mount({ source: "tmpfs", target, options: ["remount", "ro"], type: "tmpfs" });
    await assert.rejects(host.write(`${target}/g`, ""), fails("EROFS"));
    // Through a link in the path too.
    await host.symlink("t", `${dir}/alias`);
    await host.unmount(`${dir}/alias/with space`);
    await host.unmount(target);
    await host.unmount(`${dir}/none/none`);
    assert.equal((await host.mounts()).some((m) => m.target === target), false);
    await assert.rejects(
      host.mount({ source: "x", target, type: "tmpfs", options: ["size=bogus"] }),
      /^HostError: mount [^:]*with space: .*bad option/,
    );
  });
});

Deno.test("DenoHost mountBelow: mounts what is there, makes what is missing, follows no link", async () => {
  await within(async (host, dir) => {
    await host.mkdir(`${dir}/v/in`);
    await host.mkdir(`${dir}/secret`);
    await host.mkdir(`${dir}/sub`);
    await host.write(`${dir}/v/in/f`, "file");
    await host.symlink(`${dir}/secret`, `${dir}/v/evil`);
    await host.mountBelow({ root: `${dir}/v`, path: "in/f", target: `${dir}/sub/0` });
    assert.equal(await host.readText(`${dir}/sub/0`), "file");
    await host.mountBelow({ root: `${dir}/v`, path: "new/deep", target: `${dir}/sub/1`, mode: 0o777 });
    assert.equal((await host.stat(`${dir}/v/new/deep`))?.mode, 0o777);
    await host.write(`${dir}/sub/1/g`, "through");
    assert.equal(await host.readText(`${dir}/v/new/deep/g`), "through");
    for (const path of ["evil", "evil/x", "in/../../secret", "/secret"]) {
      await assert.rejects(
        host.mountBelow({ root: `${dir}/v`, path, target: `${dir}/sub/2` }),
        (e: unknown) => e instanceof HostError && /(ELOOP|ENOTDIR|EINVAL)/.test(e.errno),
        path,
      );
    }
    assert.equal((await host.mounts()).filter((m) => m.target.startsWith(dir)).length, 2);
  });
});

Deno.test("DenoHost watch: arms before the path is there, sees it replaced, ignores reads", async () => {
  await within(async (host, dir) => {
    const stop = new AbortController();
    const changes = host.watch(`${dir}/m/f`, stop.signal)[Symbol.asyncIterator]();
    await changes.next();
    await host.mkdir(`${dir}/m`);
    await changes.next();
    const until = async (text: string) => {
      while (await host.readText(`${dir}/m/f`).catch(() => "") !== text) await changes.next();
    };
    await host.write(`${dir}/m/f`, "1");
    await until("1");
    await host.write(`${dir}/m/f`, "2", { atomic: true });
    await until("2");
    await host.removeTree(`${dir}/m`);
    await host.mkdir(`${dir}/m`);
    await host.write(`${dir}/m/f`, "3");
    await until("3");
    // Drain what is late, then the abort must end the stream.
    stop.abort();
    for (let more = true; more;) more = !(await changes.next()).done;
  });
});

Deno.test("DenoHost watch: a directory, recursively", async () => {
  await within(async (host, dir) => {
    await host.mkdir(`${dir}/m/sub`);
    const stop = new AbortController();
    const changes = host.watch(`${dir}/m`, stop.signal)[Symbol.asyncIterator]();
    await changes.next();
    await host.write(`${dir}/m/sub/f`, "1");
    assert.equal((await changes.next()).done, false);
    stop.abort();
    for (let more = true; more;) more = !(await changes.next()).done;
  });
});

Deno.test("DenoHost run: output, input, exit code, abort, missing program", async () => {
  const host = createDenoHost();
  const cat = await host.run("/bin/sh", ["-c", "cat; echo err >&2; exit 3"], { stdin: "in", env: { A: "b" } });
  assert.deepEqual(cat, { code: 3, stdout: "in", stderr: "err\n" });
  await assert.rejects(host.run("/none/program", []), fails("ENOENT"));
  const stop = new AbortController();
  const asleep = host.run("/bin/sleep", ["100"], { signal: stop.signal });
  stop.abort();
  await assert.rejects(asleep, isAborted);
  assert.equal((await host.run("/bin/true", [], { stdin: "x".repeat(200_000) })).code, 0);
});

Deno.test("DenoHost lock, kill and capacity", async () => {
  await within(async (host, dir) => {
    const lock = await host.lock(`${dir}/lock`);
    assert.ok(lock);
    assert.equal(await host.lock(`${dir}/lock`), undefined);
    lock?.[Symbol.dispose]();
    const again = await host.lock(`${dir}/lock`);
    assert.ok(again);
    again?.[Symbol.dispose]();
    for (const pid of [0, -1, 1, NaN, 1.5, Deno.pid]) {
      assert.throws(() => host.kill(pid, "SIGKILL"), fails("EINVAL"), String(pid));
    }
    const child = new Deno.Command("/bin/sleep", { args: ["100"] }).spawn();
    host.kill(child.pid, "SIGKILL");
    assert.equal((await child.status).signal, "SIGKILL");
    host.kill(child.pid, "SIGTERM");
    const { memory, cpus } = await host.capacity();
    assert.ok(memory > 2 ** 20 && cpus >= 1);
  });
});

Deno.test("DenoHost under scoped permissions: procfs by a bind mount, links by ln, nothing else open", async () => {
  await within(async (host, dir) => {
    await host.mkdir(`${dir}/proc`);
    await host.mount({ source: "/proc", target: `${dir}/proc`, options: ["bind"] });
    const child = new Deno.Command("/bin/sleep", { args: ["100"] }).spawn();
    const script = `
      import { createDenoHost } from ${JSON.stringify(import.meta.resolve("./deno_host.ts"))};
      const dir = ${JSON.stringify(dir)};
      const host = createDenoHost({ procRoot: dir + "/proc" });
      host.kill(${child.pid}, "SIGHUP");
      host.kill(4194301, "SIGKILL");
      await host.mkdir(dir + "/w/a");
      await host.symlink("a", dir + "/w/l");
      const twice = await host.symlink("b", dir + "/w/l").catch((e) => e.errno);
      await host.mountBelow({ root: dir + "/w", path: "a/new", target: dir + "/t" });
      const mounted = (await host.mounts()).some((m) => m.target === dir + "/t");
      await host.unmount(dir + "/t");
      const link = await host.readLink(dir + "/w/l");
      await host.removeTree(dir + "/w");
      const outside = await host.readText("/etc/hostname").catch((e) => e.errno);
      const { cpus } = await host.capacity();
      const space = (await host.space(dir)).total > 0;
      console.log(JSON.stringify({ twice, mounted, link, outside, cpus: cpus > 0, space, gone: !(await host.lstat(dir + "/w")) }));
    `;
    const result = await host.run(Deno.execPath(), [
      "run",
      "--no-prompt",
      "--no-check",
      "--quiet",
      `--config=${new URL("../../deno.json", import.meta.url).pathname}`,
      `--allow-read=${dir}`,
      `--allow-write=${dir}`,
      "--allow-run=/usr/bin/mount,/usr/bin/umount,/usr/bin/ln,/usr/bin/kill",
      "--allow-sys=statfs",
      "-",
    ], { stdin: script }).finally(() => host.kill(child.pid, "SIGTERM"));
    assert.equal((await child.status).signal, "SIGHUP");
    assert.equal(result.code, 0, result.stderr);
    assert.deepEqual(JSON.parse(result.stdout), {
      twice: "EEXIST",
      mounted: true,
      link: "a",
      outside: "NOTCAPABLE",
      cpus: true,
      space: true,
      gone: true,
    });
  });
});

Deno.test("a FIFO that appears in a watched directory does not hold up the end of the watch", async () => {
  const dir = await Deno.makeTempDir();
  try {
    const abort = new AbortController();
    const changes = createDenoHost().watch(dir, abort.signal)[Symbol.asyncIterator]();
    await changes.next();
    await new Deno.Command("/usr/bin/mkfifo", { args: [`${dir}/pipe`] }).output();
    // By now the watcher's thread has most likely opened the FIFO, and hangs.
    abort.abort();
    assert.equal((await changes.next()).done, true);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("DenoHost open: reads in pieces, and goes on reading a file that was renamed; no FIFO", async () => {
  await within(async (host, dir) => {
    await host.write(`${dir}/f`, "0123456789");
    {
      using file = await host.open(`${dir}/f`);
      const into = new Uint8Array(4);
      assert.equal(await file.read(into, 8), 2);
      assert.deepEqual([...into.subarray(0, 2)], [0x38, 0x39]);
      await host.rename(`${dir}/f`, `${dir}/f.1`);
      await host.write(`${dir}/f`, "new");
      assert.equal(await file.read(into, 0), 4);
      assert.equal(await file.read(into, 10), 0);
      assert.equal((await file.info()).size, 10);
      assert.notEqual((await file.info()).ino, (await host.stat(`${dir}/f`))?.ino);
    }
    assert.equal((await host.run("/usr/bin/mkfifo", [`${dir}/pipe`])).code, 0);
    await assert.rejects(host.open(`${dir}/pipe`), fails("EINVAL"));
    await assert.rejects(host.open(`${dir}/none`), isMissing);
  });
});

Deno.test("DenoHost gzip: whole, with the mode of the source; what fails or is called off leaves nothing", async () => {
  await within(async (host, dir) => {
    const bytes = new Uint8Array(300_000).map((_, at) => at * at % 251);
    await host.write(`${dir}/a`, bytes, { mode: 0o640 });
    await host.write(`${dir}/a.gz`, "longer than nothing", { mode: 0o644 });
    await host.gzip(`${dir}/a`, `${dir}/a.gz`);
    const stream = new Blob([await Deno.readFile(`${dir}/a.gz`)]).stream().pipeThrough(new DecompressionStream("gzip"));
    assert.deepEqual(new Uint8Array(await new Response(stream).arrayBuffer()), bytes);
    assert.equal((await host.stat(`${dir}/a.gz`))?.mode, 0o640);
    await assert.rejects(host.gzip(dir, `${dir}/b.gz`), fails("EINVAL"));
    await assert.rejects(host.gzip(`${dir}/none`, `${dir}/b.gz`), fails("ENOENT"));
    await assert.rejects(host.gzip(`${dir}/a`, `${dir}/none/b.gz`), fails("ENOENT"));
    await assert.rejects(host.gzip(`${dir}/a`, `${dir}/b.gz`, AbortSignal.abort()), isAborted);
    const stop = new AbortController();
    const under = host.gzip(`${dir}/a`, `${dir}/b.gz`, stop.signal);
    stop.abort();
    await assert.rejects(under, isAborted);
    assert.equal(await host.lstat(`${dir}/b.gz`), undefined);
  });
});

Deno.test("directories that many make at once are made for all of them", () =>
  within(async (host, dir) => {
    for (let round = 0; round < 10; round++) {
      const paths = Array.from({ length: 40 }, (_, i) => `${dir}/${round}/a/b/${i % 4}`);
      await Promise.all(paths.map((path) => host.mkdir(path, { mode: 0o750 })));
    }
  }));

Deno.test("the tail of a file: no FIFO is waited for, and no link followed where that is asked for", async () => {
  const dir = await Deno.makeTempDir();
  try {
    const host = createDenoHost();
    await Deno.writeTextFile(`${dir}/f`, "0123456789");
    await Deno.symlink("f", `${dir}/l`);
    const made = await new Deno.Command("/usr/bin/mkfifo", { args: [`${dir}/p`] }).output();
    assert.equal(made.code, 0);
    const read = async (name: string, bytes: number, options?: { nofollow?: boolean }) =>
      new TextDecoder().decode(await host.readTail(`${dir}/${name}`, bytes, options));
    assert.deepEqual([await read("f", 3), await read("f", 30, { nofollow: true }), await read("f", 0)], [
      "789",
      "0123456789",
      "",
    ]);
    assert.equal(await read("l", 2), "89");
    await assert.rejects(read("l", 2, { nofollow: true }), { code: "Host", errno: "ELOOP" });
    for (const name of ["p", "."]) await assert.rejects(read(name, 2), { code: "Host" });
    await assert.rejects(read("p", 2), { errno: "EINVAL" });
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});

Deno.test("the kernel's log is read from now on, until it is called off; a machine without one says so", async () => {
  const dir = await Deno.makeTempDir();
  try {
    const { signal } = new AbortController();
    const none = createDenoHost({ kernelLog: `${dir}/none` }).kernelLog(signal)[Symbol.asyncIterator]();
    await assert.rejects(none.next(), { code: "Host", message: /kernelLog .*none/ });
    // A file is at its end at once, as a log in which nothing new is said.
    await Deno.writeTextFile(`${dir}/empty`, "");
    const stop = new AbortController();
    const lines = createDenoHost({ kernelLog: `${dir}/empty` }).kernelLog(stop.signal)[Symbol.asyncIterator]();
    const next = lines.next();
    stop.abort();
    assert.equal((await next).done, true);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
});
