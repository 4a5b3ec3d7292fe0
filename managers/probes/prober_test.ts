import assert from "@assert";
import { silent } from "../../mod/base/log.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import type { BoundPod, Container, Probe } from "../../mod/kube/types.ts";
import { createProber } from "./prober.ts";
import type { HttpGetOutcome } from "./types.ts";

const spec: Container = { name: "c", image: "x", ports: [{ name: "web", containerPort: 8080 }] };
const pod: BoundPod = { metadata: { name: "p", namespace: "n", uid: "u" }, spec: { containers: [spec] } };

function rig(reply: HttpGetOutcome = { ok: true, status: 200, body: "fine", hostPort: "" }) {
  const calls: unknown[] = [];
  const events = new RecordingEvents();
  const keep = (kind: string, { signal: _, ...call }: { signal?: AbortSignal }) => void calls.push({ kind, ...call });
  const prober = createProber({
    runtime: { execSync: () => Promise.reject(new Error("no exec in this test")) },
    dial: {
      http: (call) => (keep("http", call), Promise.resolve(reply)),
      tcp: (call) => (keep("tcp", call), Promise.resolve({ result: "success", output: "" })),
      grpc: (call) => (keep("grpc", call), Promise.resolve({ result: "success", output: "service healthy" })),
    },
    events,
    log: silent,
  });
  const run = (probe: Probe, podIP: string | undefined = "10.0.0.1") =>
    prober({
      type: "readiness",
      pod,
      container: { kind: "regular", spec },
      containerId: "id1",
      podIP,
      probe,
      signal: new AbortController().signal,
    });
  return { calls, run, said: () => events.events.map((e) => `${e.reason} ${e.message}`) };
}

Deno.test("each handler gets its address, port and time limit", async () => {
  const http = { port: "web", path: "/ok" };
  const cases: [Probe, Record<string, unknown>][] = [
    [{ httpGet: http, timeoutSeconds: 3 }, {
      kind: "http",
      action: http,
      container: spec,
      podIP: "10.0.0.1",
      timeoutMs: 3000,
      purpose: "probe",
    }],
    [{ tcpSocket: { port: "web" } }, { kind: "tcp", host: "10.0.0.1", port: 8080, timeoutMs: 1000 }],
    [{ tcpSocket: { port: 5, host: "db" } }, { kind: "tcp", host: "db", port: 5, timeoutMs: 1000 }],
    [{ grpc: { port: 9 } }, { kind: "grpc", host: "10.0.0.1", port: 9, service: "", timeoutMs: 1000 }],
    [{ grpc: { port: 9, service: "s" } }, { kind: "grpc", host: "10.0.0.1", port: 9, service: "s", timeoutMs: 1000 }],
  ];
  for (const [probe, want] of cases) {
    const { calls, run, said } = rig();
    assert.equal((await run(probe))?.ok, true);
    assert.deepEqual(calls, [want]);
    assert.deepEqual(said(), []);
  }
});

Deno.test("a redirect that is not followed is a success with a warning", async () => {
  const { run, said } = rig({ ok: true, status: 302, body: "moved", hostPort: "" });
  assert.equal((await run({ httpGet: { port: 1 } }))?.ok, true);
  assert.deepEqual(said(), ["ProbeWarning Readiness probe warning: Probe terminated redirects, Response body: moved"]);
});

Deno.test("what cannot be tried says so once, after three tries, and counts for nothing", async () => {
  const cases: [Probe, string][] = [
    [{}, "missing probe handler for p_n:c"],
    [{ tcpSocket: { port: "nope" } }, "port nope not found: name one of the container's ports or give a number"],
    [{ tcpSocket: { port: 5 } }, "the pod has no IP address yet and the probe names no host"],
    [{ grpc: { port: 5 } }, "the pod has no IP address yet and the probe names no host"],
  ];
  for (const [probe, want] of cases) {
    const { calls, run, said } = rig();
    assert.equal(await run(probe, ""), undefined);
    assert.deepEqual(calls, []);
    assert.deepEqual(said(), [`Unhealthy Readiness probe errored and resulted in unknown state: ${want}`]);
  }
  const { calls, run } = rig({ ok: false, stage: "body", plainHttp: false, message: "unexpected EOF", hostPort: "" });
  assert.equal(await run({ httpGet: { port: 1 } }), undefined);
  assert.equal(calls.length, 3);
});
