import assert from "@assert";
import tls from "node:tls";
import { makeAuthority } from "../../mod/server/testing.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { freePort } from "../../scripts/node/agent_node.ts";
import { versions } from "./harness.ts";
import { patience, pod, shell, withObserver } from "./support.ts";

/** Runs curl; the status code, a line feed, and the body. */
async function curl(...args: string[]): Promise<string> {
  const { stdout } = await new Deno.Command("curl", {
    args: ["-sSk", "-m", "20", "--path-as-is", "-w", "\n%{http_code}", ...args],
    stdout: "piped",
    stderr: "inherit",
  }).output();
  const text = new TextDecoder().decode(stdout);
  const at = text.lastIndexOf("\n");
  return `${text.slice(at + 1)}\n${text.slice(0, at)}`;
}

for (const version of versions) {
  Deno.test(`the node's API on containerd ${version}`, async (t) => {
    const name = `api-${version}`;
    const [port, readOnlyPort] = [freePort(), freePort()];
    const files = await Deno.makeTempDir({ prefix: "denolet-api-" });
    const authority = await makeAuthority("clients");
    const ann = await authority.certify("O=admins, CN=ann");
    await Deno.writeTextFile(`${files}/ca.crt`, authority.cert);
    await Deno.writeTextFile(`${files}/ann.crt`, ann.cert);
    await Deno.writeTextFile(`${files}/ann.key`, ann.key);
    const api = `https://127.0.0.1:${port}`;
    const as = ["--cert", `${files}/ann.crt`, "--key", `${files}/ann.key`];
    const config = {
      enableServer: true,
      address: "127.0.0.1",
      port,
      readOnlyPort,
      authentication: {
        x509: { clientCAFile: `${files}/ca.crt` },
        anonymous: { enabled: false },
        webhook: { enabled: false },
      },
    };
    try {
      await withObserver({ name, containerd: version, config, flags: [`--cert-dir=${files}/pki`] }, async (seen) => {
        const { agent } = seen.node;
        await agent.putManifest(
          "web.json",
          pod("web", { containers: [shell("main", "echo hello; trap 'exit 0' TERM; sleep 86400 & wait $!")] }),
        );
        const path = `default/web-${name}/main`;
        await waitFor(
          "the pod to run, as /pods shows it",
          async () => /"running":\{/.test(await curl(...as, `${api}/pods`)),
          { within: patience },
        );

        await t.step("only the certificate opens it", async () => {
          assert.equal(await curl(`${api}/pods`), "401\nUnauthorized");
          assert.equal(await curl(...as, `${api}/healthz`), "200\nok");
        });
        await t.step("pods, runningpods and configz", async () => {
          const pods = JSON.parse((await curl(...as, `${api}/pods`)).slice(4));
          assert.deepEqual([pods.kind, pods.apiVersion, pods.metadata], ["PodList", "v1", {}]);
          const [item] = pods.items;
          assert.equal(item.metadata.name, `web-${name}`);
          assert.equal(item.status.phase, "Running");
          assert.ok(item.status.conditions.every((each: Record<string, unknown>) => each.lastProbeTime === null));
          const running = JSON.parse((await curl(...as, `${api}/runningpods/`)).slice(4));
          assert.deepEqual(
            running.items.map((each: { spec: unknown; metadata: unknown }) => [each.metadata, each.spec]),
            [[
              { name: `web-${name}`, namespace: "default", uid: item.metadata.uid },
              { containers: [{ name: "main", image: running.items[0].spec.containers[0].image, resources: {} }] },
            ]],
          );
          const { kubeletconfig } = JSON.parse((await curl(...as, `${api}/configz`)).slice(4));
          assert.deepEqual([kubeletconfig.kind, kubeletconfig.port], ["KubeletConfiguration", port]);
        });
        await t.step("logs, a command, a checkpoint that the runtime judges", async () => {
          assert.equal(await curl(...as, `${api}/containerLogs/${path}`), "200\nhello\n");
          assert.equal(await curl(...as, "-X", "POST", `${api}/run/${path}?cmd=echo+a+b`), "200\na b\n");
          assert.match(await curl(...as, "-X", "POST", `${api}/checkpoint/${path}?timeout=x`), /^404\ncannot parse/);
          assert.match(
            await curl(...as, "-X", "POST", `${api}/checkpoint/${path}`),
            /^(200\n\{"items":\["|500\ncheckpointing of default\/web-.*\/main failed \()/,
          );
        });
        await t.step("a command over WebSocket, and a wish for one without it", async () => {
          const { promise, resolve, reject } = Promise.withResolvers<string>();
          const socket = tls.connect({ host: "127.0.0.1", port, rejectUnauthorized: false, ...ann });
          let text = "";
          socket.on("data", (data) => text += data);
          socket.on("error", reject);
          socket.on("close", () => resolve(text));
          socket.write(
            `GET /exec/${path}?command=echo&command=from-exec&output=1&error=1 HTTP/1.1\r\nHost: a\r\n` +
              "Connection: Upgrade\r\nUpgrade: websocket\r\nSec-WebSocket-Version: 13\r\n" +
              "Sec-WebSocket-Key: dGhlIHNhbXBsZSBub25jZQ==\r\nSec-WebSocket-Protocol: v4.channel.k8s.io\r\n\r\n",
          );
          const answer = await promise;
          assert.match(answer, /^HTTP\/1\.1 101 /);
          assert.match(answer, /from-exec\n[^]*"status":"Success"/);
          assert.match(await curl(...as, `${api}/exec/${path}?command=true&output=1`), /^[45]00\n.*pgrade/);
        });
        await t.step("the read-only port has the public half", async () => {
          const open = `http://127.0.0.1:${readOnlyPort}`;
          assert.match(await curl(`${open}/pods`), /^200\n\{"kind":"PodList"/);
          assert.equal(await curl(`${open}/run/${path}`), "405\nDebug endpoints are disabled.\n");
          assert.equal(await curl(`${open}/configz`), "404\n404 page not found\n");
        });
        await t.step("what it shows of itself", async () => {
          assert.match(await curl(...as, `${api}/flagz`), /\nport=\d+\n/);
          assert.match(await curl(...as, `${api}/statusz`), /Binary version: 1\.36\.3\n/);
          assert.match(await curl(...as, `${api}/logs/`), /^200\n<!doctype html>/);
          assert.equal(
            await curl(...as, "-X", "PUT", "-d", "5", `${api}/debug/flags/v`),
            "200\nsuccessfully set klog.logging.verbosity to 5\n",
          );
        });
        await t.step("a port that is taken ends the agent with 1", async () => {
          await agent.kill();
          using _taken = Deno.listen({ hostname: "127.0.0.1", port });
          agent.start();
          assert.equal(await agent.exited(), 1);
        });
      });
    } finally {
      await Deno.remove(files, { recursive: true });
    }
  });
}
