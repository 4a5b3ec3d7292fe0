import { messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Scope } from "../../mod/base/scope.ts";
import type { PodStatus } from "../../mod/kube/types.ts";

export interface StatusStoreOptions {
  host: Pick<Host, "mkdir" | "readDir" | "readText" | "stat" | "write" | "remove">;
  /** Where the files are; one JSON file a pod. */
  dir: string;
  log: Logger;
  scope: Scope;
}

/** A file of ours is `<uid>.json`; anything else in the directory is left alone. */
const fileShape = /^([A-Za-z0-9][A-Za-z0-9._-]{0,252})\.json$/;

/**
 * Keeps each pod's newest status on disk, so that an agent that is killed and started again goes on from it: readiness,
 * restart counts, transition times and ends survive. Writing never holds up a pod; of several changes that come while a
 * write runs, only the last is written.
 */
export class StatusStore {
  readonly #o: StatusStoreOptions;
  readonly #waiting = new Map<string, PodStatus | undefined>();
  /** What could not be written, to be tried again. */
  readonly #unwritten = new Map<string, PodStatus | undefined>();
  #running = false;
  #failed = false;

  constructor(options: StatusStoreOptions) {
    this.#o = options;
  }

  /** The statuses that were kept, by UID. A file that cannot be read or understood is dropped and told. */
  async load(): Promise<Map<string, PodStatus>> {
    const { host, dir, log } = this.#o;
    const statuses = new Map<string, PodStatus>();
    let names: string[] = [];
    try {
      await host.mkdir(dir, { mode: 0o750 });
      names = (await host.readDir(dir)).map((entry) => entry.name);
    } catch (thrown) {
      log.error("kept pod statuses cannot be read; the pods' states are found out anew", {
        dir,
        error: messageOf(thrown),
      });
    }
    for (const name of names) {
      const uid = fileShape.exec(name)?.[1];
      if (uid === undefined) continue;
      try {
        const status: unknown = JSON.parse(await host.readText(`${dir}/${name}`));
        if (!isStatus(status)) throw new Error("not a pod status");
        statuses.set(uid, status);
      } catch (thrown) {
        log.warn("a kept pod status cannot be used; the pod's state is found out anew", {
          file: `${dir}/${name}`,
          error: messageOf(thrown),
        });
        await host.remove(`${dir}/${name}`);
      }
    }
    return statuses;
  }

  /** Keeps a status. */
  save(uid: string, status: PodStatus): void {
    this.#unwritten.delete(uid);
    this.#waiting.set(uid, status);
    this.#write();
  }

  /** Tries once more what could not be written, such as to a disk that was full. Does nothing when nothing is left. */
  retry(): void {
    if (this.#unwritten.size === 0) return;
    for (const [uid, status] of this.#unwritten) if (!this.#waiting.has(uid)) this.#waiting.set(uid, status);
    this.#unwritten.clear();
    this.#write();
  }

  /** Forgets a pod. */
  remove(uid: string): void {
    this.#unwritten.delete(uid);
    this.#waiting.set(uid, undefined);
    this.#write();
  }

  #write(): void {
    if (this.#running) return;
    this.#running = true;
    this.#o.scope.spawn("keep statuses", async () => {
      try {
        for (const next = () => this.#waiting.entries().next().value; next();) {
          const [uid, status] = next()!;
          this.#waiting.delete(uid);
          await this.#writeOne(uid, status);
        }
      } finally {
        this.#running = false;
      }
    });
  }

  async #writeOne(uid: string, status: PodStatus | undefined): Promise<void> {
    const { host, dir, log } = this.#o;
    const path = `${dir}/${uid}.json`;
    if (!fileShape.test(`${uid}.json`)) return;
    try {
      if (status === undefined) await host.remove(path);
      else await host.write(path, JSON.stringify(status), { mode: 0o600, atomic: true });
      this.#failed = false;
    } catch (thrown) {
      if (!this.#waiting.has(uid)) this.#unwritten.set(uid, status);
      // Without the file a restart finds out the state anew; that is worth one line, not one for each change.
      if (!this.#failed) log.error("pod statuses cannot be kept on disk", { path, error: messageOf(thrown) });
      this.#failed = true;
    }
  }
}

function isStatus(value: unknown): value is PodStatus {
  return typeof value === "object" && value !== null && !Array.isArray(value) && "phase" in value &&
    typeof value.phase === "string";
}
