import assert from "@assert";
import { FakeClock } from "../base/fake_clock.ts";
import { FakeHost } from "../base/fake_host.ts";
import { Journal } from "../base/journal.ts";
import { silent } from "../base/log.ts";
import type { ServedAgent } from "./agent_types.ts";
import { loadConfig } from "./config/load.ts";
import { LocalView } from "./local_view.ts";
import { parseTrail, trailFile } from "./trail.ts";

async function view(argv: string[] = []) {
  const host = new FakeHost();
  const loaded = await loadConfig({ argv: ["--root-dir=/r", ...argv], host, log: silent });
  return { host, view: new LocalView({ loaded, clock: new FakeClock(), pid: 7 }) };
}

Deno.test("before there is an agent, the view tells what its start waits for", async () => {
  const { view: early } = await view(["--container-runtime-endpoint=unix:///run/r.sock"]);
  assert.deepEqual([early.pods(), early.records()], [[], []]);
  assert.match(early.state().waitingFor ?? "", /runtime at unix:\/\/\/run\/r\.sock/);
});

Deno.test("what becomes of images is the collector's preview", async () => {
  const { view: shown } = await view();
  const { signal } = new AbortController();
  await assert.rejects(shown.images(signal), /waits for the container runtime/);
  const image = { id: "1", names: ["web"], sizeBytes: 9, pinned: false, handler: "", firstSeen: 0, lastUsed: 0 };
  const verdict = { image: { ...image, usedBy: undefined }, remove: true, reason: "DiskUse", message: "m" } as const;
  const preview = () => Promise.resolve({ verdicts: [verdict], usagePercent: 90, toFree: 1, frees: 9 });
  const agent = { imageGC: { preview } } as unknown as ServedAgent;
  shown.agent = { agent, journal: new Journal({ clock: new FakeClock() }), nodeName: "n" };
  assert.deepEqual(await shown.images(signal), {
    images: [{ id: "1", names: ["web"], size: 9, remove: true, message: "m" }],
    usagePercent: 90,
  });
});

Deno.test("the configuration is shown without credentials", async () => {
  const { view: shown } = await view(["--manifest-url-header=A:secret", "--max-pods=7"]);
  const text = JSON.stringify(shown.config());
  assert.match(text, /"maxPods":7/);
  assert.match(text, /"A":\["<masked>"\]/);
  assert.doesNotMatch(text, /secret/);
});

Deno.test("the trail tells where the logs are", async () => {
  const { host, view: left } = await view();
  await host.mkdir("/r");
  await left.leaveTrail(host, silent);
  assert.deepEqual(parseTrail(await host.readText(`/r/${trailFile}`)), { podLogsDir: "/var/log/pods" });
  assert.equal((await host.stat(`/r/${trailFile}`))?.mode, 0o600);
});

for (
  const text of ["", "[]", "null", '{"podLogsDir":3}', '{"podLogsDir":"logs"}', '{"__proto__":{"podLogsDir":"/x"}}']
) {
  Deno.test(`no trail: ${text}`, () => assert.equal(parseTrail(text), undefined));
}
