import { type ImageService, isNotFound, type RuntimeService } from "../../cri/api.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { isAborted, messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";
import { Semaphore } from "../../mod/base/semaphore.ts";
import type { EventSink } from "../../mod/kube/events.ts";
import {
  type ImageDisk,
  type ImageGcPlan,
  type ImageGcPolicy,
  type ImageRecord,
  type ImageVerdict,
  planImageGC,
  showBytes,
} from "./image_plan.ts";
import { ImageRecords, imageUsers, sandboxImageIn } from "./image_records.ts";

export interface ImageGCOptions {
  readonly runtime: Pick<RuntimeService, "listContainers" | "containerStatus" | "status">;
  readonly images: Pick<ImageService, "listImages" | "imageStatus" | "removeImage" | "imageFsInfo">;
  readonly host: Pick<Host, "space">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: EventSink;
  readonly policy: ImageGcPolicy;
  /** False when the runtime cannot mount images: then containers need not be asked one by one what they mounted. */
  readonly imageVolumes: boolean;
  /** Told of each image that was removed, as the metric image_garbage_collected_total counts them. */
  readonly onRemoved?: (why: "age" | "space") => void;
  /** Told, after each look, which images there are by their ids, and when it was begun to ask. */
  readonly onImages?: (ids: ReadonlySet<string>, askedAt: number) => Promise<void>;
}

/** How often images are looked at, in milliseconds (runtime-contract.md section 21). */
const periodMs = 5 * 60_000;

/** Why a collection did not do all that it should have; what could be removed has gone. */
class ImageGCError extends Error {
  override readonly name = "ImageGCError";
}

/**
 * Removes images that nothing uses (runtime-contract.md section 21, features E10 to E12): by age, and by the use of the
 * disk that they are on. Start `run` once; what it would do is told by `preview`.
 */
export class ImageGC {
  readonly #o: ImageGCOptions;
  readonly #records = new ImageRecords();
  readonly #since: number;
  readonly #turn = new Semaphore(1);

  constructor(options: ImageGCOptions) {
    this.#o = options;
    this.#since = options.clock.now();
  }

  /** False when the policy never asks for a removal; images are then only watched. */
  get enabled(): boolean {
    const { highPercent, maxAgeMs } = this.#o.policy;
    return !(highPercent === 100 && maxAgeMs === 0);
  }

  /** Collects at once and each five minutes until the signal aborts. The second failure in a row is a node event. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, log, events } = this.#o;
    let failed = false;
    while (!signal.aborted) {
      try {
        if (this.enabled) await this.collect(signal);
        else await this.#observe(signal);
        await this.#tellImages(signal);
        failed = false;
      } catch (thrown) {
        if (signal.aborted) throw thrown;
        const message = messageOf(thrown);
        log.warn("image garbage collection failed", { error: message, again: failed });
        // One failure is often that the runtime has just started.
        if (failed) events.node({ type: "Warning", reason: "ImageGCFailed", message });
        failed = true;
      }
      await clock.sleep(periodMs, signal);
    }
  }

  async #tellImages(signal: AbortSignal): Promise<void> {
    const { images, clock, onImages } = this.#o;
    if (!onImages) return;
    const askedAt = clock.now();
    await onImages(new Set((await images.listImages({ signal })).map(({ id }) => id)), askedAt);
  }

  /** What a collection would do now, image by image, each with its reason. Changes nothing. */
  async preview(signal: AbortSignal, options: { unused?: boolean } = {}): Promise<ImageGcPlan> {
    return this.#planFor(await this.#observe(signal), await this.#disk(signal), options);
  }

  /**
   * One collection. With `unused` every image that nothing uses and that is old enough goes, whatever the disk's use.
   * Rejects when the runtime or the disk cannot be asked, when an image could not be removed (all others were tried),
   * and when not enough could be freed. Collections come one after another: of two at once each would find images gone
   * that the other has removed.
   */
  collect(signal: AbortSignal, options: { unused?: boolean } = {}): Promise<void> {
    return this.#turn.use(() => this.#collect(signal, options), signal);
  }

  async #collect(signal: AbortSignal, options: { unused?: boolean }): Promise<void> {
    const { events, policy } = this.#o;
    const seen = await this.#observe(signal);
    // Age is looked at first and without the disk, which is another one afterwards.
    const old = this.#planFor(seen, { capacity: 0, available: 0 }, {}).verdicts.filter((one) => one.remove);
    const byAge = await this.#removeAll(old, signal);
    const images = old.length > 0 ? await this.#observe(signal) : seen;
    const plan = this.#planFor(images, await this.#disk(signal), options);
    const bySpace = await this.#removeAll(plan.verdicts.filter((one) => one.reason !== "UnusedTooLong"), signal);
    const failures = [...byAge.failures, ...bySpace.failures];
    if (failures.length > 0) throw new ImageGCError(`images cannot be removed: ${failures.join("; ")}`);
    if (options.unused || bySpace.freed >= plan.toFree) return;
    const message = `the image file system is ${plan.usagePercent} % full and should be freed of ${
      showBytes(plan.toFree)
    } to get down to ${policy.lowPercent} %, but images that nothing uses held only ${
      showBytes(bySpace.freed)
    }: look for large images in use, logs, volumes and other data on it`;
    events.node({ type: "Warning", reason: "FreeDiskSpaceFailed", message });
    throw new ImageGCError(message);
  }

  async #observe(signal: AbortSignal): Promise<ImageRecord[]> {
    const { runtime, images, clock, imageVolumes } = this.#o;
    const sandboxImage = await this.#sandboxImage(signal);
    // Images before containers: what a container uses by the time that it is listed was not listed as unused before.
    const all = await images.listImages({ signal });
    const containers = await runtime.listContainers(undefined, { signal });
    const mounted = new Map<string, string[]>();
    const users = imageUsers({ images: all, containers, mounted, sandboxImage });
    if (imageVolumes && all.some((image) => !image.pinned && !users.has(image.id))) {
      for (const { id } of containers) mounted.set(id, await this.#mounted(id, signal));
    }
    return this.#records.observe({ images: all, containers, mounted, sandboxImage, now: clock.now() });
  }

  async #mounted(id: string, signal: AbortSignal): Promise<string[]> {
    try {
      const { status } = await this.#o.runtime.containerStatus(id, { signal });
      return (status?.mounts ?? []).flatMap((mount) => mount.image?.image ? [mount.image.image] : []);
    } catch (thrown) {
      if (isNotFound(thrown)) return [];
      throw thrown;
    }
  }

  /** The id of the sandbox image. Newer runtimes pin it; of older ones the configuration tells. */
  async #sandboxImage(signal: AbortSignal): Promise<string | undefined> {
    const { runtime, images } = this.#o;
    const name = sandboxImageIn((await runtime.status({ verbose: true }, { signal })).info);
    if (name === undefined) return undefined;
    return (await images.imageStatus({ image: name }, { signal }))?.id;
  }

  async #disk(signal: AbortSignal): Promise<ImageDisk> {
    const { images, host, events } = this.#o;
    const { imageFilesystems: [first] } = await images.imageFsInfo({ signal });
    const path = first?.fsId?.mountpoint;
    if (!path) throw new ImageGCError("the runtime does not tell where it keeps its images (ImageFsInfo)");
    const { total, available } = await host.space(path);
    if (total > 0) return { capacity: total, available };
    const message = "invalid capacity 0 on image filesystem";
    events.node({ type: "Warning", reason: "InvalidDiskCapacity", message });
    throw new ImageGCError(message);
  }

  #planFor(images: readonly ImageRecord[], disk: ImageDisk, { unused = false }: { unused?: boolean }): ImageGcPlan {
    const { policy, clock } = this.#o;
    return planImageGC({ images, policy, disk, now: clock.now(), since: this.#since, unused });
  }

  async #removeAll(verdicts: readonly ImageVerdict[], signal: AbortSignal) {
    const { images, log, onRemoved } = this.#o;
    const failures: string[] = [];
    let freed = 0;
    for (const { image, remove, reason, message } of verdicts) {
      if (!remove) continue;
      const name = image.names[0] ?? image.id;
      try {
        const spec = { image: image.id, runtimeHandler: image.handler };
        await images.removeImage(spec, { because: { reason, message: `image ${name}: ${message}` }, signal });
        freed += image.sizeBytes;
        log.info("removed an image", { image: name, id: image.id, size: image.sizeBytes, why: message });
        onRemoved?.(reason === "UnusedTooLong" ? "age" : "space");
      } catch (thrown) {
        if (isAborted(thrown) || signal.aborted) throw thrown;
        failures.push(messageOf(thrown));
      }
    }
    return { freed, failures };
  }
}
