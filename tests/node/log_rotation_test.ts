import assert from "@assert";
import { ContainerState } from "../../cri/gen/runtime_pb.ts";
import { namesIn } from "../../scripts/lib/files.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { signal } from "../../scripts/node/processes.ts";
import { versions } from "./harness.ts";
import { appears, Observer, patience, pod, shell, withObserver } from "./support.ts";

const limit = 64 * 1024;
const maxFiles = 4;

/** Writes numbered lines until /tmp/stop is there, then says in /tmp/count how many it wrote. */
const chatty = pod("chatty", {
  containers: [
    shell(
      "main",
      `trap 'exit 0' TERM; i=0
      while [ ! -e /tmp/stop ]; do
        n=0; while [ $n -lt 200 ]; do n=$((n+1)); i=$((i+1)); echo "$i of a hundred or so bytes that fill the log up"; done
        sleep 0.1
      done
      echo $i >/tmp/count
      sleep 86400 & wait $!`,
    ),
    shell("quiet", "echo hello; trap 'exit 0' TERM; sleep 86400 & wait $!"),
  ],
});

/** A log file's text, compressed or not. */
async function textOf(path: string): Promise<string> {
  const bytes = await Deno.readFile(path);
  if (!path.endsWith(".gz")) return new TextDecoder().decode(bytes);
  return await new Response(new Blob([bytes]).stream().pipeThrough(new DecompressionStream("gzip"))).text();
}

/** The numbers of all lines in the log's files, oldest first. */
async function numbers(dir: string): Promise<number[]> {
  const all: number[] = [];
  const names = (await namesIn(dir)).toSorted();
  // The log itself sorts before its rotated files, and is newer than they are.
  for (const name of [...names.filter((one) => one !== "0.log"), "0.log"]) {
    for (const line of (await textOf(`${dir}/${name}`)).split("\n")) {
      if (line !== "") all.push(Number(line.split(" ")[3]));
    }
  }
  return all;
}

function gaps(all: readonly number[]): string[] {
  return all.slice(1).flatMap((one, at) => one === (all[at] ?? 0) + 1 ? [] : [`${all[at]} → ${one}`]);
}

/** The reasons of the calls that had a log opened anew, by container. */
async function reopened(seen: Observer): Promise<string[]> {
  const journal = await Deno.readTextFile(`${seen.node.agent.paths.kubelet}/journal.jsonl`);
  return journal.split("\n").filter((line) => line.includes('"ReopenContainerLog"'))
    .map((line) => JSON.parse(line) as { container: string; reason: string; error?: string })
    .map((record) => `${record.container}: ${record.reason}${record.error ? ` ${record.error}` : ""}`);
}

for (const version of versions) {
  Deno.test(`logs are rotated on containerd ${version}`, async (t) => {
    await withObserver({
      name: `lr-${version}`,
      containerd: version,
      config: { containerLogMaxSize: "64Ki", containerLogMaxFiles: maxFiles, containerLogMonitorInterval: "3s" },
    }, async (seen) => {
      const { agent } = seen.node;
      await agent.putManifest("chatty.yaml", chatty);
      await seen.ready("chatty");
      const podDir = `${agent.paths.logs}/default_${seen.full("chatty")}_${await seen.uid("chatty")}`;
      const dir = `${podDir}/main`;
      const rotated = async () => (await namesIn(dir)).filter((name) => name !== "0.log").toSorted();

      await t.step(
        "a log that grows too large gets its time as name, and is compressed at the next rotation",
        async () => {
          const [first] = await waitFor("the first rotation", async () => {
            const names = await rotated();
            return names.length > 0 ? names : undefined;
          }, { within: patience });
          assert.match(first ?? "", /^0\.log\.\d{8}-\d{6}$/);
          assert((await Deno.stat(`${dir}/${first}`)).size >= limit);
          await appears(`${dir}/${first}.gz`);
          assert.equal(((await Deno.stat(`${dir}/${first}.gz`)).mode ?? 0) & 0o777, 0o640);
        },
      );

      await t.step("as many files as allowed are kept; what a container writes is in one of them, once", async () => {
        await waitFor("a file to be given up", async () => {
          const calls = await reopened(seen);
          return calls.length > maxFiles;
        }, { within: patience });
        await seen.out("chatty", "touch /tmp/stop");
        const written = Number(
          await waitFor("the last line", async () => {
            const { out, code } = await seen.exec("chatty", "cat /tmp/count");
            return code === 0 && out !== "" ? out : undefined;
          }, { within: patience }),
        );
        await waitFor("the last rotation", async () => (await Deno.stat(`${dir}/0.log`)).size < limit, {
          within: patience,
        });
        const names = await rotated();
        assert.equal(names.length, maxFiles - 1);
        assert.deepEqual(names.map((name) => /^0\.log\.\d{8}-\d{6}(\.gz)?$/.exec(name)?.[1]), [
          ".gz",
          ".gz",
          undefined,
        ]);
        const all = await numbers(dir);
        assert.deepEqual(gaps(all), []);
        assert.equal(all.at(-1), written);
        assert((all[0] ?? 0) > 1, "the oldest lines are gone");
      });

      await t.step("a log that is small stays, and each call had its reason", async () => {
        assert.deepEqual(await namesIn(`${podDir}/quiet`), ["0.log"]);
        assert.deepEqual([...new Set(await reopened(seen))], ["main: LogRotation"]);
      });

      await t.step("an agent that was killed in the middle of a rotation takes it to its end", async () => {
        await agent.removeManifest("chatty.yaml");
        await seen.nothingLeft();
        await agent.putManifest("chatty.yaml", chatty);
        await seen.ready("chatty");
        await agent.kill("SIGKILL");
        const dir = `${agent.paths.logs}/default_${seen.full("chatty")}_${await seen.uid("chatty")}/main`;
        await Deno.rename(`${dir}/0.log`, `${dir}/0.log.20200101-000000`);
        agent.start();
        await agent.healthy();
        await appears(`${dir}/0.log`);
        await appears(`${dir}/0.log.20200101-000000.gz`);
        await seen.out("chatty", "touch /tmp/stop");
        await waitFor("the last line", async () => (await seen.exec("chatty", "cat /tmp/count")).code === 0, {
          within: patience,
        });
        const all = await waitFor("a look without a rotation", async () => {
          const [before, all, after] = [await reopened(seen), await numbers(dir), await reopened(seen)];
          return before.length === after.length && (await Deno.stat(`${dir}/0.log`)).size < limit ? all : undefined;
        }, { within: patience });
        assert.deepEqual(gaps(all), []);
        assert.equal(all.at(-1), Number(await seen.out("chatty", "cat /tmp/count")));
        assert((await reopened(seen)).includes("main: LogMissing"));
      });

      await t.step("the log of a container that ended meanwhile is found again", async () => {
        const dir = `${agent.paths.logs}/default_${seen.full("chatty")}_${await seen.uid("chatty")}/quiet`;
        const { info } = await seen.detail((await seen.running("chatty", "quiet")).id);
        await agent.kill("SIGKILL");
        await Deno.rename(`${dir}/0.log`, `${dir}/0.log.20200101-000000`);
        assert(signal(info.pid, "SIGKILL"));
        await waitFor("its end", async () => {
          const [first] = await seen.containers("chatty", "quiet");
          return first?.state === ContainerState.CONTAINER_EXITED;
        }, { within: patience });
        agent.start();
        await agent.healthy();
        await appears(`${dir}/1.log`);
        await appears(`${dir}/0.log`);
        assert.deepEqual(await seen.log("chatty", "quiet"), ["hello"]);
      });

      await t.step("rotated files go with their pod", async () => {
        await agent.removeManifest("chatty.yaml");
        await seen.nothingLeft();
      });
    });
  });
}
