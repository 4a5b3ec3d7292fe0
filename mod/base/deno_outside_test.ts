import assert from "@assert";
import { createDenoHost } from "./deno_host.ts";

Deno.test({
  name: "DenoHost outside of its paths: looks, makes directories and empty files, mounts; reads and writes nothing",
  ignore: Deno.uid() !== 0,
  async fn() {
    const host = createDenoHost();
    const dir = await Deno.makeTempDir();
    const own = `${dir}/own`;
    const out = `${dir}/outside`;
    try {
      await Deno.mkdir(`${own}/proc`, { recursive: true });
      await Deno.mkdir(`${own}/sys`);
      await Deno.mkdir(`${out}/volume`, { recursive: true });
      await Deno.symlink("volume", `${out}/link`);
      await Deno.writeTextFile(`${out}/secret`, "secret");
      await host.mount({ source: "/proc", target: `${own}/proc`, options: ["bind"] });
      await host.mount({ source: "/sys", target: `${own}/sys`, options: ["bind"] });
      const script = `
        import { createDenoHost } from ${JSON.stringify(import.meta.resolve("./deno_host.ts"))};
        const own = ${JSON.stringify(own)}, out = ${JSON.stringify(out)};
        const host = createDenoHost({ procRoot: own + "/proc", sysRoot: own + "/sys" });
        const errno = (attempt) => attempt.then(() => "done", (e) => e.errno);
        const answers = {
          secret: (await host.stat(out + "/secret"))?.size,
          missing: (await host.stat(out + "/missing")) ?? "none",
          link: (await host.lstat(out + "/link"))?.kind,
          target: await host.readLink(out + "/link"),
          real: await host.realPath(out + "/link"),
          device: (await host.stat("/dev/null"))?.kind,
          kernel: (await host.stat("/proc/self"))?.kind,
          room: (await host.space(out)).total > 0,
          sys: (await host.readDir("/sys/class/net")).length > 0,
          cpus: (await host.readText("/sys/devices/system/cpu/online")).length > 0,
          made: await errno(host.mkdir(out + "/a/b", { mode: 0o755 })),
          refusedDirectory: await errno(host.mkdir(out + "/secret/b")),
          touched: await errno(host.write(out + "/empty", "", { mode: 0o644 })),
          kept: await errno(host.write(out + "/secret", "")),
          mounted: await errno(host.mountBelow({ root: out + "/volume", path: "sub", target: own + "/t" })),
          read: await errno(host.readText(out + "/secret")),
          written: await errno(host.write(out + "/secret", "x")),
          listed: await errno(host.readDir(out)),
          removed: await errno(host.remove(out + "/secret")),
          renamed: await errno(host.rename(own + "/t", out + "/t")),
          throughProc: await errno(host.write(own + "/proc/self/root" + out + "/x", "x")),
        };
        await host.unmount(own + "/t");
        console.log(JSON.stringify(answers));
      `;
      const { code, stdout, stderr } = await host.run(Deno.execPath(), [
        ...["run", "--no-prompt", "--no-check", "--quiet"],
        `--config=${new URL("../../deno.json", import.meta.url).pathname}`,
        `--allow-read=${own}`,
        `--allow-write=${own}/t,${own}/proc/self/fd`,
        "--allow-run=/usr/bin/mount,/usr/bin/umount,/usr/bin/mkdir,/usr/bin/touch",
        "--allow-sys=statfs",
        "-",
      ], { stdin: script });
      assert.equal(code, 0, stderr);
      assert.deepEqual(JSON.parse(stdout), {
        secret: 6,
        missing: "none",
        link: "symlink",
        target: "volume",
        real: `${out}/volume`,
        device: "charDevice",
        kernel: "directory",
        room: true,
        sys: true,
        cpus: true,
        made: "done",
        refusedDirectory: "ENOTDIR",
        touched: "done",
        kept: "done",
        mounted: "done",
        read: "NOTCAPABLE",
        written: "NOTCAPABLE",
        listed: "NOTCAPABLE",
        removed: "NOTCAPABLE",
        renamed: "NOTCAPABLE",
        throughProc: "NOTCAPABLE",
      });
      assert.equal(await Deno.readTextFile(`${out}/secret`), "secret");
      assert.equal((await Deno.stat(`${out}/empty`)).size, 0);
      assert.ok((await Deno.stat(`${out}/volume/sub`)).isDirectory);
    } finally {
      for (const name of ["t", "sys", "proc"]) await host.unmount(`${own}/${name}`);
      await Deno.remove(dir, { recursive: true });
    }
  },
});
