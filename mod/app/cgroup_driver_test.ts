import assert from "@assert";
import { create } from "@bufbuild/protobuf";
import { grpcCode, RuntimeError } from "../../cri/api.ts";
import { CgroupDriver, RuntimeConfigResponseSchema, StatusResponseSchema } from "../../cri/gen/runtime_pb.ts";
import { FakeClock, turn } from "../base/fake_clock.ts";
import { RecordingLogger } from "../base/log.ts";
import { cgroupDriver } from "./cgroup_driver.ts";

type Answer = "systemd" | "cgroupfs" | "silent" | "unimplemented" | "down";

const error = (status: number) => new RuntimeError("RuntimeConfig", status, "no");

async function ask(configured: "systemd" | "cgroupfs", answers: Answer[], info: Record<string, string> = {}) {
  const clock = new FakeClock();
  const log = new RecordingLogger();
  const runtime = {
    // deno-lint-ignore require-await
    runtimeConfig: async () => {
      const answer = answers.shift();
      if (answer === "unimplemented") throw error(grpcCode.Unimplemented);
      if (answer === "down" || answer === undefined) throw error(grpcCode.Unavailable);
      if (answer === "silent") return create(RuntimeConfigResponseSchema, {});
      const driver = answer === "systemd" ? CgroupDriver.SYSTEMD : CgroupDriver.CGROUPFS;
      return create(RuntimeConfigResponseSchema, { linux: { cgroupDriver: driver } });
    },
    status: () => Promise.resolve(create(StatusResponseSchema, { info })),
  };
  const started = clock.now();
  const work = cgroupDriver({ runtime, configured, clock, log, signal: new AbortController().signal });
  const outcome = work.then((driver) => driver, (thrown) => String(thrown));
  for (let i = 0; i < 10; i++) {
    await turn();
    await clock.step();
  }
  const said = log.lines.filter((line) => line.level === "warn" || line.level === "error").map((line) => line.message);
  return { outcome: await outcome, said, waited: clock.now() - started };
}

const containerd1 = (SystemdCgroup: unknown, runtimeType = "io.containerd.runc.v2") => ({
  config: JSON.stringify({
    containerd: { defaultRuntimeName: "main", runtimes: { main: { runtimeType, options: { SystemdCgroup } } } },
  }),
});

Deno.test("cgroup driver: the runtime's word is taken, and a configuration that differs is told", async () => {
  const same = await ask("systemd", ["systemd"]);
  assert.deepEqual([same.outcome, same.said], ["systemd", []]);
  const other = await ask("cgroupfs", ["systemd"]);
  assert.equal(other.outcome, "systemd");
  assert.match(other.said.join(), /cgroupDriver is cgroupfs, but the runtime uses systemd.*set cgroupDriver: systemd/);
  assert.equal((await ask("systemd", ["silent"])).outcome, "systemd");
});

Deno.test("cgroup driver: a runtime that does not tell it; containerd's own configuration is held against ours", async () => {
  const table: [string, "systemd" | "cgroupfs", Record<string, string>, RegExp | undefined][] = [
    ["agrees", "systemd", containerd1(true), undefined],
    ["agrees by default", "cgroupfs", containerd1(undefined), undefined],
    ["ours is systemd", "systemd", containerd1(false), /runc use cgroupfs: .*SystemdCgroup = true/],
    ["ours is cgroupfs", "cgroupfs", containerd1(true), /runc use systemd: .*SystemdCgroup = false/],
    ["another runtime than runc", "cgroupfs", containerd1(true, "io.containerd.kata.v2"), undefined],
    ["no configuration shown", "cgroupfs", {}, undefined],
    ["no JSON", "cgroupfs", { config: "{" }, undefined],
    ["no object", "cgroupfs", { config: "null" }, undefined],
  ];
  for (const [name, configured, info, told] of table) {
    const { outcome, said } = await ask(configured, ["unimplemented"], info);
    assert.equal(outcome, configured, name);
    if (told) assert.match(said.join(), told, name);
    else assert.deepEqual(said, [], name);
  }
});

Deno.test("cgroup driver: three tries, two seconds apart", async () => {
  const { outcome, waited } = await ask("cgroupfs", ["down", "down", "systemd"]);
  assert.deepEqual([outcome, waited], ["systemd", 4000]);
  assert.match((await ask("cgroupfs", ["down", "down", "down", "systemd"])).outcome, /no/);
});
