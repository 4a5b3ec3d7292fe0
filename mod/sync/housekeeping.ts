import type { CgroupManager, OrphanGroups } from "../../managers/cgroups/types.ts";
import type { VolumeManager } from "../../managers/volumes/types.ts";
import type { Clock } from "../base/clock.ts";
import { messageOf } from "../base/errors.ts";
import type { Host } from "../base/host.ts";
import type { Logger } from "../base/log.ts";
import type { Scope } from "../base/scope.ts";
import type { PodWorkers } from "./pod_workers.ts";

export interface HousekeepingOptions {
  scope: Scope;
  host: Pick<Host, "readDir" | "removeTree" | "stat">;
  clock: Clock;
  log: Logger;
  workers: Pick<PodWorkers, "has">;
  cgroups: Pick<CgroupManager, "podsWithGroups" | "destroyPod"> & OrphanGroups;
  volumes: Pick<VolumeManager, "podsOnDisk" | "unmountPod">;
  /** `<root>/pods`. */
  podsDir: string;
  /** Removes dead containers, sandboxes and logs that nobody needs (runtime-contract.md section 21). */
  collectGarbage: (signal: AbortSignal) => Promise<void>;
  /** Told how many pods gone have directories, and of how many these cannot be removed, as often as that changes. */
  onOrphans?: ((pods: number, failed: number) => void) | undefined;
  /** Milliseconds between two full looks at what is on disk when nothing has asked for one. */
  fullMs?: number;
  /** Milliseconds between garbage collections (section 11: 1 min). */
  garbageMs?: number;
}

/** Pod directories are named by UID; anything else in the pods directory is not ours to remove. */
const uidShape = /^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$/;

/**
 * Cleans up what pods left behind that no worker looks after (features.md B19, H32). One look at the disk, one garbage
 * collection and one clean-up of each pod at a time; none of them waits for another, so that a directory which cannot be
 * unmounted, or a runtime call that hangs, holds up only what it is about.
 */
export class Housekeeping {
  readonly #o: HousekeepingOptions;
  #looking = false;
  #collecting = false;
  /** UIDs of pods whose remainder is being cleaned up. */
  readonly #cleaning = new Set<string>();
  /** Pods gone whose directories were there at the last look, with whether these could not be removed. */
  #orphans = new Map<string, boolean>();
  #dirty = true;
  #lastFull = 0;
  #lastGarbage: number;

  constructor(options: HousekeepingOptions) {
    this.#o = options;
    this.#lastGarbage = options.clock.now();
  }

  /** A pod has gone, or something changed that may have left a remainder: the next run looks at the disk. */
  mark(): void {
    this.#dirty = true;
  }

  /** Starts what is due and not under way. */
  trigger(): void {
    const { clock, scope, fullMs = 60_000, garbageMs = 60_000 } = this.#o;
    const now = clock.now();
    if (!this.#looking && (this.#dirty || now - this.#lastFull >= fullMs)) {
      this.#looking = true;
      this.#dirty = false;
      this.#lastFull = now;
      scope.spawn("housekeeping", async (signal) => {
        try {
          await this.#look(signal);
        } catch (thrown) {
          this.#failed(signal, "housekeeping failed; trying again", thrown);
        } finally {
          this.#looking = false;
        }
      });
    }
    if (!this.#collecting && now - this.#lastGarbage >= garbageMs) {
      this.#collecting = true;
      this.#lastGarbage = now;
      scope.spawn("garbage collection", async (signal) => {
        try {
          await this.#o.collectGarbage(signal);
        } catch (thrown) {
          this.#failed(signal, "garbage collection failed; trying again", thrown);
        } finally {
          this.#collecting = false;
        }
      });
    }
  }

  #failed(signal: AbortSignal, what: string, thrown: unknown): void {
    if (signal.aborted) throw thrown;
    this.#dirty = true;
    this.#o.log.error(what, { error: messageOf(thrown) });
  }

  /** Finds what is left of pods that nobody looks after; each is cleaned up on its own. */
  async #look(signal: AbortSignal): Promise<void> {
    const { host, workers, volumes, cgroups, podsDir, scope } = this.#o;
    const withVolumes = new Set(await volumes.podsOnDisk());
    const dirs = await host.stat(podsDir) ? await host.readDir(podsDir) : [];
    const withDirs = new Set(
      dirs.flatMap(({ name, kind }) => kind === "directory" && uidShape.test(name) ? [name] : []),
    );
    const withGroups = new Set(await cgroups.podsWithGroups());
    const gone = [...withDirs].filter((uid) => !workers.has(uid));
    this.#orphans = new Map(gone.map((uid) => [uid, this.#orphans.get(uid) ?? false]));
    this.#tellOrphans();
    for (const uid of new Set([...withDirs, ...withGroups])) {
      if (signal.aborted) return;
      if (workers.has(uid) || this.#cleaning.has(uid)) continue;
      this.#cleaning.add(uid);
      scope.spawn(`housekeeping of ${uid}`, async (signal) => {
        try {
          await this.#clean(uid, {
            volumes: withVolumes.has(uid),
            dir: withDirs.has(uid),
            group: withGroups.has(uid),
            signal,
          });
        } finally {
          this.#cleaning.delete(uid);
        }
      });
    }
  }

  #tellOrphans(uid?: string, failed = false): void {
    if (uid !== undefined && this.#orphans.has(uid)) this.#orphans.set(uid, failed);
    const all = [...this.#orphans.values()];
    this.#o.onOrphans?.(all.length, all.filter((each) => each).length);
  }

  async #clean(
    uid: string,
    left: { volumes: boolean; dir: boolean; group: boolean; signal: AbortSignal },
  ): Promise<void> {
    const { host, volumes, cgroups, workers, podsDir, log } = this.#o;
    const { signal } = left;
    const step = async (what: string, work: () => Promise<void>): Promise<boolean> => {
      // A pod may have come back meanwhile.
      if (signal.aborted || workers.has(uid)) return false;
      try {
        await work();
        return true;
      } catch (thrown) {
        if (signal.aborted) throw thrown;
        this.#dirty = true;
        log.warn(`the ${what} of a pod that is gone cannot be removed yet`, { podUid: uid, error: messageOf(thrown) });
        return false;
      }
    };
    if (left.volumes) {
      // While its volumes are there the group only loses its CPU (runtime-contract.md section 6); where that fails,
      // the more reason to go on.
      if (left.group) await step("control group's CPU", () => cgroups.minimiseCpu(uid));
      if (!await step("volumes", () => volumes.unmountPod(uid, signal))) {
        return this.#tellOrphans(uid, !workers.has(uid));
      }
    }
    if (left.group) await step("control group", () => cgroups.destroyPod(uid));
    if (!left.dir) return;
    const removed = await step("directory", () => host.removeTree(`${podsDir}/${uid}`));
    if (removed) log.info("removed the directory of a pod that is gone", { podUid: uid });
    this.#tellOrphans(uid, !removed && !workers.has(uid));
  }
}
