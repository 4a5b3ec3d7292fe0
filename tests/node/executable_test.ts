import { DatabaseSync } from "node:sqlite";
import assert from "@assert";
import { makeExecutable } from "../../scripts/compile.ts";
import { attempt, run } from "../../scripts/lib/command.ts";
import { exists, namesIn, remove, repository } from "../../scripts/lib/files.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { agentConfig } from "../../scripts/node/agent_node.ts";
import { unmountBelow } from "../../scripts/node/mounts.ts";
import { withNode } from "./harness.ts";

const program = `${repository}/dist/kubelet`;
const examples = `${repository}/examples/pods`;

interface Place {
  readonly dir: string;
  readonly cache: string;
  readonly env: Record<string, string>;
}

/** A cache and a run directory of the test's own; mounts and files are removed after it. */
async function within(test: (place: Place) => Promise<void>): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "denolet-exe-" });
  await Deno.chmod(dir, 0o755);
  const cache = `${dir}/cache`;
  try {
    await test({ dir, cache, env: { DENOLET_CACHE: cache, DENOLET_RUN: `${dir}/run`, NO_COLOR: "1" } });
  } finally {
    await unmountBelow(dir);
    await remove(dir);
  }
}

/** The programs whose compiled code is kept in a cache. */
async function compiled(cache: string): Promise<string[]> {
  const [build = ""] = await unpacked(cache);
  using kept = new DatabaseSync(`${cache}/${build}/deno/v8_code_cache_v2`, { readOnly: true });
  const files = kept.prepare("select specifier from codecache where specifier like 'file:%'").all();
  return files.map(({ specifier }) => String(specifier).replace(/^.*\//, "")).sort();
}

/** The directories that were unpacked into a cache, and whatever else is in it. */
const unpacked = (cache: string) => namesIn(cache);

/** Stands for an operation that asks for all paths at once. */
const everything = "everything";

/** What the run-time's audit has of paths that the flags do not cover. */
function triedOutside(audited: string, flags: string): { read: string[]; write: string[] } {
  const lines = audited.trim().split("\n");
  const records = lines.map((line): { permission: string; value: string | null } => JSON.parse(line));
  const outside = (kind: string) => {
    const allowed = new RegExp(`^--allow-${kind}=(.*)$`, "m").exec(flags)?.[1]?.split(",") ?? [];
    const covered = (path: string) => allowed.some((one) => path === one || path.startsWith(`${one}/`));
    const paths = records.filter(({ permission }) => permission === kind).map(({ value }) => value ?? everything);
    return [...new Set(paths.filter((path) => !covered(path)))].sort();
  };
  return { read: outside("read"), write: outside("write") };
}

Deno.test("the executable", async (t) => {
  // `deno compile` has no cache and no plan: what is tested here is the launcher
  assert.equal(await makeExecutable("launcher"), "launcher");

  await t.step(
    "--version and --help with a fresh cache, and again with a warm one",
    () =>
      within(async ({ cache, env }) => {
        for (let turn = 0; turn < 2; turn++) {
          assert.match(await run([program, "--version"], { env }), /^Kubernetes v1\./);
          assert.match(await run([program, "--help"], { env }), /--root-dir/);
          assert.match(await run([program, "explain", "config", "maxPods"], { env }), /110/);
        }
        assert.ok(!await exists(env.DENOLET_RUN ?? ""), "nothing is mounted just to tell something");
        const [only = "", ...more] = await unpacked(cache);
        assert.match(only, /^kubelet-[0-9a-f]{32}$/);
        assert.deepEqual(more, []);
      }),
  );

  await t.step(
    "one --version leaves the agent's compiled code: the first agent is as small as any later one",
    () =>
      within(async ({ cache, env }) => {
        await run([program, "--version"], { env });
        assert.deepEqual(await compiled(cache), ["kubelet.js", "plan.js"]);
      }),
  );

  await t.step("several first starts at once all succeed, and leave one copy", () =>
    within(async ({ cache, env }) => {
      const ended = await Promise.all([1, 2, 3].map(() => attempt([program, "--version"], { env })));
      for (const { code, stderr } of ended) assert.equal(code, 0, stderr);
      assert.equal((await unpacked(cache)).length, 1);
    }));

  await t.step(
    "a broken cache is made anew: cut file, writable file, link, wrong owner, file in its place",
    () =>
      within(async ({ dir, cache, env }) => {
        await run([program, "--version"], { env });
        const [name = ""] = await unpacked(cache);
        const at = `${cache}/${name}`;
        const breaks: [string, () => Promise<void>][] = [
          ["cut", () => Deno.truncate(`${at}/kubelet`, 1000)],
          ["missing", () => Deno.remove(`${at}/plan.js`)],
          ["not executable", () => Deno.chmod(`${at}/kubelet`, 0o444)],
          ["writable by others", () => Deno.chmod(`${at}/kubelet.js`, 0o666)],
          ["another's", () => Deno.chown(`${at}/kubelet.js`, 65534, 65534)],
          ["a link", async () => {
            await Deno.rename(`${at}/kubelet.js`, `${dir}/elsewhere.js`);
            await Deno.symlink(`${dir}/elsewhere.js`, `${at}/kubelet.js`);
          }],
          ["a file in place of the directory", async () => {
            await Deno.remove(at, { recursive: true });
            await Deno.writeTextFile(at, "");
          }],
        ];
        for (const [what, harm] of breaks) {
          await harm();
          const { code, stderr, stdout } = await attempt([program, "--version"], { env });
          assert.equal(code, 0, `${what}: ${stderr}`);
          assert.match(stdout, /^Kubernetes v1\./, what);
          assert.deepEqual(await unpacked(cache), [name], what);
        }
      }),
  );

  await t.step(
    "a cache that others could change is refused, with the remedy",
    () =>
      within(async ({ dir, cache, env }) => {
        await Deno.mkdir(cache);
        await Deno.chmod(cache, 0o777);
        const refused = async (what: RegExp) => {
          const { code, stderr } = await attempt([program, "--version"], { env });
          assert.equal(code, 1);
          assert.match(stderr, what);
        };
        await refused(/others may write to it.*DENOLET_CACHE/);
        await Deno.chmod(cache, 0o755);
        await Deno.chown(cache, 65534, 65534);
        await refused(/others may write to it, or own it/);
        await Deno.remove(cache);
        await Deno.mkdir(`${dir}/other`);
        await Deno.symlink(`${dir}/other`, cache);
        await refused(/it is not a directory/);
        await Deno.remove(cache);
        await Deno.chmod(dir, 0o777);
        await refused(/others may write to .* above it/);
        await Deno.chmod(dir, 0o755);
        assert.deepEqual(await namesIn(`${dir}/other`), []);
        const { code, stderr } = await attempt([program, "--version"], { env: { ...env, DENOLET_CACHE: "here" } });
        assert.deepEqual([code, /not an absolute path/.test(stderr)], [1, true]);
      }),
  );

  await t.step(
    "without root: --version, --help and explain work, with nothing mounted and nothing writable",
    () =>
      within(async ({ dir }) => {
        const home = `${dir}/home`;
        await Deno.mkdir(home);
        await Deno.chown(home, 65534, 65534);
        const before = await Deno.readTextFile("/proc/self/mounts");
        const as = (...args: string[]) => [
          ...["setpriv", "--reuid=65534", "--regid=65534", "--clear-groups"],
          ...["env", "-i", `HOME=${home}`, program, ...args],
        ];
        const user = async (...args: string[]) => await run(as(...args), { cwd: "/" });
        assert.match(await user("--version"), /^Kubernetes v1\./);
        assert.match(await user("--help"), /--root-dir/);
        assert.match(await user("explain", "config", "maxPods"), /110/);
        const may = (await user("--denolet-permissions", "--version")).split("\n");
        assert.ok(may.some((line) => line.startsWith("--allow-read=")), may.join("\n"));
        assert.ok(!may.some((line) => line.startsWith("--allow-write")), may.join("\n"));
        for (const words of [["--root-dir", `${home}/root`], ["check"], ["ps"], ["logs", "web"], ["explain", "web"]]) {
          const refused = await attempt(as(...words), { cwd: "/" });
          assert.equal(refused.code, 1, words.join(" "));
          const said = refused.stdout + refused.stderr;
          assert.match(said, /\bas root\b/, words.join(" "));
          assert.doesNotMatch(said, /--allow-|NotCapable/, words.join(" "));
        }
        const own = (text: string) => text.split("\n").filter((line) => line.includes(dir));
        assert.deepEqual(own(await Deno.readTextFile("/proc/self/mounts")), own(before));
      }),
  );

  await t.step(
    "--denolet-permissions tells what was made and every flag; a configuration adds paths only",
    () =>
      within(async ({ dir, env }) => {
        const facts = { root: `${dir}/a`, endpoint: `unix://${dir}/none.sock`, cgroup: "/", healthzPort: 0 };
        const config = { ...agentConfig(facts), staticPodPath: `${dir}/x,--allow-all` };
        await Deno.writeTextFile(`${dir}/c.json`, JSON.stringify(config));
        const lines = (await run([program, "--denolet-permissions", "--config", `${dir}/c.json`], { env })).split("\n");
        assert.match(lines[0] ?? "", /^launcher, Deno \d/);
        const write = lines.find((line) => line.startsWith("--allow-write="));
        assert.ok(write?.includes(`${dir}/x,,--allow-all`), write);
        assert.deepEqual(lines.filter((line) => /^--allow-(all|read|write|run|ffi)$/.test(line)), []);
      }),
  );

  await t.step(
    "it is one process, called kubelet, that gets signals, arguments and environment",
    () =>
      within(async ({ dir, env }) => {
        const facts = { root: dir, endpoint: `unix://${dir}/none.sock`, cgroup: "/", healthzPort: 0 };
        await Deno.writeTextFile(`${dir}/c.json`, JSON.stringify(agentConfig(facts)));
        await run([program, "--version"], { env });
        const manager = Deno.listenDatagram({ transport: "unixpacket", path: `${dir}/notify` });
        for (const signal of ["SIGTERM", "SIGINT"] as const) {
          const child = new Deno.Command(program, {
            args: ["--config", `${dir}/c.json`, "--root-dir", `${dir}/root`],
            env: { ...env, NOTIFY_SOCKET: `${dir}/notify` },
            stdin: "null",
            stdout: "null",
            stderr: "piped",
          }).spawn();
          let said = "";
          const reading = (async () => {
            for await (const text of child.stderr.pipeThrough(new TextDecoderStream())) said += text;
          })();
          try {
            await waitFor("the first words", () => said.includes("waiting for the container runtime"), {
              within: 30_000,
            });
            assert.equal((await Deno.readTextFile(`/proc/${child.pid}/comm`)).trim(), "kubelet");
            assert.match(said, new RegExp(`pid=${child.pid}\\b`));
          } catch (thrown) {
            throw new Error(said, { cause: thrown });
          } finally {
            child.kill(signal);
            await reading;
          }
          assert.equal((await child.status).code, 0, said);
          assert.match(said, /ended; containers keep running/);
          assert.doesNotMatch(said, /NotCapable|Requires .* access/, said);
        }
        manager.close();
      }),
  );
});

Deno.test("the executable runs the pods of examples/pods, and nothing that it does is refused", async () => {
  await makeExecutable("launcher");
  const cache = await Deno.makeTempDir({ prefix: "denolet-exe-cache-" });
  await Deno.chmod(cache, 0o755);
  try {
    const audit = `${cache}/audit.jsonl`;
    const systemd = Deno.listenDatagram({ transport: "unixpacket", path: `${cache}/notify` });
    const heard: string[] = [];
    const hearing = (async () => {
      for await (const [message] of systemd) heard.push(new TextDecoder().decode(message));
    })();
    const env = {
      DENOLET_CACHE: `${cache}/c`,
      DENO_AUDIT_PERMISSIONS: audit,
      NOTIFY_SOCKET: `${cache}/notify`,
      WATCHDOG_USEC: "1000000",
    };
    await Deno.mkdir(`${cache}/manifests`);
    for (const name of await namesIn(examples)) {
      // host paths that are not there yet
      const text = (await Deno.readTextFile(`${examples}/${name}`)).replaceAll("/tmp/denolet-example", `${cache}/made`);
      await Deno.writeTextFile(`${cache}/manifests/${name}`, text);
    }
    const options = { name: "t-exe", program, env, manifests: `${cache}/manifests`, flags: ["--v=4"], start: false };
    await withNode(options, async ({ agent }) => {
      agent.start(["--runonce"]);
      assert.equal(await agent.exited(), 0, "every example became ready, or did what it is meant to do");
      const audited = await Deno.readTextFile(audit); // each start begins the file anew
      agent.start();
      await agent.healthy();
      await waitFor("systemd to hear of it", () => heard.filter((one) => one === "WATCHDOG=1").length > 1, {
        within: 30_000,
      });
      assert.ok(await agent.drain());
      await agent.kill();
      await waitFor("systemd to hear of the end", () => heard.at(-1) === "STOPPING=1", { within: 10_000 });
      assert.equal(heard[0], "READY=1");
      const log = await Deno.readTextFile(agent.paths.log);
      const refused = /NotCapable|Requires \w+ access|started without that right/;
      assert.deepEqual(log.split("\n").filter((line) => refused.test(line)), []);
      assert.ok(await exists(`${cache}/made/date`) && await exists(`${cache}/made-file`));
      const asked = ["--config", agent.paths.config, "--root-dir", agent.paths.kubelet];
      const may = await run([program, "--denolet-permissions", ...asked], {
        env: { DENOLET_CACHE: `${cache}/c`, DENOLET_RUN: agent.paths.run },
      });
      const tried = triedOutside(audited, may);
      // Looked at first as any path is, and then, since that is refused, only for what it is (docs/permissions.md).
      const volumes = [`${cache}/made`, `${cache}/made-file`, "/dev/null", "/usr/share"];
      const aboveManifests = agent.paths.root;
      // making a link asks for everything, first to write, and is then done by a program
      assert.deepEqual(tried.read, [aboveManifests, ...volumes].sort());
      assert.deepEqual(tried.write, [`${cache}/made`, `${cache}/made-file`, everything].sort());
    });
    systemd.close();
    await hearing;
  } finally {
    await remove(cache);
  }
});
