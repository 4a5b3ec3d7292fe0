import assert from "@assert";
import { createDenoHost } from "../../base/deno_host.ts";
import type { JournalRecord } from "../../base/journal.ts";
import { RecordingLogger, silent } from "../../base/log.ts";
import type { BoundPod } from "../../kube/types.ts";
import { answerImages, answerLocal } from "./answer.ts";
import { localSocket } from "./name.ts";
import { serveLocal } from "./serve.ts";
import type { LocalBackend, LocalState } from "./types.ts";

const pod = (uid: string): BoundPod => ({
  metadata: { name: `web-${uid}`, namespace: "default", uid },
  spec: { containers: [{ name: "c", resources: {} }] },
});
const record = (seq: number, uid = "1"): JournalRecord => ({
  seq,
  at: seq,
  action: "StopContainer",
  reason: "R",
  message: "m",
  pod: { namespace: "default", name: "web", uid },
});
const state: LocalState = {
  version: "v1",
  pid: 7,
  nodeName: "n",
  startedAt: 1,
  sourcesReady: true,
  manifestProblems: [],
  unhealthy: [],
};
const backend = (more: Partial<LocalBackend> = {}): LocalBackend => ({
  pods: () => [{ pod: pod("1") }],
  records: (uid) => [record(1), record(2, "2")].filter((r) => uid === undefined || r.pod?.uid === uid),
  config: () => ({ maxPods: 5 }),
  state: () => state,
  images: () => Promise.resolve({ images: [], usagePercent: 1 }),
  ...more,
});
const get = (url: string, from = backend()) => {
  const { status, body } = answerLocal({ method: "GET", url }, from);
  return { status, value: JSON.parse(body) };
};

const answers: [url: string, status: number, value: unknown][] = [
  ["/pods", 200, { pods: [{ pod: pod("1") }], left: 0 }],
  ["/journal", 200, { records: [record(1), record(2, "2")], left: 0 }],
  ["/journal?uid=2", 200, { records: [record(2, "2")], left: 0 }],
  ["/journal?uid=__proto__", 200, { records: [], left: 0 }],
  ["/config", 200, { maxPods: 5 }],
  ["/state", 200, state],
  ["/", 404, { error: "/ is not served here; there are /pods, /journal, /config, /state, /images" }],
];
for (const [url, status, value] of answers) {
  Deno.test(`local API: GET ${url}`, () => assert.deepEqual(get(url), { status, value }));
}

Deno.test("local API: nothing can be changed", () => {
  for (const method of ["POST", "PUT", "DELETE"]) {
    assert.equal(answerLocal({ method, url: "/pods" }, backend()).status, 405);
  }
});

Deno.test("local API: answers are bounded, and tell what they leave out", () => {
  const many = Array.from({ length: 1200 }, (_, at) => at + 1);
  const long = backend({
    pods: () => many.map((n) => ({ pod: pod(String(n)) })),
    records: () => many.map((n) => ({ ...record(n), message: "x".repeat(10_000), error: "y".repeat(10_000) })),
  });
  const pods = get("/pods", long).value;
  assert.deepEqual([pods.pods.length, pods.left], [1000, 200]);
  const { records, left } = get("/journal", long).value;
  assert.deepEqual([records.length, left, records.at(-1).seq], [500, 700, 1200]);
  assert.deepEqual([records[0].message.length, records[0].error.length], [4097, 4097]);
});

Deno.test("local API: images wait for the runtime, are bounded, and a runtime that fails is said", async () => {
  const image = { id: "sha256:1", names: ["web:1"], size: 5, remove: true, message: "m".repeat(10_000) };
  const images = Array.from({ length: 1200 }, () => image);
  const request = { method: "GET", url: "/images" };
  const { signal } = new AbortController();
  const found = await answerImages(
    request,
    backend({ images: () => Promise.resolve({ images, usagePercent: 7 }) }),
    signal,
  );
  const value = JSON.parse(found?.body ?? "");
  assert.deepEqual([found?.status, value.images.length, value.left, value.usagePercent], [200, 1000, 200, 7]);
  assert.equal(value.images[0].message.length, 4097);
  const down = backend({ images: () => Promise.reject(new Error("the runtime is down")) });
  assert.deepEqual(await answerImages(request, down, signal), { status: 503, body: '{"error":"the runtime is down"}' });
  assert.equal(answerImages({ method: "POST", url: "/images" }, backend(), signal), undefined);
  assert.equal(answerImages({ method: "GET", url: "/pods" }, backend(), signal), undefined);
});

async function within(test: (dir: string) => Promise<void>): Promise<void> {
  const dir = await Deno.makeTempDir({ prefix: "denolet-local-" });
  try {
    await test(dir);
  } finally {
    await Deno.remove(dir, { recursive: true });
  }
}

/** Waits for a listening socket, then asks it. */
async function ask(path: string, url: string): Promise<string> {
  for (;;) {
    try {
      const connection = await Deno.connect({ transport: "unix", path });
      await connection.write(new TextEncoder().encode(`GET ${url} HTTP/1.0\r\n\r\n`));
      return await new Response(connection.readable).text();
    } catch (thrown) {
      if (!(thrown instanceof Deno.errors.NotFound || thrown instanceof Deno.errors.ConnectionRefused)) throw thrown;
      await new Promise((resolve) => setTimeout(resolve, 5));
    }
  }
}

Deno.test("the socket is root's alone, replaces a stale one, and goes with the agent", async () => {
  await within(async (dir) => {
    const path = `${dir}/${localSocket}`;
    // Renamed, since closing it removes it by its name.
    const left = Deno.listen({ transport: "unix", path: `${dir}/made` });
    await Deno.rename(`${dir}/made`, path);
    left.close();
    assert.equal((await Deno.lstat(path)).isSocket, true);
    await Deno.writeTextFile(`${dir}/.denolet.new`, "left by a start that was killed");
    const ended = new AbortController();
    const log = new RecordingLogger();
    const serving = serveLocal({
      rootDir: dir,
      backend: backend({
        config: () => {
          throw new Error("broken");
        },
      }),
      host: createDenoHost(),
      log,
      signal: ended.signal,
    });
    assert.match(await ask(path, "/state"), /^HTTP\/1\.[01] 200 [^]*"pid":7/);
    assert.equal(((await Deno.stat(path)).mode ?? 0) & 0o777, 0o600);
    assert.match(await ask(path, "/config"), /^HTTP\/1\.[01] 500 [^]*broken/);
    ended.abort();
    await serving;
    assert.deepEqual([...Deno.readDirSync(dir)], []);
    assert.deepEqual(log.lines.map(({ level }) => level), ["error"]);
  });
});

Deno.test("an agent that cannot have the socket goes on, and says why", async () => {
  await within(async (dir) => {
    const rootDir = `${dir}/${"d".repeat(100)}`;
    await Deno.mkdir(rootDir);
    const log = new RecordingLogger();
    const { signal } = new AbortController();
    await serveLocal({ rootDir, backend: backend(), host: createDenoHost(), log, signal });
    assert.match(log.lines.map(({ fields }) => fields.remedy).join(), /shorten --root-dir/);
    await serveLocal({ rootDir: `${dir}/none`, backend: backend(), host: createDenoHost(), log: silent, signal });
  });
});
