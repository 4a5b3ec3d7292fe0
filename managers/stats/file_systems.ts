import type { ImageService } from "../../cri/api.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Scope } from "../../mod/base/scope.ts";
import { Measured } from "./measured.ts";
import { fsOf, mountOf } from "./node_files.ts";
import type { FsSample, NodeDisk } from "./types.ts";

/** What the runtime tells of its images, and where they lie. */
interface Images {
  readonly told: boolean;
  readonly at: number;
  readonly used?: number;
  readonly inodesUsed?: number;
  readonly path: string;
  /** True when they lie on the file system that the agent's own directory is on. */
  readonly onNodeFs: boolean;
  /** Sources of the mounts, where there are. */
  readonly device?: string;
  readonly nodeDevice?: string;
}

export interface FileSystemsOptions {
  readonly host: Pick<Host, "space" | "mounts">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly scope: Scope;
  readonly images: Pick<ImageService, "imageFsInfo">;
  readonly rootDir: string;
  /** Longest that the runtime is waited for, milliseconds. */
  readonly limitMs: number;
}

/** How long the runtime's word about its images is kept, and when it is forgotten; milliseconds. */
const keepMs = 10_000, forgetMs = 120_000;

/** The node's own file system, and the images'. Room is always looked at anew; what images take is the runtime's word. */
export class FileSystems {
  readonly #o: FileSystemsOptions;
  readonly #images: Measured<Images>;

  constructor(options: FileSystemsOptions) {
    this.#o = options;
    this.#images = new Measured({
      ...options,
      name: "images' file system",
      keepMs,
      forgetMs,
      measure: async (_key, signal, last) => await this.#ask(signal) ?? last,
    });
  }

  /** Both; what cannot be told is left out, and said in the log. */
  async read(): Promise<{ fs?: FsSample; imageFs?: FsSample; disks?: NodeDisk[] }> {
    const { host, clock, rootDir, limitMs } = this.#o;
    const now = () => clock.now();
    const [fs, told] = await Promise.all([fsOf(host, rootDir, now), this.#images.of([""], limitMs)]);
    const images = told.get("");
    const whole = images && (images.onNodeFs ? fs : await this.#at(images.path));
    const { available, capacity, inodesFree, inodes } = whole ?? {};
    const disks: NodeDisk[] = images?.nodeDevice === undefined ? [] : [{ device: images.nodeDevice, fs }];
    if (images?.device !== undefined && whole && !images.onNodeFs) disks.push({ device: images.device, fs: whole });
    return {
      fs,
      disks,
      ...(images?.told
        ? {
          imageFs: {
            at: images.at,
            ...(available === undefined ? {} : { available }),
            ...(capacity === undefined ? {} : { capacity }),
            ...(inodesFree === undefined ? {} : { inodesFree }),
            ...(inodes === undefined ? {} : { inodes }),
            ...(images.used === undefined ? {} : { used: images.used }),
            ...(images.inodesUsed === undefined ? {} : { inodesUsed: images.inodesUsed }),
          },
        }
        : {}),
    };
  }

  /** Room where the images lie. The agent may be allowed to look at its own directories only. */
  async #at(path: string): Promise<FsSample | undefined> {
    const { host, clock, log } = this.#o;
    if (path === "") return undefined;
    try {
      return await fsOf(host, path, () => clock.now());
    } catch (thrown) {
      log.detail(2, "the images' file system cannot be looked at", { path, error: messageOf(thrown) });
      return undefined;
    }
  }

  async #ask(signal: AbortSignal): Promise<Images | undefined> {
    const { images, host, log, clock, rootDir, limitMs } = this.#o;
    try {
      const [{ imageFilesystems: [first] }, table] = await Promise.all([
        images.imageFsInfo({ timeoutMs: limitMs, signal }),
        host.mounts(),
      ]);
      const own = mountOf(table, rootDir);
      const path = first?.fsId?.mountpoint ?? "";
      const mount = path === "" ? undefined : mountOf(table, path);
      // Bound a second time elsewhere, it is still one file system.
      const same = mount !== undefined && own !== undefined &&
        (mount.id === own.id || (mount.source === own.source && mount.source.startsWith("/")));
      return {
        told: first !== undefined,
        at: Number((first?.timestamp ?? 0n) / 1_000_000n) || clock.now(),
        ...(first?.usedBytes ? { used: Number(first.usedBytes.value) } : {}),
        ...(first?.inodesUsed ? { inodesUsed: Number(first.inodesUsed.value) } : {}),
        path,
        onNodeFs: same,
        ...(mount ? { device: mount.source } : {}),
        ...(own ? { nodeDevice: own.source } : {}),
      };
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      log.warn("the runtime does not tell of its images' file system", { error: messageOf(thrown) });
      return undefined;
    }
  }
}
