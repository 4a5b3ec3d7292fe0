import { FakeClock } from "../../mod/base/fake_clock.ts";
import { Journal } from "../../mod/base/journal.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import { configSource } from "../../mod/kube/pod.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import type { PodSample, StatsSnapshot } from "../stats/types.ts";
import { EvictionManager } from "./manager.ts";
import { containerStats, fs, Gi, memory, Mi, podStats, policy, snapshot } from "./testing.ts";
import type { DiskLayout, Eviction, EvictionPolicy } from "./types.ts";

/** A node under a manager; what is free and who runs is set by the test. */
function setUp(own: Partial<EvictionPolicy>) {
  const clock = new FakeClock(1_000_000);
  const log = new RecordingLogger();
  const events = new RecordingEvents();
  const journal = new Journal({ clock });
  const evicted: Eviction[] = [];
  const counted: string[] = [];
  const reclaimed: string[] = [];
  const world = {
    memory: 5 * Gi,
    disk: 50 * Gi,
    pids: 900,
    stalled: 0,
    pods: [] as BoundPod[],
    stats: [] as PodSample[],
    cleaned: new Set<string>(),
    layout: "single" as DiskLayout | Error,
    read: undefined as (() => Promise<StatsSnapshot>) | undefined,
    /** What the nth way of giving back frees. */
    onReclaim: (_way: string): void => {},
    looks: 0,
    details: [] as string[],
  };
  const reading = () => {
    const at = clock.now();
    const time = { total: 0, avg10: world.stalled, avg60: 0, avg300: 0 };
    return snapshot(at, {
      sample: { at, memory: memory(10 * Gi - world.memory), psi: { memory: { some: time, full: time } } },
      fs: fs(at, world.disk, 100 * Gi),
      imageFs: fs(at, world.disk, 100 * Gi),
      rlimit: { at, maxPid: 1000, running: 1000 - world.pids },
    }, world.stats);
  };
  const reclaim = (way: string) => () => {
    reclaimed.push(way);
    world.onReclaim(way);
    return Promise.resolve();
  };
  const manager = new EvictionManager({
    policy: { ...policy, ...own },
    stats: {
      collect: async (detail) => {
        world.looks++;
        world.details.push(detail);
        const full = await (world.read?.() ?? Promise.resolve(reading()));
        return detail === "summary" ? full : { ...full, detail, pods: [] };
      },
    },
    pods: {
      active: () => world.pods,
      evict: (eviction) => {
        evicted.push(eviction);
      },
      cleaned: (uid) => world.cleaned.has(uid),
    },
    reclaim: { containers: reclaim("containers"), images: reclaim("images") },
    layout: () => world.layout instanceof Error ? Promise.reject(world.layout) : Promise.resolve(world.layout),
    clock,
    log,
    events,
    journal,
    meter: {
      evicted: (signal) => counted.push(signal),
      evictionStatsAge: (signal, seconds) => counted.push(`${signal} ${seconds}`),
    },
  });
  return {
    ...{ world, clock, log, events, journal, evicted, counted, reclaimed, manager, reading },
    /** One look, time passing as it must. */
    async look() {
      const found = manager.look(AbortSignal.timeout(60_000));
      let done = false;
      void found.finally(() => done = true).catch(() => {});
      for (let turns = 0; !done && turns < 200; turns++) await clock.advance(500);
      return (await found).map(({ metadata }) => metadata.name);
    },
    warned: () => log.lines.filter(({ level }) => level === "warn").map(({ message }) => message),
  };
}

const using = (name: string, mebibytes: number) =>
  podStats(name, {
    sample: { at: 1, memory: memory(mebibytes * Mi) },
    containers: [containerStats("main", { sample: { at: 1, memory: memory(mebibytes * Mi) } })],
  });
const fromFile = { [configSource]: "file" };

export { fromFile, setUp, using };
