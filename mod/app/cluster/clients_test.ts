import assert from "@assert";
import { FakeClock } from "../../base/fake_clock.ts";
import { FakeHost } from "../../base/fake_host.ts";
import { RecordingLogger } from "../../base/log.ts";
import { parseKubeconfig } from "../../kube/api/kubeconfig.ts";
import { resources } from "../../kube/api/resources.ts";
import type { HttpRequest, Transport } from "../../kube/api/transport.ts";
import { createClients, transportTo } from "./clients.ts";
import { FetchTransport } from "../../kube/api/fetch_transport.ts";
import { NodeTransport } from "../../kube/api/node_transport.ts";

const { signal } = new AbortController();

function kubeconfig(cluster: object = {}) {
  return parseKubeconfig(
    JSON.stringify({
      clusters: [{ name: "c", cluster: { server: "https://api:6443", ...cluster } }],
      users: [{ name: "u", user: { token: "t" } }],
      contexts: [{ name: "c", context: { cluster: "c", user: "u" } }],
      "current-context": "c",
    }),
    "/k",
  );
}

/** Clients whose requests go nowhere: answered at once, or never. */
function setUp(config: Partial<Parameters<typeof createClients>[0]["config"]> = {}) {
  const clock = new FakeClock();
  const log = new RecordingLogger();
  const sent: HttpRequest[] = [];
  const made: { retired: boolean }[] = [];
  const state = { silent: false, open: () => -1 };
  const open = (): Transport => {
    const one = { retired: false };
    made.push(one);
    return {
      retire: () => void (one.retired = true),
      async send(request) {
        sent.push(request);
        if (state.silent) {
          await new Promise((_, reject) =>
            request.signal.addEventListener("abort", () => reject(request.signal.reason), { once: true })
          );
        }
        return {
          status: 200,
          header: () => "application/json",
          body: (async function* () {
            yield await Promise.resolve(new TextEncoder().encode(`{"metadata":{"name":"n"}}`));
          })(),
        };
      },
    };
  };
  const clients = createClients({
    kubeconfig: kubeconfig(),
    config: {
      kubeAPIQPS: 50,
      kubeAPIBurst: 2,
      eventRecordQPS: 1,
      eventBurst: 1,
      nodeStatusUpdateFrequencyMs: 10_000,
      nodeLeaseDurationSeconds: 40,
      ...config,
    },
    host: new FakeHost(),
    clock,
    log,
    open,
    observer: { transports: (open) => state.open = open },
  });
  return { clients, clock, log, sent, made, state };
}

Deno.test("each client has its limit of rate; heartbeats have none", async () => {
  const { clients: { main, heartbeat, events }, clock, sent } = setUp();
  const ask = (client: typeof main) => client.get(resources.nodes, { name: "n" }, { signal });
  await Promise.all(Array.from({ length: 100 }, () => ask(heartbeat)));
  assert.equal(sent.length, 100);
  assert.match(sent[0]?.headers["user-agent"] ?? "", /^kubelet\/v1\.36\.3 \(linux\/\w+\) kubernetes\/\w+$/);
  assert.equal(sent[0]?.headers.authorization, "Bearer t");
  const both = Promise.all([main, main, main, events, events].map(ask));
  await clock.advance(20);
  assert.equal(sent.length, 104);
  await clock.advance(980);
  await both;
});

Deno.test("a heartbeat without an answer gives up the connections of all clients", async () => {
  const { clients: { main, heartbeat, events }, clock, log, made, state } = setUp();
  const ask = (client: typeof main) => client.get(resources.nodes, { name: "n" }, { signal });
  for (const client of [main, heartbeat, events]) await ask(client);
  assert.equal(made.length, 3, "each has its own");
  assert.equal(state.open(), 3);
  state.silent = true;
  const late = assert.rejects(ask(heartbeat), { code: "Timeout" });
  await clock.advance(9999);
  assert(made.every(({ retired }) => !retired));
  await clock.advance(1);
  await late;
  assert(made.every(({ retired }) => retired));
  assert.match(log.lines.at(-1)?.message ?? "", /did not answer a heartbeat in time/);
  state.silent = false;
  assert.equal(state.open(), 0);
  await ask(main);
  assert.equal(made.length, 4);
  assert.equal(state.open(), 1);
});

Deno.test("a call of the main client without an answer gives up its own connections only", async () => {
  const { clients: { main, heartbeat }, clock, made, state } = setUp({ nodeStatusUpdateFrequencyMs: 60_000 });
  const ask = (client: typeof main) => client.get(resources.nodes, { name: "n" }, { signal });
  await ask(heartbeat);
  state.silent = true;
  const late = assert.rejects(ask(main), { code: "Timeout" });
  await clock.advance(30_000);
  await late;
  assert.deepEqual(made.map(({ retired }) => retired), [false, true]);
});

Deno.test("what fetch cannot check goes another way", () => {
  const of = (cluster: object) => transportTo(kubeconfig(cluster))({});
  const made = [of({}), of({ "tls-server-name": "x" }), of({ "insecure-skip-tls-verify": true })];
  assert(made[0] instanceof FetchTransport);
  assert(made[1] instanceof NodeTransport && made[2] instanceof NodeTransport);
  for (const transport of made) transport.retire();
  assert.throws(() => of({ "insecure-skip-tls-verify": true, "proxy-url": "http://p:1" }), /do(es)? not go together/);
});
