import assert from "@assert";
import { KubeletError } from "../../mod/base/errors.ts";
import { Gi, hard, Mi, pod } from "./testing.ts";
import { fromFile, setUp, using } from "./manager_testing.ts";

Deno.test("a reading from before what was given back does not decide; one that never gets newer lets a pod go", async () => {
  const { world, look, reading } = setUp({ thresholds: [hard("nodefs.available", "10Gi")] });
  world.pods = [pod("web")];
  world.disk = Gi;
  const stale = reading();
  let reads = 0;
  world.read = () => Promise.resolve(++reads > 4 ? reading() : { ...stale, at: reading().at });
  world.onReclaim = () => world.disk = 50 * Gi;
  assert.deepEqual(await look(), []);
  assert.equal(reads, 5);
  const never = setUp({ thresholds: [hard("nodefs.available", "10Gi")] });
  never.world.pods = [pod("web")];
  never.world.disk = Gi;
  const old = never.reading();
  never.world.read = () => Promise.resolve({ ...old, at: never.clock.now() });
  assert.deepEqual(await never.look(), ["web"]);
});

Deno.test("pods are read once a minute, and whenever something runs short or a pod has a limit", async () => {
  const { world, look, clock, evicted } = setUp({ thresholds: [hard("memory.available", "100Mi")] });
  world.pods = [pod("small"), pod("large")];
  world.stats = [using("small", 10), using("large", 300)];
  for (let looks = 0; looks < 7; looks++) {
    await look();
    await clock.advance(10_000);
  }
  assert.deepEqual(world.details, ["summary", "node", "node", "node", "node", "node", "summary"]);
  world.memory = 50 * Mi;
  assert.deepEqual(await look(), ["large"]);
  assert.deepEqual(world.details.slice(7), ["node", "summary"]);
  assert.match(evicted[0]?.message ?? "", /using 300Mi/);
  world.memory = 5 * Gi;
  world.pods = [pod("limited", { volumes: [{ name: "v", emptyDir: { sizeLimit: "1Mi" } }] })];
  await look();
  assert.equal(world.details.at(-1), "summary");
});

Deno.test("nothing is read where there is nothing to decide", async () => {
  const { world, look } = setUp({});
  world.pods = [pod("a"), pod("static", { volumes: [{ name: "c", emptyDir: { sizeLimit: "1" } }] }, fromFile)];
  assert.deepEqual(await look(), []);
  assert.equal(world.looks, 0);
});

Deno.test("readings that fail, hang or are old evict nobody, and are told once until one is good again", async () => {
  const { world, look, warned, clock, manager, reading } = setUp({ thresholds: [hard("memory.available", "1Gi")] });
  const about = "the node's resources cannot be read; nothing is evicted until they can";
  world.pods = [pod("web")];
  world.memory = Mi;
  for (
    const bad of [
      () => Promise.reject(new KubeletError("Host", "no such file")),
      () => Promise.reject(new KubeletError("Host", "no such file")),
      () => new Promise<never>(() => {}),
      () => Promise.resolve({ ...reading(), at: clock.now() - 31_000 }),
    ]
  ) {
    world.read = bad;
    assert.deepEqual(await look(), []);
  }
  assert.deepEqual(warned().filter((text) => text === about).length, 1);
  assert.deepEqual(manager.conditions, []);
  world.read = undefined;
  assert.deepEqual(await look(), ["web"]);
  world.read = () => Promise.reject(new KubeletError("Host", "again"));
  assert.deepEqual(await look(), []);
  assert.deepEqual(warned().filter((text) => text === about).length, 2);
  assert.deepEqual(manager.conditions, ["MemoryPressure"], "what was known stays");
});

Deno.test("until the runtime tells where images lie nothing is evicted", async () => {
  const { world, look, warned } = setUp({ thresholds: [hard("memory.available", "1Gi")] });
  world.pods = [pod("web")];
  world.memory = Mi;
  world.layout = new KubeletError("Runtime", "not yet");
  assert.deepEqual(await look(), []);
  assert.deepEqual(await look(), []);
  assert.equal(warned().filter((text) => text.startsWith("the runtime does not tell where images lie")).length, 1);
  world.layout = "single";
  assert.deepEqual(await look(), ["web"]);
});
