import assert from "@assert";
import { FakeRuntime } from "../../../cri/fake/runtime.ts";
import { createStats } from "../../../managers/stats/collector.ts";
import type { StatsSnapshot } from "../../../managers/stats/types.ts";
import { systemClock } from "../../base/clock.ts";
import { createDenoHost } from "../../base/deno_host.ts";
import { silent } from "../../base/log.ts";
import { systemRandom } from "../../base/random.ts";
import { Scope } from "../../base/scope.ts";
import type { ObservedContainer, ObservedPod } from "../../pod/observed.ts";
import { cadvisorPage } from "./cadvisor.ts";
import { summaryOf } from "./summary.ts";

/** The hierarchy of version 2, whole or beside those of version 1, when its groups tell of pressure. */
async function pressured(): Promise<string | undefined> {
  if (Deno.uid() !== 0) return undefined;
  for (const root of ["/sys/fs/cgroup", "/sys/fs/cgroup/unified"]) {
    if (await Deno.stat(`${root}/cpu.pressure`).catch(() => undefined)) return root;
  }
  return undefined;
}
const root = await pressured();
const facts = { machineId: "m", systemUuid: "s", bootId: "b", kernelVersion: "k", osVersion: "o" };
const pageOf = (snapshot: StatsSnapshot) => new TextDecoder().decode(cadvisorPage(snapshot, facts));
/** Programs that want a CPU each: more of them than there are CPUs. */
const hungry = 2 * navigator.hardwareConcurrency;

function observedPod(sandbox: string, id: string): ObservedPod {
  const container: ObservedContainer = {
    ...{ id, name: "main", restartCount: 0, sandboxId: sandbox, createdAt: 1, startedAt: 1 },
    ...{ finishedAt: 0, exitCode: 0, reason: "", message: "", image: "i", imageRef: "i", hash: 1, annotations: {} },
    ...{ logPath: "", mounts: [] },
    state: "running",
  };
  const box = { attempt: 0, ready: true, createdAt: 1, ips: [], hostNetwork: false, hasNetwork: true, handler: "" };
  return {
    uid: "u1",
    name: "p",
    namespace: "ns",
    sandboxes: [{ id: sandbox, ...box }],
    containers: [container],
    readAt: 0,
  };
}

Deno.test({
  name: "real kernel: pressure of a container that gets too little CPU is told by both pages",
  ignore: root === undefined,
  async fn() {
    if (root === undefined) return;
    const group = `/denolet-psi-${Deno.pid}`, id = "c".repeat(64), sandbox = "a".repeat(64);
    const dir = await Deno.makeTempDir({ prefix: "denolet-psi-" });
    const children: Deno.ChildProcess[] = [];
    await using scope = new Scope("test");
    try {
      for (const below of ["", `/${sandbox}`, `/${id}`]) await Deno.mkdir(`${root}${group}${below}`);
      for (let n = 0; n < hungry; n++) {
        const child = new Deno.Command("/bin/sh", { args: ["-c", "while :; do :; done"] }).spawn();
        children.push(child);
        await Deno.writeTextFile(`${root}${group}/${id}/cgroup.procs`, String(child.pid));
      }
      const runtime = new FakeRuntime({ clock: systemClock, random: systemRandom });
      const stats = createStats({
        host: createDenoHost(),
        clock: systemClock,
        log: silent,
        scope,
        runtime,
        images: runtime,
        hierarchies: { version: 2, roots: new Map([["memory", root]]) },
        nodeName: "n",
        rootDir: dir,
        podLogsDir: dir,
        observed: () => [observedPod(sandbox, id)],
        podByUid: () => undefined,
        podGroups: () => [group],
        systemGroups: [],
      });
      const waited = (page: string) =>
        Number(/^container_pressure_cpu_waiting_seconds_total\{container="main",[^}]*\} (\S+) \d+$/m.exec(page)?.[1]);
      let snapshot = await stats.collect("cadvisor");
      for (let tries = 0; tries < 300 && !(waited(pageOf(snapshot)) > 0); tries++) {
        await systemClock.sleep(100);
        snapshot = await stats.collect("cadvisor", 0);
      }
      const page = pageOf(snapshot);
      assert.ok(waited(page) > 0);
      for (const kind of ["cpu", "memory", "io"]) {
        for (const what of ["waiting", "stalled"]) {
          assert.match(page, new RegExp(`^# TYPE container_pressure_${kind}_${what}_seconds_total counter$`, "m"));
        }
      }
      const kernel = await Deno.readTextFile(`${root}${group}/${id}/cpu.pressure`);
      const seconds = Number(/^some .* total=(\d+)$/m.exec(kernel)?.[1]) / 1e6;
      assert.ok(waited(page) <= seconds, `${waited(page)} of ${seconds}`);
      const { node, pods: [pod] } = JSON.parse(JSON.stringify(summaryOf(snapshot, false)));
      const psi = pod.containers[0].cpu.psi;
      assert.deepEqual(Object.keys(psi.some).sort(), ["avg10", "avg300", "avg60", "total"]);
      assert.equal(psi.some.total / 1e9, waited(page), "nanoseconds");
      assert.ok(psi.full.total >= 0 && node.cpu.psi.some.total > 0 && pod.io.psi && node.io.psi);
    } finally {
      for (const child of children) child.kill("SIGKILL");
      for (const child of children) await child.status;
      for (const below of [`/${id}`, `/${sandbox}`, ""]) await removeGroup(`${root}${group}${below}`);
      await Deno.remove(dir, { recursive: true });
    }
  },
});

/** A killed process leaves its group a moment after it is gone. */
async function removeGroup(path: string): Promise<void> {
  for (let tries = 0;; tries++) {
    try {
      return await Deno.remove(path);
    } catch (thrown) {
      if (thrown instanceof Deno.errors.NotFound) return;
      if (tries >= 100) throw thrown;
      await systemClock.sleep(20);
    }
  }
}
