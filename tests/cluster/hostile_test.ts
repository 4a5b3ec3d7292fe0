import assert from "@assert";
import { namesIn } from "../../scripts/lib/files.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { freePort } from "../../scripts/node/agent_node.ts";
import { box, shell } from "../node/support.ts";
import { type ClusterNode, withClusterNode } from "./harness.ts";
import { Kubectl } from "./kubectl.ts";
import { ClusterView, patience } from "./support.ts";

/** Connections that nobody uses, opened at once; the agent keeps a tenth of them. */
const idleCount = 10_000;
const idleKept = 1000;
/** Files that the agent may have open more than before: what it was doing just then. */
const slack = 25;

/** The status and body of a request whose path goes out as it is; status 0 when there was no answer. */
type Ask = (path: string, ...more: string[]) => Promise<{ status: number; body: string }>;

/** Asks at an address, with a certificate of the cluster's authority. HTTP/1.1: curl's HTTP/2 takes no long headers. */
function asking(base: string, { dir }: ClusterNode["plane"], who: string, ...trust: string[]): Ask {
  const fixed = ["-sS", "-m", "20", "--http1.1", "--path-as-is", "-w", "\n%{http_code}", ...trust];
  const pair = ["--cert", `${dir}/${who}.crt`, "--key", `${dir}/${who}.key`];
  return async (path, ...more) => {
    const { stdout } = await new Deno.Command("curl", {
      args: [...fixed, ...pair, ...more, `${base}${path}`],
      stdout: "piped",
      stderr: "null",
    }).output();
    const text = new TextDecoder().decode(stdout);
    const at = text.lastIndexOf("\n");
    return { status: Number(text.slice(at + 1)), body: text.slice(0, at) };
  };
}

/** Runs kubectl, and kills it in the middle: its connections end as they are. */
async function cutOff(kubectl: Kubectl, args: readonly string[], begun: (text: string) => boolean): Promise<void> {
  const [program = "", ...rest] = kubectl.command(args);
  const child = new Deno.Command(program, { args: rest, stdin: "piped", stdout: "piped", stderr: "null" }).spawn();
  let text = "";
  const reader = child.stdout.pipeThrough(new TextDecoderStream()).getReader();
  while (!begun(text)) {
    const { done, value } = await reader.read();
    assert(!done, `kubectl ${args.join(" ")} ended by itself: ${text}`);
    text += value;
  }
  child.kill("SIGKILL");
  await Promise.all([reader.cancel(), child.stdin.close().catch(() => {}), child.status]);
}

/** Connections of which every other says `hello` and then nothing, the rest nothing at all, until disposed of. */
async function crowd(port: number, hello: readonly number[]): Promise<Disposable> {
  const connections: Deno.TcpConn[] = [];
  const close = () => {
    for (const connection of connections) connection.close();
  };
  try {
    for (let n = 0; n < idleCount; n++) {
      const connection = await Deno.connect({ hostname: "127.0.0.1", port });
      connections.push(connection);
      // The other end may have closed it for those behind it.
      if (n % 2 === 1) await connection.write(new Uint8Array(hello)).catch(() => {});
    }
  } catch (thrown) {
    close();
    throw thrown;
  }
  return { [Symbol.dispose]: close };
}

Deno.test("what hostile clients do to a node, through the API server and past it", async (t) => {
  const port = freePort();
  await withClusterNode({ name: "hostile", config: { port } }, async (member) => {
    const { agent } = member;
    const view = new ClusterView(member);
    const kubectl = await Kubectl.of(member.plane, patience);
    const { plane } = member;
    const proxied = asking(
      `${plane.server}/api/v1/nodes/hostile/proxy`,
      plane,
      "admin",
      "--cacert",
      `${plane.dir}/ca.crt`,
    );
    const direct = asking(`https://127.0.0.1:${port}`, plane, "apiserver-kubelet-client", "-k");
    const ways = Object.entries({ proxied, direct });
    const openFiles = async () => (await namesIn(`/proc/${agent.pid}/fd`)).length;
    await view.nodeCondition("Ready", "True");
    await view.createPod("p", {
      containers: [box("main"), shell("talks", "while :; do echo tick; sleep 0.2; done")],
    });
    await view.ready("p");
    for (const [way, ask] of ways) assert.equal((await ask("/healthz")).body, "ok", way);
    const pid = agent.pid;
    const before = await openFiles();

    /** The agent is the same, is well, serves, keeps its pod, and has no more files open than before. */
    const unharmed = async () => {
      await agent.healthy();
      assert.equal(agent.pid, pid);
      assert.deepEqual(await proxied("/healthz"), { status: 200, body: "ok" });
      let open = 0;
      await waitFor("the agent's files to be closed", async () => {
        open = await openFiles();
        return open <= before + slack;
      }, { within: patience }).catch((thrown) => assert.fail(`${thrown}: ${open} are open, ${before} were`));
      const statuses = (await view.pod("p"))?.status?.containerStatuses ?? [];
      assert.deepEqual(statuses.map(({ ready, restartCount }) => [ready, restartCount]), [[true, 0], [true, 0]]);
    };

    await t.step("path tricks reach no file and no handler of another path", async () => {
      const up = ["../..", "..%2f..", "%2e%2e/%2e%2e", "%252e%252e%252f", "..%5c..", "%c0%ae%c0%ae/", "..%00/.."];
      const ends = ["etc/passwd", "etc%2fpasswd"];
      const roots = ["logs", "containerLogs", "exec", "attach", "portForward", "run", "cp"];
      const paths = [
        ...roots.flatMap((root) => up.flatMap((dots) => ends.map((end) => `/${root}/${dots}/${end}`))),
        `/logs/${"a/".repeat(3000)}`,
        `/logs/${"x".repeat(5000)}`,
        "/logs/%00",
        "/containerLogs/default/p/..%2f..%2fetc%2fpasswd",
        "/containerLogs/default/%F0%9F%92%A9/main",
        "/containerLogs/__proto__/constructor/toString",
      ];
      for (const [way, ask] of ways) {
        for (const path of paths) {
          const { status, body } = await ask(path);
          const seen = `${way} ${path}: ${status} ${body.slice(0, 200)}`;
          assert(!/^root:/m.test(body), seen);
          assert(status >= 300, seen);
        }
      }
      await unharmed();
    });

    await t.step("huge queries and headers, and methods that nobody serves", async () => {
      const logs = "/containerLogs/default/p/talks?tailLines=1";
      for (const [way, ask] of ways) {
        const long = await ask(`${logs}${"&tailLines=x".repeat(8000)}`);
        assert.deepEqual([long.status, long.body], [200, "tick\n"], way);
        // Some part on the way may refuse it, but must say so.
        const header = await ask("/healthz", "-H", `X-Large: ${"a".repeat(100_000)}`);
        assert(header.status === 200 || header.status === 431, `${way}: ${header.status}`);
        for (const method of ["PUT", "DELETE", "PATCH", "OPTIONS", "TRACE", "BREW"]) {
          const { status } = await ask(logs, "-X", method);
          assert(status >= 400, `${way} ${method}: ${status}`);
        }
      }
      await unharmed();
    });

    await t.step("clients that are gone in the middle of logs, exec, attach and port-forward", async () => {
      for (let times = 0; times < 3; times++) {
        await cutOff(kubectl, ["logs", "-f", "p", "-c", "talks"], (text) => text.includes("tick"));
        await cutOff(kubectl, ["attach", "p", "-c", "talks"], (text) => text.includes("tick"));
        const line = "while echo on; do sleep 0.1; done";
        await cutOff(kubectl, ["exec", "-i", "p", "-c", "main", "--", "sh", "-c", line], (text) => text.includes("on"));
        await cutOff(kubectl, ["port-forward", "p", ":80"], (text) => text.includes("Forwarding"));
      }
      await unharmed();
    });

    await t.step("10,000 connections to either port that say nothing, or never end their handshake", async () => {
      const hello = [0x16, 3, 1, 2, 0, 1, 0];
      for (const where of [port, agent.healthzPort]) {
        {
          using _ = await crowd(where, hello);
          await waitFor("most of the connections to be closed", async () => {
            return await openFiles() <= before + idleKept + slack;
          }, { within: patience });
          await agent.healthy();
          assert.equal((await proxied("/healthz")).body, "ok");
        }
        await unharmed();
      }
      assert.match(await kubectl.run("exec", "p", "-c", "main", "--", "echo", "still", "here"), /^still here$/m);
    });
  });
});
