import assert from "@assert";
import type { Container, PodStatus, Probe } from "../../mod/kube/types.ts";
import { freePort } from "../../scripts/node/agent_node.ts";
import { versions } from "./harness.ts";
import { box, Observer, pod, shell, withObserver } from "./support.ts";

const often = { periodSeconds: 1, timeoutSeconds: 5 };
const exec = (line: string): Probe => ({ exec: { command: ["sh", "-c", line] }, ...often });

function web(name: string, more: Partial<Container> = {}): Container {
  return {
    name,
    image: "localhost/web:1",
    imagePullPolicy: "IfNotPresent",
    ports: [{ name: "http", containerPort: 80 }],
    ...more,
  };
}

const isReady = (status: PodStatus) => status.conditions?.find((one) => one.type === "Ready")?.status === "True";

for (const version of versions) {
  Deno.test(`probes on containerd ${version}`, async (t) => {
    await withObserver({ name: `pr-${version}`, containerd: version }, async (seen) => {
      const { agent } = seen.node;
      const hostPort = freePort();
      const all = [
        pod("good", {
          containers: [
            web("http", {
              startupProbe: { httpGet: { path: "/healthz", port: "http" }, ...often, failureThreshold: 60 },
              livenessProbe: {
                httpGet: { path: "/healthz", port: 80, httpHeaders: [{ name: "X-A", value: "b" }] },
                ...often,
              },
              readinessProbe: { tcpSocket: { port: "http" }, ...often },
            }),
          ],
        }),
        pod("ports", { containers: [web("main", { ports: [{ containerPort: 80, hostPort }] })] }),
        pod("readiness", { containers: [box("main", { readinessProbe: exec("test -e /tmp/ready") })] }),
        pod("liveness", {
          containers: [
            shell("main", "touch /tmp/alive; trap 'exit 0' TERM; while :; do sleep 0.1; done", {
              livenessProbe: { ...exec("test -e /tmp/alive"), failureThreshold: 2 },
            }),
            box("other"),
          ],
        }),
        pod("liveness-http", {
          containers: [web("main", {
            livenessProbe: { httpGet: { path: "/missing", port: "http" }, ...often, failureThreshold: 1 },
          })],
        }),
        pod("startup", {
          containers: [
            shell("main", "trap 'exit 0' TERM; while :; do sleep 0.1; done", {
              startupProbe: { ...exec("test -e /tmp/started"), failureThreshold: 100 },
              livenessProbe: { ...exec("test -e /tmp/live"), failureThreshold: 1 },
              readinessProbe: exec("true"),
            }),
          ],
        }),
        pod("never-starts", {
          restartPolicy: "Never",
          containers: [box("main", { startupProbe: { ...exec("false"), failureThreshold: 2 } }), box("other")],
        }),
        pod("closed", {
          containers: [
            box("tcp", { readinessProbe: { tcpSocket: { port: 81 }, ...often } }),
            box("http", { readinessProbe: { httpGet: { port: 82, path: "/" }, ...often } }),
            box("grpc", { readinessProbe: { grpc: { port: 83 }, ...often } }),
            web("not-grpc", { readinessProbe: { grpc: { port: 80 }, ...often } }),
            box("slow", {
              readinessProbe: { exec: { command: ["sleep", "600"] }, periodSeconds: 1, timeoutSeconds: 1 },
            }),
            box("no-program", { readinessProbe: { exec: { command: ["/no/such"] }, ...often } }),
          ],
        }),
      ];
      for (const one of all) await agent.putManifest(`${one.metadata?.name}.yaml`, one);

      await t.step("http, tcp and startup probes of a good server", async () => {
        const status = await seen.ready("good");
        assert.equal(Observer.of(status, "http").started, true);
        assert.equal(Observer.of(status, "http").restartCount, 0);
      });

      await t.step("a host port leads to the container", async () => {
        await seen.ready("ports");
        const addresses = Deno.networkInterfaces().filter((one) => one.family === "IPv4" && one.name !== "lo");
        const address = addresses.find((one) => one.name === seen.node.containerd.layout.bridge)?.address;
        const answer = await fetch(`http://${address}:${hostPort}/healthz`);
        assert.equal(await answer.text(), "ok\n");
      });

      await t.step("readiness follows the probe, there and back", async () => {
        await seen.event("readiness", "Unhealthy", /^Readiness probe failed/);
        assert.equal(isReady(await seen.phase("readiness", "Running")), false);
        await seen.out("readiness", "touch /tmp/ready");
        await seen.ready("readiness");
        await seen.out("readiness", "rm /tmp/ready");
        const status = await seen.until("readiness", "not to be ready again", (one) => !isReady(one));
        assert.equal(Observer.of(status, "main").restartCount, 0);
      });

      await t.step("liveness: a failure restarts that container alone", async () => {
        await seen.until("liveness", "both containers", (one) => {
          return Observer.of(one, "main").ready && Observer.of(one, "other").ready;
        });
        const first = await seen.running("liveness");
        const other = await seen.running("liveness", "other");
        await seen.out("liveness", "rm /tmp/alive");
        const status = await seen.until("liveness", "a restart", (one) => {
          const { restartCount, state } = Observer.of(one, "main");
          return restartCount === 1 && state?.running !== undefined;
        });
        assert.notEqual((await seen.running("liveness")).id, first.id);
        assert.equal((await seen.running("liveness", "other")).id, other.id);
        assert.equal(Observer.of(status, "other").restartCount, 0);
        assert.ok(Observer.of(status, "main").lastState?.terminated?.containerID?.endsWith(first.id));
        await seen.event("liveness", "Unhealthy", /^Liveness probe failed/);
        await seen.event("liveness", "Killing", /^Container main failed liveness probe, will be restarted$/);
      });

      await t.step("liveness over HTTP: the status code is told", async () => {
        await seen.event(
          "liveness-http",
          "Unhealthy",
          /^Liveness probe failed: HTTP probe failed with statuscode: 404$/,
        );
        await seen.until("liveness-http", "a restart", (one) => Observer.of(one, "main").restartCount >= 1);
      });

      await t.step("until the startup probe succeeds, neither liveness nor readiness count", async () => {
        await seen.event("startup", "Unhealthy", /^Startup probe failed/);
        const before = await seen.phase("startup", "Running");
        assert.equal(Observer.of(before, "main").started, false);
        assert.equal(isReady(before), false);
        await seen.out("startup", "touch /tmp/live /tmp/started");
        const status = await seen.ready("startup");
        assert.equal(Observer.of(status, "main").started, true);
        assert.equal(Observer.of(status, "main").restartCount, 0);
        assert.ok(!(await seen.events("startup")).some((one) => /Liveness|Readiness/.test(one.message)));
        await seen.out("startup", "rm /tmp/live");
        await seen.event("startup", "Unhealthy", /^Liveness probe failed/);
      });

      await t.step("a startup probe that never succeeds ends the container", async () => {
        const status = await seen.until("never-starts", "the end of that container", (one) => {
          return Observer.of(one, "main").state?.terminated !== undefined;
        });
        assert.equal(Observer.of(status, "main").restartCount, 0);
        assert.equal(Observer.of(status, "other").ready, true);
        await seen.event("never-starts", "Killing", /^Container main failed startup probe$/);
      });

      await t.step(
        "probes of ports that are closed, of servers that speak another language, of slow commands",
        async () => {
          const place = (name: string) => `spec.containers{${name}}`;
          const said = async (container: string, text: RegExp) => {
            await seen.logged(
              `${container}: ${text}`,
              (one) =>
                one.msg === "event" && one.reason === "Unhealthy" && one.pod === `${seen.full("closed")}_default` &&
                one.fieldPath === place(container) && text.test(String(one.message)),
            );
          };
          await said("tcp", /^Readiness probe failed: .*connection refused/);
          await said("http", /^Readiness probe failed: .*connection refused/);
          await said("grpc", /^Readiness probe failed: .*(timeout|failed to connect)/);
          await said("not-grpc", /^Readiness probe failed/);
          await said("slow", /^Readiness probe failed: .*timed out/);
          await said("no-program", /^Readiness probe (failed|errored)/);
          const status = await seen.phase("closed", "Running");
          for (const one of status.containerStatuses ?? []) {
            assert.equal(one.ready, false, one.name);
            assert.equal(one.restartCount, 0, one.name);
          }
        },
      );

      await t.step("at the end nothing is left", async () => {
        assert.ok(await agent.drain());
        await seen.nothingLeft();
      });
    });
  });
}
