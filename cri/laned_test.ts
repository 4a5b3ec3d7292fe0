import assert from "@assert";
import { FakeClock } from "../mod/base/fake_clock.ts";
import { Journal } from "../mod/base/journal.ts";
import { Lanes } from "../mod/base/lanes.ts";
import { seeded } from "../mod/base/random.ts";
import { FakeRuntime } from "./fake/runtime.ts";
import { journaledRuntime } from "./journaled.ts";
import { lanedRuntime } from "./laned.ts";

const because = { reason: "Test", message: "test" };

Deno.test("sandboxes are made no more than the lanes at once; questions and stops do not wait", async () => {
  const clock = new FakeClock(0);
  const fake = new FakeRuntime({ clock, random: seeded(1), latency: (call) => call === "RunPodSandbox" ? 100 : 1 });
  const journal = new Journal({ clock });
  const runtime = lanedRuntime(journaledRuntime(fake, journal), new Lanes({ clock, lanes: 2, leaseMs: 10_000 }));
  const make = (uid: string) =>
    runtime.runPodSandbox({ metadata: { name: "p", namespace: "d", uid, attempt: 0 } }, "", { because });
  const made = Promise.all(["1", "2", "3", "4"].map(make));
  await clock.advance(50);
  assert.equal(fake.calls.filter((c) => c.call === "RunPodSandbox").length, 2);
  const asked = runtime.listPodSandboxes();
  await clock.advance(1);
  await asked;
  await clock.advance(200);
  assert.equal(new Set(await made).size, 4);
  assert.equal(journal.records().length, 4);
});

Deno.test("a container goes before sandboxes that wait", async () => {
  const clock = new FakeClock(0);
  const fake = new FakeRuntime({ clock, random: seeded(1), latency: () => 100 });
  const runtime = lanedRuntime(
    journaledRuntime(fake, new Journal({ clock })),
    new Lanes({ clock, lanes: 1, leaseMs: 10_000 }),
  );
  const sandbox = (uid: string) => ({ metadata: { name: "p", namespace: "d", uid, attempt: 0 } });
  const make = (uid: string) => runtime.runPodSandbox(sandbox(uid), "", { because });
  const first = make("1");
  const others = Promise.all(["2", "3"].map(make));
  await clock.advance(50);
  const refused = runtime.createContainer({
    sandboxId: "none",
    config: { metadata: { name: "c", attempt: 0 } },
    sandboxConfig: sandbox("none"),
  }, { because });
  const answered = assert.rejects(refused);
  await clock.advance(50);
  await first;
  await clock.advance(1000);
  await answered;
  await others;
  const heavy = fake.calls.map((one) => one.call).filter((call) => /RunPodSandbox|CreateContainer/.test(call));
  assert.deepEqual(heavy, ["RunPodSandbox", "CreateContainer", "RunPodSandbox", "RunPodSandbox"]);
});
