import type { ImageService } from "../../cri/api.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";
import { fsOf, mountOf } from "./node_files.ts";
import type { FsSample } from "./types.ts";

/** The node's own file system, and the images'. */
export class FileSystems {
  readonly #o: {
    readonly host: Pick<Host, "space" | "mounts">;
    readonly clock: Clock;
    readonly log: Logger;
    readonly images: Pick<ImageService, "imageFsInfo">;
    readonly rootDir: string;
    /** Longest that the runtime is waited for, milliseconds. */
    readonly limitMs: number;
  };

  constructor(options: {
    readonly host: Pick<Host, "space" | "mounts">;
    readonly clock: Clock;
    readonly log: Logger;
    readonly images: Pick<ImageService, "imageFsInfo">;
    readonly rootDir: string;
    readonly limitMs: number;
  }) {
    this.#o = options;
  }

  /** Both; what cannot be told is left out, and said in the log. */
  async read(): Promise<{ fs?: FsSample; imageFs?: FsSample }> {
    const { host, clock, rootDir } = this.#o;
    const fs = await fsOf(host, rootDir, () => clock.now());
    const imageFs = await this.#images(fs);
    return { fs, ...(imageFs ? { imageFs } : {}) };
  }

  async #images(nodeFs: FsSample): Promise<FsSample | undefined> {
    const { images, log, clock, limitMs } = this.#o;
    try {
      const { imageFilesystems: [first] } = await images.imageFsInfo({ timeoutMs: limitMs });
      if (!first) return undefined;
      const whole = await this.#whole(first.fsId?.mountpoint ?? "", nodeFs);
      const { available, capacity, inodesFree, inodes } = whole ?? {};
      return {
        at: Number(first.timestamp / 1_000_000n) || clock.now(),
        ...(available === undefined ? {} : { available }),
        ...(capacity === undefined ? {} : { capacity }),
        ...(inodesFree === undefined ? {} : { inodesFree }),
        ...(inodes === undefined ? {} : { inodes }),
        ...(first.usedBytes ? { used: Number(first.usedBytes.value) } : {}),
        ...(first.inodesUsed ? { inodesUsed: Number(first.inodesUsed.value) } : {}),
      };
    } catch (thrown) {
      log.warn("the runtime does not tell of its images' file system", { error: messageOf(thrown) });
      return undefined;
    }
  }

  /** The file system that the images lie on. The agent may be allowed to look at its own directories only. */
  async #whole(path: string, nodeFs: FsSample): Promise<FsSample | undefined> {
    const { host, rootDir, clock, log } = this.#o;
    if (path === "") return undefined;
    const table = await host.mounts();
    const mount = mountOf(table, path);
    if (mount && mount.id === mountOf(table, rootDir)?.id) return nodeFs;
    try {
      return await fsOf(host, path, () => clock.now());
    } catch (thrown) {
      // Bound a second time elsewhere, it is still one file system.
      const own = mountOf(table, rootDir);
      if (mount && own && own.source === mount.source && mount.source.startsWith("/")) return nodeFs;
      log.detail(2, "the images' file system cannot be looked at", { path, error: messageOf(thrown) });
      return undefined;
    }
  }
}
