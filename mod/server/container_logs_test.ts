import assert from "@assert";
import { grpcCode, RuntimeError, type RuntimeService } from "../../cri/api.ts";
import { ContainerState } from "../../cri/gen/runtime_pb.ts";
import { FakeHost } from "../base/fake_host.ts";
import type { BoundPod, PodStatus } from "../kube/types.ts";
import { containerLogsRoutes } from "./container_logs.ts";
import { RawClient, sceneBackend, serve } from "./streaming/testing.ts";

const uid = "u";
const pod = {
  metadata: { name: "web", namespace: "default", uid },
  spec: {
    containers: [{ name: "c" }, { name: "waits" }, { name: "none" }, { name: "lost" }, { name: "nofile" }],
    initContainers: [{ name: "init" }],
    ephemeralContainers: [{ name: "debug" }],
  },
} as unknown as BoundPod;
const running = (name: string) => ({ name, containerID: `r://${name}`, state: { running: {} } });
const status = {
  containerStatuses: [
    { ...running("c"), lastState: { terminated: { exitCode: 1, containerID: "r://c-old" } } },
    { name: "waits", state: { waiting: { reason: "ErrImagePull" } } },
    running("lost"),
    running("nofile"),
  ],
  initContainerStatuses: [{ name: "init", state: { terminated: { exitCode: 0, containerID: "r://init" } } }],
  ephemeralContainerStatuses: [running("debug")],
} as unknown as PodStatus;
const line = (text: string) => `2026-01-02T03:04:05.123456789Z stdout F ${text}\n`;

interface World extends AsyncDisposable {
  host: FakeHost;
  port: number;
  url: (path: string) => string;
  state: { running: boolean; fault?: Error };
  /** Resolves when no log is open any more. */
  closed(): Promise<void>;
}

async function world(): Promise<World> {
  const host = new FakeHost({
    files: Object.fromEntries(["c", "c-old", "init", "debug"].map((name) => [`/l/${name}`, line(`of ${name}`)])),
  });
  let [opened, waiting] = [0, () => {}];
  const open = host.open.bind(host);
  host.open = async (path) => {
    const file = await open(path);
    opened++;
    return {
      read: (into, at) => file.read(into, at),
      info: () => file.info(),
      [Symbol.dispose]() {
        file[Symbol.dispose]();
        if (--opened === 0) waiting();
      },
    };
  };
  const state: World["state"] = { running: true };
  const runtime = {
    containerStatus: (id: string) => {
      if (state.fault) throw state.fault;
      if (id === "lost") throw new RuntimeError("ContainerStatus", grpcCode.NotFound, "gone");
      const { CONTAINER_RUNNING, CONTAINER_EXITED } = ContainerState;
      return Promise.resolve({
        status: { logPath: `/l/${id}`, state: state.running ? CONTAINER_RUNNING : CONTAINER_EXITED },
      });
    },
  } as unknown as RuntimeService;
  const backend = sceneBackend({ pods: [pod], statuses: { [uid]: status }, observed: () => [], runtime, host });
  const server = await serve([containerLogsRoutes(backend)]);
  return {
    host,
    port: server.port,
    url: (path) => `http://127.0.0.1:${server.port}/containerLogs/${path}`,
    state,
    closed: () => opened === 0 ? Promise.resolve() : new Promise((resolve) => waiting = resolve),
    [Symbol.asyncDispose]: () => server[Symbol.asyncDispose](),
  };
}

Deno.test("requests for logs, and what they are told", async () => {
  await using w = await world();
  const gate = "Please enable PodLogsQuerySplitStreams feature gate in kubelet";
  const cases: [string, number, string | RegExp][] = [
    ["default/web/c", 200, "of c\n"],
    ["default/web/c?timestamps=true", 200, "2026-01-02T03:04:05.123456789Z of c\n"],
    ["default/web/c?previous=true", 200, "of c-old\n"],
    ["default/web/init?follow=false", 200, "of init\n"],
    ["default/web/debug?stream=All&limitBytes=4", 200, "of d"],
    ["default/web/c?sinceTime=2026-01-02T03:04:06Z", 200, ""],
    ["default/web/c?tailLines=x", 400, '{"message": "Unable to decode query."}'],
    ["default/none/c?tailLines=-1", 422, '{"message": "Invalid request."}'],
    ["default/none/c", 404, 'pod "none" does not exist'],
    ["other/web/c", 404, 'pod "web" does not exist'],
    ["default/web/nope", 404, 'container "nope" not found in pod "web"'],
    ["default/web/__proto__", 404, 'container "__proto__" not found in pod "web"'],
    ["default/web/c?stream=Stderr", 400, `unable to return the given log stream: "Stderr". ${gate}`],
    ["default/web/waits", 400, 'container "waits" in pod "web" is waiting to start: image can\'t be pulled'],
    ["default/web/init?previous=1", 400, 'previous terminated container "init" in pod "web" not found'],
    ["default/web/none", 400, 'container "none" in pod "web" is not available'],
    ["default/web/lost", 400, "unable to retrieve container logs for r://lost"],
    ["default/web/nofile", 400, /failed to try resolving symlinks in path "\/l\/nofile"/],
  ];
  for (const [path, status, text] of cases) {
    const answer = await fetch(w.url(path));
    const got = await answer.text();
    if (typeof text === "string") assert.deepEqual([answer.status, got], [status, text], path);
    else assert.ok(answer.status === status && text.test(got), `${path}: ${answer.status} ${got}`);
    assert.match(answer.headers.get("content-type") ?? "", /^text\/plain/, path);
  }
});

Deno.test("an answer that has begun ends with the error", async () => {
  await using w = await world();
  w.host.put("/l/c", "no log\n");
  const answer = await fetch(w.url("default/web/c"));
  assert.equal(answer.status, 200);
  assert.match(await answer.text(), /unsupported log format/);
});

Deno.test("follow: the head comes at once, each line as it is written, and a client that goes ends it", async () => {
  await using w = await world();
  w.host.put("/l/c", "");
  {
    using client = await RawClient.connect(w.port);
    await client.write("GET /containerLogs/default/web/c?follow=true HTTP/1.1\r\nHost: n\r\n\r\n");
    const head = await client.until("\r\n\r\n");
    assert.match(head, /^HTTP\/1\.1 200 [^]*transfer-encoding: chunked/i);
    w.host.put("/l/c", line("one"));
    assert.equal(await client.until("one\n\r\n"), "4\r\none\n\r\n");
    w.host.put("/l/c", line("one") + line("two"));
    assert.equal(await client.until("two\n\r\n"), "4\r\ntwo\n\r\n");
  }
  await w.closed();
});

Deno.test("follow ends with its container, but not with a runtime that is away", async () => {
  await using w = await world();
  w.state.running = false;
  assert.equal(await (await fetch(w.url("default/web/c?follow=1"))).text(), "of c\n");
  w.state.running = true;
  const answer = await fetch(w.url("default/web/c?follow=1"));
  w.state.fault = new RuntimeError("ContainerStatus", grpcCode.Unavailable, "away");
  const reader = answer.body?.getReader();
  assert.equal(new TextDecoder().decode((await reader?.read())?.value), "of c\n");
  w.host.put("/l/c", line("of c") + line("more"));
  assert.equal(new TextDecoder().decode((await reader?.read())?.value), "more\n");
  await reader?.cancel();
  await w.closed();
});
