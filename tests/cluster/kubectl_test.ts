import assert from "@assert";
import { waitFor } from "../../scripts/lib/wait.ts";
import { freePort } from "../../scripts/node/agent_node.ts";
import { run } from "../../scripts/lib/command.ts";
import type { ControlPlane } from "../../scripts/cluster/control_plane.ts";
import { box, shell } from "../node/support.ts";
import { withClusterNode } from "./harness.ts";
import { Kubectl } from "./kubectl.ts";
import { ClusterView, patience } from "./support.ts";

/** Says ten lines, then one each quarter of a second. */
const talks = "for i in 1 2 3 4 5 6 7 8 9 10; do echo line $i; done; " +
  "i=10; while :; do i=$((i+1)); echo later $i; sleep 0.25; done";
/** Ends once, and then talks: so there is a log of the instance before. */
const restartsOnce = "if [ ! -f /v/x ]; then touch /v/x; echo the first life; exit 3; fi; echo the second life; " +
  "trap 'exit 0' TERM; sleep 86400 & wait $!";

Deno.test("the real kubectl with pods of the agent", async (t) => {
  await withClusterNode({ name: "kubectl" }, async (member) => {
    const view = new ClusterView(member);
    const kubectl = await Kubectl.of(member.plane, patience);
    const until = (what: string, look: () => boolean | Promise<boolean>) => waitFor(what, look, { within: patience });
    await view.nodeCondition("Ready", "True");
    await view.createPod("p", {
      volumes: [{ name: "v", emptyDir: {} }],
      containers: [
        box("main"),
        shell("talks", talks),
        shell("again", restartsOnce, { volumeMounts: [{ name: "v", mountPath: "/v" }] }),
        box("web", {
          image: "localhost/web:1",
          command: ["httpd", "-f", "-p", "80", "-h", "/www"],
          ports: [{ containerPort: 80 }],
        }),
      ],
    });
    await view.podUntil(
      "p",
      "to have restarted and be ready",
      ({ status }) =>
        status?.containerStatuses?.find(({ name }) => name === "again")?.restartCount === 1 &&
        status.containerStatuses.every(({ ready }) => ready),
    );

    await t.step("logs: --tail, --limit-bytes, --timestamps, -p, --since, --all-containers", async () => {
      const tail = (await kubectl.run("logs", "p", "-c", "talks", "--tail=3")).trimEnd().split("\n");
      assert.equal(tail.length, 3);
      assert(tail.every((line) => /^(line|later) \d+$/.test(line)), tail.join("|"));
      assert.equal(await kubectl.run("logs", "p", "-c", "talks", "--limit-bytes=10"), "line 1\nlin");
      const stamped = await kubectl.run("logs", "p", "-c", "again", "--timestamps");
      assert.match(stamped, /^\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d\.\d+Z the second life\n$/);
      assert.equal(await kubectl.run("logs", "p", "-c", "again", "-p"), "the first life\n");
      const all = await kubectl.run("logs", "p", "--all-containers", "--prefix");
      assert.match(all, /^\[pod\/p\/talks\] line 1$/m);
      assert.match(all, /^\[pod\/p\/again\] the second life$/m);
      const at = new Date(Date.now() + 3_600_000).toISOString();
      assert.equal(await kubectl.run("logs", "p", "-c", "again", `--since-time=${at}`), "");
      assert.match(await kubectl.run("logs", "p", "-c", "talks", "--since=5s"), /^later \d+$/m);
      const none = await kubectl.try("logs", "p", "-c", "main", "-p");
      assert.equal(none.code, 1);
      assert.match(none.stderr, /previous terminated container "main" in pod "p" not found/);
    });

    await t.step("logs over a web socket of the API server, which loses what comes together with the end", async () => {
      for (let times = 0; times < 5; times++) {
        assert.equal(await overWebSocket(member.plane, "pods/p/log?container=again"), "the second life\n");
      }
    });

    await t.step("logs -f go on until they are ended", async () => {
      await using call = kubectl.start("logs", "-f", "p", "-c", "talks", "--tail=1");
      await until("five lines of the log", () => call.text.split("\n").length > 5);
    });

    await t.step("exec: output, errors, exit codes, standard input", async () => {
      const { code, stdout, stderr } = await kubectl.try(
        "exec",
        "p",
        "-c",
        "main",
        "--",
        "sh",
        "-c",
        "echo a; echo b >&2; exit 7",
      );
      assert.equal(stdout, "a\n");
      assert.match(stderr, /^b\ncommand terminated with exit code 7\n$/);
      assert.equal(code, 7);
      const big = "0123456789abcdef\n".repeat(20_000);
      const fed = await kubectl.feed(big, "exec", "-i", "p", "-c", "main", "--", "cat");
      assert.equal(fed.code, 0, fed.stderr);
      assert(fed.stdout === big, `${fed.stdout.length} of ${big.length} bytes came back`);
      const missing = await kubectl.try("exec", "p", "-c", "main", "--", "/nonexistent");
      assert.notEqual(missing.code, 0);
      assert.match(missing.stderr, /no such file or directory/);
      const nobody = await kubectl.try("exec", "p", "-c", "nobody", "--", "true");
      assert.match(nobody.stderr, /container nobody is not valid for pod p|container not found/);
    });

    await t.step("exec -t has a terminal of the size of the user's", async () => {
      // The size comes a moment after the start; until then busybox says nothing, and that all is well.
      const ask =
        'tty; for i in $(seq 100); do [ "$(stty size 2>/dev/null)" = "31 97" ] && break; sleep 0.1; done; stty size';
      const line = kubectl.command(["exec", "-it", "p", "-c", "main", "--", "sh", "-c", `'${ask}'`]).join(" ");
      const out = await run(["script", "-qec", `stty rows 31 cols 97; ${line}`, "/dev/null"]);
      assert.match(out, /\/dev\/pts\/\d+\r?\n[^]*31 97\r?\n$/);
    });

    await t.step("attach shows what a container says, and speaks to one that listens", async () => {
      await using call = kubectl.start("attach", "p", "-c", "talks");
      await until("lines of the container", () => /later \d+\nlater \d+\n/.test(call.text));
      await using spoken = kubectl.start(
        "run",
        "echoes",
        "-i",
        "--rm",
        "--restart=Never",
        "--image=localhost/busybox:1",
        "--image-pull-policy=Never",
        `--overrides={"spec":{"nodeName":"kubectl"}}`,
        "--",
        "sh",
        "-c",
        "read word; echo heard $word",
      );
      await spoken.write("hello\n");
      await until("the answer", () => spoken.text.includes("heard hello"));
    });

    await t.step("cp in both directions", async () => {
      const dir = await Deno.makeTempDir({ prefix: "denolet-kubectl-" });
      try {
        const bytes = crypto.getRandomValues(new Uint8Array(60_000));
        await Deno.mkdir(`${dir}/in/deep`, { recursive: true });
        await Deno.writeFile(`${dir}/in/deep/file`, bytes);
        await kubectl.run("cp", `${dir}/in`, "p:/tmp/there", "-c", "main");
        await kubectl.run("cp", "p:/tmp/there/deep/file", `${dir}/out`, "-c", "main");
        assert.deepEqual(await Deno.readFile(`${dir}/out`), bytes);
      } finally {
        await Deno.remove(dir, { recursive: true });
      }
    });

    await t.step("port-forward serves several connections", async () => {
      const port = freePort();
      await using call = kubectl.start("port-forward", "pod/p", `${port}:80`);
      await until("the port to be open", () => call.text.includes("Forwarding from"));
      const pages = await Promise.all(["", "healthz", "none"].map(async (path) => {
        const answer = await fetch(`http://127.0.0.1:${port}/${path}`);
        return `${answer.status} ${(await answer.text()).length > 0}`;
      }));
      assert.deepEqual(pages, ["200 true", "200 true", "404 true"]);
    });

    await t.step("debug adds a container that sees the processes of another one", async () => {
      // Its standard input stays open: the runtime lets go of the output with the end of the input.
      await using call = kubectl.start(
        "debug",
        "-i",
        "p",
        "-c",
        "debugger",
        "--image=localhost/busybox:1",
        "--image-pull-policy=Never",
        "--target=web",
        "--profile=general",
        "--",
        "sh",
      );
      await call.write("ps\n");
      await until("the web server's process to be seen", () => call.text.includes("httpd -f -p 80"));
      await call.write("exit\n");
      assert.equal(await call.ended(), 0, call.text);
      const pod = await view.pod("p");
      assert.equal(pod?.status?.ephemeralContainerStatuses?.[0]?.name, "debugger");
    });

    await t.step("describe shows the events", async () => {
      const text = await kubectl.run("describe", "pod", "p");
      assert.match(
        text,
        /Normal +Pulled +.* kubelet +(spec\.containers\{main\}: )?Container image "localhost\/busybox:1" already/,
      );
      assert.match(text, /Normal +Started +.* kubelet +/);
      assert.match(text, /Restart Count: +1/);
      assert.match(await kubectl.run("describe", "node", "kubectl"), /KubeletReady +kubelet is posting ready status/);
    });

    await t.step("what the node serves through the API server", async () => {
      const summary = JSON.parse(await kubectl.run("get", "--raw", "/api/v1/nodes/kubectl/proxy/stats/summary"));
      assert.equal(summary.node.nodeName, "kubectl");
      assert.equal(await kubectl.run("get", "--raw", "/api/v1/nodes/kubectl/proxy/healthz"), "ok");
    });

    await t.step("delete waits until the pod is gone", async () => {
      await kubectl.run("delete", "pod", "p", "--grace-period=1");
      assert.equal(await view.pod("p"), undefined);
    });
  });
});

/** What the API server sends over a web socket until it closes it. */
async function overWebSocket(plane: ControlPlane, path: string): Promise<string> {
  const read = (name: string) => Deno.readTextFile(`${plane.dir}/${name}`);
  using client = Deno.createHttpClient({
    caCerts: [await read("ca.crt")],
    cert: await read("admin.crt"),
    key: await read("admin.key"),
  });
  const url = `${plane.server.replace("https:", "wss:")}/api/v1/namespaces/default/${path}`;
  const socket = new WebSocket(url, { protocols: ["binary.k8s.io"], client });
  socket.binaryType = "arraybuffer";
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  let text = "";
  socket.onmessage = ({ data }) => text += new TextDecoder().decode(data);
  socket.onerror = (event) => reject(new Error(`${url}: ${event instanceof ErrorEvent ? event.message : "failed"}`));
  socket.onclose = () => resolve();
  await promise;
  return text;
}
