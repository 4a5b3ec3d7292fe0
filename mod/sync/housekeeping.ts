import type { CgroupManager } from "../../managers/cgroups/types.ts";
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
  cgroups: Pick<CgroupManager, "podsWithGroups" | "destroyPod">;
  volumes: Pick<VolumeManager, "podsOnDisk" | "unmountPod">;
  /** `<root>/pods`. */
  podsDir: string;
  /** Removes dead containers, sandboxes and logs that nobody needs (runtime-contract.md section 21). */
  collectGarbage: (signal: AbortSignal) => Promise<void>;
  /** Milliseconds between two full looks at what is on disk when nothing has asked for one. */
  fullMs?: number;
  /** Milliseconds between garbage collections (section 11: 1 min). */
  garbageMs?: number;
}

/** Pod directories are named by UID; anything else in the pods directory is not ours to remove. */
const uidShape = /^[A-Za-z0-9][A-Za-z0-9._-]{0,252}$/;

/** Cleans up what pods left behind that no worker looks after (features.md B19, H32). One run at a time. */
export class Housekeeping {
  readonly #o: HousekeepingOptions;
  #running = false;
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

  /** Starts a run if one is due and none is under way. */
  trigger(): void {
    if (this.#running) return;
    const now = this.#o.clock.now();
    const full = this.#dirty || now - this.#lastFull >= (this.#o.fullMs ?? 60_000);
    const garbage = now - this.#lastGarbage >= (this.#o.garbageMs ?? 60_000);
    if (!full && !garbage) return;
    this.#running = true;
    this.#o.scope.spawn("housekeeping", async (signal) => {
      try {
        if (full) {
          this.#dirty = false;
          this.#lastFull = now;
          await this.#cleanDisk(signal);
        }
        if (garbage) {
          this.#lastGarbage = now;
          await this.#o.collectGarbage(signal);
        }
      } catch (thrown) {
        if (signal.aborted) throw thrown;
        this.#dirty = true;
        this.#o.log.error("housekeeping failed; trying again", { error: messageOf(thrown) });
      } finally {
        this.#running = false;
      }
    });
  }

  async #cleanDisk(signal: AbortSignal): Promise<void> {
    const { host, workers, volumes, cgroups, podsDir, log } = this.#o;
    const withVolumes = new Set(await volumes.podsOnDisk());
    if (signal.aborted) return;
    const dirs = await host.stat(podsDir) ? await host.readDir(podsDir) : [];
    for (const { name, kind } of dirs) {
      if (signal.aborted) return;
      if (kind !== "directory" || !uidShape.test(name) || workers.has(name)) continue;
      try {
        if (withVolumes.has(name)) await volumes.unmountPod(name, signal);
        await host.removeTree(`${podsDir}/${name}`);
        log.info("removed the directory of a pod that is gone", { podUid: name });
      } catch (thrown) {
        if (signal.aborted) throw thrown;
        this.#dirty = true;
        log.warn("the directory of a pod that is gone cannot be removed yet", {
          podUid: name,
          error: messageOf(thrown),
        });
      }
    }
    for (const uid of await cgroups.podsWithGroups(signal)) {
      if (signal.aborted) return;
      if (!workers.has(uid)) await cgroups.destroyPod(uid);
    }
  }
}
