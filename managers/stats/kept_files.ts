import type { Clock } from "../../mod/base/clock.ts";
import type { Host, KeptFile } from "../../mod/base/host.ts";
import type { Scope } from "../../mod/base/scope.ts";
import { isAborted } from "../../mod/base/errors.ts";
import { softLimit } from "./process_files.ts";

type Files = Pick<Host, "readTextNow" | "keepOpen" | "procRoot">;

/** Most files that stay open, and the part of the process's limit that they may be. */
const most = 4096, part = 1 / 4;
/** Files that nobody has read for this long are closed (a scraper comes more often), and how often that is looked at. */
const idleMs = 40_000, sweepMs = 10_000;

/**
 * Reads files of control groups that are read at every scrape, and leaves them open while somebody scrapes: to open one
 * costs four times what it costs to read it. Beyond the limit files are opened each time.
 */
export class KeptFiles {
  readonly #o: { readonly host: Files; readonly clock: Clock; readonly scope: Scope };
  readonly #kept = new Map<string, { file: KeptFile; readAt: number }>();
  #limit: number | undefined;
  #sweeping = false;

  constructor(options: { host: Files; clock: Clock; scope: Scope }) {
    this.#o = options;
  }

  /** As Host.readTextNow. */
  read(path: string): string | undefined {
    const { host, clock } = this.#o;
    const known = this.#kept.get(path);
    if (known) {
      const text = known.file.read();
      if (text !== undefined) {
        known.readAt = clock.now();
        return text;
      }
      this.#drop(path);
      return host.readTextNow(path);
    }
    if (this.#kept.size >= this.#most()) return host.readTextNow(path);
    const file = host.keepOpen(path);
    if (!file) return undefined;
    const text = file.read();
    if (text === undefined) {
      file[Symbol.dispose]();
      return host.readTextNow(path);
    }
    this.#kept.set(path, { file, readAt: clock.now() });
    this.#sweepLater();
    return text;
  }

  /** Files that are open now. */
  get size(): number {
    return this.#kept.size;
  }

  #most(): number {
    const { host } = this.#o;
    return this.#limit ??= Math.floor(
      Math.min(most, (softLimit(host.readTextNow(`${host.procRoot}/self/limits`)) ?? 0) * part),
    );
  }

  #drop(path: string): void {
    this.#kept.get(path)?.file[Symbol.dispose]();
    this.#kept.delete(path);
  }

  /** Closes what is idle, until nothing is left or the agent ends. */
  #sweepLater(): void {
    if (this.#sweeping) return;
    this.#sweeping = true;
    const { scope, clock } = this.#o;
    scope.spawn("idle files of control groups", async (signal) => {
      try {
        while (this.#kept.size > 0) {
          await clock.sleep(sweepMs, signal);
          const since = clock.now() - idleMs;
          for (const [path, { readAt }] of this.#kept) if (readAt <= since) this.#drop(path);
        }
      } catch (thrown) {
        if (!isAborted(thrown)) throw thrown;
      } finally {
        this.#sweeping = false;
        if (signal.aborted) { for (const path of this.#kept.keys()) this.#drop(path); }
      }
    });
  }
}
