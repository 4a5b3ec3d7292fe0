import type { Backoff, BackoffState } from "../../mod/base/backoff.ts";
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
  /** Resolved when the next write has ended. */
  #next: PromiseWithResolvers<void> | undefined;
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

  /**
   * Writes the back-off as it is now, once for several changes that come while a write is under way. Resolves when it
   * is on disk, or cannot be put there, which is told.
   */
  save(): Promise<void> {
    const next = this.#next ??= Promise.withResolvers<void>();
    if (!this.#running) {
      this.#running = true;
      this.#o.scope.spawn("keep the back-off", () => this.#write());
    }
    return next.promise;
  }

  async #write(): Promise<void> {
    const { host, path, backoff, log } = this.#o;
    for (let asked = this.#next; asked; asked = this.#next) {
      this.#next = undefined;
      try {
        backoff.prune();
        await host.write(path, JSON.stringify(backoff.snapshot()), { mode: 0o600, atomic: true });
      } catch (thrown) {
        log.warn("the restart back-off cannot be kept on disk", { path, error: messageOf(thrown) });
      } finally {
        asked.resolve();
      }
    }
    this.#running = false;
  }
}

function isSnapshot(value: unknown): value is BackoffState {
  const isObject = (e: unknown) => typeof e === "object" && e !== null;
  const isStep = (e: unknown) =>
    isObject(e) && "delay" in e && Number.isFinite(e.delay) && "last" in e && Number.isFinite(e.last);
  const isUnder = (e: unknown) =>
    isObject(e) && "at" in e && Number.isFinite(e.at) && "before" in e && (e.before === null || isStep(e.before));
  const isEntry = (e: unknown) => isStep(e) && isObject(e) && (!("under" in e) || isUnder(e.under));
  return typeof value === "object" && value !== null && !Array.isArray(value) && Object.values(value).every(isEntry);
}
