import type { Backoff } from "../../mod/base/backoff.ts";
import { messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Scope } from "../../mod/base/scope.ts";

export interface BackoffStoreOptions {
  backoff: Backoff;
  host: Pick<Host, "readText" | "stat" | "write">;
  path: string;
  log: Logger;
  scope: Scope;
}

/** Keeps the restart back-off on disk, so that killing the agent does not let a crashing container restart at once. */
export class BackoffStore {
  readonly #o: BackoffStoreOptions;
  #dirty = false;
  #running = false;

  constructor(options: BackoffStoreOptions) {
    this.#o = options;
  }

  /** Takes back what was kept; a file that cannot be used is told and ignored. */
  async load(): Promise<void> {
    const { host, path, backoff, log } = this.#o;
    if (!await host.stat(path)) return;
    try {
      const kept: unknown = JSON.parse(await host.readText(path));
      if (!isSnapshot(kept)) throw new Error("it is not a table of delays");
      backoff.restore(kept);
      backoff.prune();
    } catch (thrown) {
      log.warn("the kept restart back-off cannot be used; it starts anew", { path, error: messageOf(thrown) });
    }
  }

  /** Notes that the back-off changed; it is written soon, once for several changes. */
  save(): void {
    this.#dirty = true;
    if (this.#running) return;
    this.#running = true;
    const { host, path, backoff, log, scope } = this.#o;
    scope.spawn("keep the back-off", async () => {
      try {
        while (this.#dirty) {
          this.#dirty = false;
          backoff.prune();
          await host.write(path, JSON.stringify(backoff.snapshot()), { mode: 0o600, atomic: true });
        }
      } catch (thrown) {
        log.warn("the restart back-off cannot be kept on disk", { path, error: messageOf(thrown) });
      } finally {
        this.#running = false;
      }
    });
  }
}

function isSnapshot(value: unknown): value is Record<string, { delay: number; last: number }> {
  const isEntry = (e: unknown) =>
    typeof e === "object" && e !== null && "delay" in e && Number.isFinite(e.delay) && "last" in e &&
    Number.isFinite(e.last);
  return typeof value === "object" && value !== null && !Array.isArray(value) && Object.values(value).every(isEntry);
}
