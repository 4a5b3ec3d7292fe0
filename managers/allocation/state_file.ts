import { KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Scope } from "../../mod/base/scope.ts";
import type { PodResourceInfo } from "../../mod/pod/resize/allocation.ts";
import { decodeCheckpoint, encodeCheckpoint, type PodResourceTable } from "../../mod/pod/resize/checkpoint.ts";

export interface StateFileOptions {
  host: Pick<Host, "readText" | "stat" | "write">;
  path: string;
  log: Logger;
  scope: Scope;
}

/** Resources by pod UID, in memory and in a file that the reference reads too (features.md section 12). */
export class StateFile {
  readonly #o: StateFileOptions;
  #table: PodResourceTable = new Map();
  #written = "";
  /** Resolved when the next write has ended. */
  #next: PromiseWithResolvers<void> | undefined;
  #running = false;

  constructor(options: StateFileOptions) {
    this.#o = options;
  }

  /**
   * Takes back what was kept.
   * @throws KubeletError BadConfig when the file cannot be used: by a guess pods could get other resources than they have
   */
  async load(): Promise<void> {
    const { host, path } = this.#o;
    if (!await host.stat(path)) return;
    try {
      this.#written = await host.readText(path);
      this.#table = decodeCheckpoint(this.#written);
    } catch (thrown) {
      throw new KubeletError(
        "BadConfig",
        `could not restore state from checkpoint ${path}: ${
          messageOf(thrown)
        }; please drain this node and delete the ` +
          "file before restarting the kubelet",
        { cause: thrown },
      );
    }
  }

  get(uid: string): PodResourceInfo | undefined {
    return this.#table.get(uid);
  }

  /** Changes a pod's entry; resolves when that is on disk, or cannot be put there, which is told. */
  set(uid: string, info: PodResourceInfo): Promise<void> {
    this.#table.set(uid, info);
    return this.#save();
  }

  /** A pod that is gone is left out of the file at its next write. */
  delete(uid: string): void {
    this.#table.delete(uid);
  }

  uids(): string[] {
    return [...this.#table.keys()];
  }

  /** Resolves when everything so far is on disk. */
  async kept(): Promise<void> {
    if (this.#running || this.#next) await this.#save();
  }

  /** Writes what is there now, once for several changes that come while a write is under way. */
  #save(): Promise<void> {
    const next = this.#next ??= Promise.withResolvers<void>();
    if (!this.#running) {
      this.#running = true;
      this.#o.scope.spawn("keep resources", () => this.#write());
    }
    return next.promise;
  }

  async #write(): Promise<void> {
    const { host, path, log } = this.#o;
    for (let asked = this.#next; asked; asked = this.#next) {
      this.#next = undefined;
      try {
        const text = encodeCheckpoint(this.#table);
        if (text !== this.#written) {
          await host.write(path, text, { mode: 0o600, atomic: true });
          this.#written = text;
        }
      } catch (thrown) {
        log.warn("the resources of pods cannot be kept on disk", { path, error: messageOf(thrown) });
      } finally {
        asked.resolve();
      }
    }
    this.#running = false;
  }
}
