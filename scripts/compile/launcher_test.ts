import assert from "@assert";
import { attempt, run } from "../lib/command.ts";
import { namesIn, remove, repository } from "../lib/files.ts";
import { bakedHeader } from "./flags.ts";

const digest = "0".repeat(32);
const compiler = (await attempt(["gcc", "--version"]).catch(() => ({ code: 1 }))).code === 0;

/** The launcher with nothing behind it: what it does before it unpacks can be tried with that. */
async function launcher(dir: string): Promise<string> {
  const baked = {
    digest,
    made: "m",
    files: [{ name: "kubelet", size: 1 }],
    planFlags: [],
    runFlags: [],
    environment: {},
  };
  await Deno.writeTextFile(`${dir}/baked.h`, bakedHeader(baked));
  const flags = ["-std=gnu11", "-Wall", "-Wextra", "-Werror", "-I", dir];
  await run(["gcc", ...flags, "-o", `${dir}/launcher`, `${repository}/scripts/compile/launcher.c`]);
  return `${dir}/launcher`;
}

Deno.test({
  name: "launcher: cleaning removes other builds that are old and that nothing runs from, and nothing else",
  ignore: !compiler,
  async fn() {
    const dir = await Deno.makeTempDir({ prefix: "denolet-launcher-" });
    let child: Deno.ChildProcess | undefined;
    try {
      const program = await launcher(dir);
      const cache = `${dir}/cache`;
      const env = { DENOLET_CACHE: cache };
      const clean = (...words: string[]) => attempt([program, "--denolet-clean", ...words], { env });
      assert.deepEqual((await clean()).code, 0, "there is no cache yet");

      const build = (letter: string) => `kubelet-${letter.repeat(32)}`;
      const [old, used, fresh, own] = [build("a"), build("b"), build("c"), `kubelet-${digest}`];
      const others = ["images", "kubelet-1.36", "containerd2-runc-1.3.3"];
      const daysAgo = (days: number) => new Date(Date.now() - days * 86_400_000);
      for (const name of [old, used, fresh, own, ...others]) {
        await Deno.mkdir(`${cache}/${name}/deno`, { recursive: true });
        await Deno.copyFile("/bin/sleep", `${cache}/${name}/kubelet`);
        await Deno.utime(`${cache}/${name}`, daysAgo(2), daysAgo(name === fresh ? 0.9 : 2));
      }
      child = new Deno.Command(`${cache}/${used}/kubelet`, { args: ["600"], stdin: "null" }).spawn();
      // the kernel shows its program only once it has begun
      while (!(await Deno.realPath(`/proc/${child.pid}/exe`)).endsWith(`${used}/kubelet`)) await Promise.resolve();

      const { code, stdout, stderr } = await clean();
      assert.deepEqual([code, stdout, stderr], [0, `removed ${cache}/${old}\n`, ""]);
      assert.deepEqual((await namesIn(cache)).sort(), [used, fresh, own, ...others].sort());

      assert.equal((await clean("60")).stdout, `removed ${cache}/${fresh}\n`);
      assert.deepEqual((await namesIn(cache)).sort(), [used, own, ...others].sort());
      child.kill("SIGKILL");
      await child.status;
      child = undefined;
      assert.equal((await clean("60")).stdout, `removed ${cache}/${used}\n`);

      for (const words of [["soon"], ["-1"], ["1", "2"], [""]]) {
        const refused = await clean(...words);
        assert.equal(refused.code, 1, words.join());
        assert.match(refused.stderr, /^Error: --denolet-clean/, words.join());
      }
      await Deno.chmod(cache, 0o777);
      assert.match((await clean()).stderr, /others may write to it/);
    } finally {
      child?.kill("SIGKILL");
      await child?.status;
      await remove(dir);
    }
  },
});
