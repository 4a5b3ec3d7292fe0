import type { RuntimeService } from "../../cri/api.ts";
import { Backoff } from "../../mod/base/backoff.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { isAborted, messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import { isMissing } from "../../mod/base/host_error.ts";
import type { Because } from "../../mod/base/journal.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Scope } from "../../mod/base/scope.ts";
import { Semaphore } from "../../mod/base/semaphore.ts";
import type { ObservedContainer, ObservedPod } from "../../mod/pod/observed.ts";
import { lastRotated, overBudget, planRotation } from "./rotation_plan.ts";

export interface LogRotationOptions {
  readonly host: Pick<Host, "lstat" | "readDir" | "remove" | "rename" | "gzip">;
  readonly runtime: Pick<RuntimeService, "reopenContainerLog">;
  readonly clock: Clock;
  readonly log: Logger;
  /** Owns the rotations under way. */
  readonly scope: Scope;
  /** Only logs below it are rotated. */
  readonly podLogsDir: string;
  /** The pods as they were last seen. */
  readonly pods: () => Iterable<ObservedPod>;
  /** containerLogMaxSize, bytes; negative turns rotation off. */
  readonly maxSizeBytes: number;
  /** containerLogMaxFiles. */
  readonly maxFiles: number;
  /** containerLogMaxWorkers: logs whose old files are cleared and compressed at once. */
  readonly maxWorkers: number;
  /** containerLogMonitorInterval, milliseconds. */
  readonly intervalMs: number;
  /** --denolet-log-budget: bytes that all files of one container's log may have; none when not given. */
  readonly budgetBytes?: number;
}

/** How often logs are looked at that have a budget, in milliseconds: what is written in between can be too much. */
const budgetLookMs = 1_000;

/** The longest wait between two tries on a log that cannot be rotated, in milliseconds. */
const longestHoldMs = 300_000;

type Target = { readonly pod: ObservedPod; readonly container: ObservedContainer };

/**
 * Rotates the logs of running containers (runtime-contract.md section 21, features E15 and I23). An interval costs one
 * stat for each running container. Nothing is lost when a rotation fails or the agent ends in the middle of one: a log
 * that the runtime does not open anew gets its name back, and one that has no name is opened anew at the next look.
 */
export class LogRotation {
  readonly #o: LogRotationOptions;
  readonly #workers: Semaphore;
  /** Holds logs that could not be rotated, by container id. */
  readonly #held: Backoff;
  /** Containers whose log is being rotated; one may wait long for its runtime, without holding up the others. */
  readonly #busy = new Set<string>();
  /** A log of this size is rotated; negative for none. With a budget, all its files together keep to it. */
  readonly #maxSize: number;
  readonly #intervalMs: number;
  /** Containers of which it was said already that their log is over its budget. */
  readonly #told = new Set<string>();

  constructor(options: LogRotationOptions) {
    this.#o = options;
    this.#workers = new Semaphore(Math.max(1, options.maxWorkers));
    this.#held = new Backoff({ clock: options.clock, initial: options.intervalMs, max: longestHoldMs });
    const { budgetBytes, maxSizeBytes, maxFiles, intervalMs } = options;
    const share = budgetBytes === undefined ? Infinity : Math.max(1, Math.floor(budgetBytes / Math.max(2, maxFiles)));
    this.#maxSize = budgetBytes === undefined ? maxSizeBytes : maxSizeBytes < 0 ? share : Math.min(maxSizeBytes, share);
    this.#intervalMs = budgetBytes === undefined ? intervalMs : Math.min(intervalMs, budgetLookMs);
  }

  /** Looks at the logs each interval until the signal aborts; returns at once when rotation is turned off. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, scope } = this.#o;
    if (this.#maxSize < 0) return;
    await this.#recover(signal);
    while (!signal.aborted) {
      for (const rotate of await this.#look(signal)) scope.spawn("log rotation", rotate);
      await clock.sleep(this.#intervalMs, signal);
    }
  }

  /**
   * Gives logs of containers that have ended their name back, when an agent before this one ended between giving them
   * another and having a new one opened: no one would find them otherwise.
   */
  async #recover(signal: AbortSignal): Promise<void> {
    const { host, log, pods } = this.#o;
    for (const target of [...pods()].flatMap((pod) => pod.containers.map((container) => ({ pod, container })))) {
      const { state, logPath } = target.container;
      if (signal.aborted) return;
      if (state !== "exited" || !this.#isOurs(logPath)) continue;
      try {
        if (await host.lstat(logPath)) continue;
        const { dir, file, names } = await this.#files(logPath);
        const last = lastRotated(file, names);
        if (last === undefined) continue;
        await host.rename(`${dir}/${last}`, logPath);
        log.info("A log whose rotation was cut short has its name again", { path: logPath, was: last });
      } catch (thrown) {
        if (!isMissing(thrown)) this.#fail(target, "A container's log cannot be looked at", thrown);
      }
    }
  }

  /** A log's directory and own name, and the names of the regular files beside it. */
  async #files(logPath: string): Promise<{ dir: string; file: string; names: string[] }> {
    const slash = logPath.lastIndexOf("/");
    const dir = logPath.slice(0, slash);
    const entries = await this.#o.host.readDir(dir);
    const names = entries.filter((one) => one.kind === "file").map((one) => one.name);
    return { dir, file: logPath.slice(slash + 1), names };
  }

  /** Looks at the logs once; resolves when those that were large enough have been rotated. Rejects with Aborted only. */
  async sweep(signal: AbortSignal): Promise<void> {
    await Promise.all((await this.#look(signal)).map((rotate) => rotate(signal)));
  }

  /** Finds the logs that need something done; what is returned must be called. */
  async #look(signal: AbortSignal): Promise<((signal: AbortSignal) => Promise<void>)[]> {
    const { pods } = this.#o;
    this.#held.prune();
    this.#forget();
    const due: ((signal: AbortSignal) => Promise<void>)[] = [];
    const targets = [...pods()].flatMap((pod) => pod.containers.map((container) => ({ pod, container })));
    for (const target of targets) {
      const { container } = target;
      if (signal.aborted) return due;
      if (container.state !== "running" || this.#busy.has(container.id) || !this.#isOurs(container.logPath)) continue;
      if (this.#held.remaining(container.id) > 0) continue;
      const work = await this.#workFor(target);
      if (!work) continue;
      this.#busy.add(container.id);
      due.push(async (signal) => {
        try {
          await work(signal);
          this.#held.reset(container.id);
        } catch (thrown) {
          if (isAborted(thrown) && signal.aborted) throw thrown;
          this.#fail(target, "A container's log cannot be rotated; it is tried again", thrown);
        } finally {
          this.#busy.delete(container.id);
        }
      });
    }
    return due;
  }

  #forget(): void {
    if (this.#told.size === 0) return;
    const ids = new Set([...this.#o.pods()].flatMap((pod) => pod.containers.map(({ id }) => id)));
    for (const id of this.#told) if (!ids.has(id)) this.#told.delete(id);
  }

  /** The path comes from the runtime: only files below our own directory are touched. */
  #isOurs(path: string): boolean {
    return path.startsWith(`${this.#o.podLogsDir}/`) && !`${path}/`.includes("/../");
  }

  /** One stat tells what a log needs; undefined for nothing. */
  async #workFor(target: Target): Promise<((signal: AbortSignal) => Promise<void>) | undefined> {
    const { host } = this.#o;
    try {
      const info = await host.lstat(target.container.logPath);
      if (!info) return (signal) => this.#reopenMissing(target, signal);
      // An empty log has nothing to rotate, whatever the size is set to.
      if (info.kind !== "file" || info.size === 0 || info.size < this.#maxSize) return undefined;
      return (signal) => this.#rotate(target, info.size, signal);
    } catch (thrown) {
      this.#fail(target, "A container's log cannot be looked at", thrown);
      return undefined;
    }
  }

  #fail({ pod, container }: Target, message: string, thrown: unknown): void {
    this.#held.step(container.id);
    this.#o.log.warn(message, {
      pod: `${pod.name}_${pod.namespace}`,
      container: container.name,
      path: container.logPath,
      error: messageOf(thrown),
    });
  }

  #because({ pod, container }: Target, reason: string, message: string): Because {
    const { namespace, name, uid } = pod;
    return { pod: { namespace, name, uid }, container: container.name, reason, message };
  }

  /** Someone removed the log, or the agent ended between renaming it and having it opened anew. */
  async #reopenMissing(target: Target, signal: AbortSignal): Promise<void> {
    const { host, runtime } = this.#o;
    const { id, logPath } = target.container;
    const because = this.#because(target, "LogMissing", `its log ${logPath} is not there; the runtime opens it anew`);
    await runtime.reopenContainerLog(id, { because, signal });
    if (!await host.lstat(logPath)) throw new Error(`${logPath} is not there, also after it was opened anew`);
  }

  async #rotate(target: Target, size: number, signal: AbortSignal): Promise<void> {
    const { host, clock, log, maxFiles, budgetBytes } = this.#o;
    const { logPath } = target.container;
    const rotated = await this.#workers.use(async () => {
      const { dir, file, names } = await this.#files(logPath);
      const plan = planRotation({ file, names, maxFiles, now: clock.now() });
      for (const { name, why } of plan.remove) {
        await host.remove(`${dir}/${name}`);
        log.detail(4, "Removed an old log", { path: `${dir}/${name}`, why });
      }
      for (const name of plan.compress) await this.#compress(`${dir}/${name}`, signal);
      return `${dir}/${plan.rotated}`;
    }, signal);
    const limit = budgetBytes === undefined
      ? `containerLogMaxSize is ${this.#maxSize}`
      : `it is rotated from ${this.#maxSize} on, as all of it may have ${budgetBytes} (--denolet-log-budget)`;
    const message = `its log has ${size} bytes, and ${limit}`;
    await this.#renew(target, rotated, this.#because(target, "LogRotation", message), signal);
    log.detail(2, "Rotated a container's log", { path: logPath, rotated, size });
    if (budgetBytes !== undefined) await this.#keepToBudget(target, budgetBytes);
  }

  /** Removes what is too much of a log, oldest first. */
  async #keepToBudget({ pod, container }: Target, budget: number): Promise<void> {
    const { host, log } = this.#o;
    const { dir, file, names } = await this.#files(container.logPath);
    const sizes = new Map<string, number>();
    for (const name of names) sizes.set(name, (await host.lstat(`${dir}/${name}`))?.size ?? 0);
    for (const name of overBudget(file, sizes, budget)) {
      await host.remove(`${dir}/${name}`);
      const facts = { pod: `${pod.name}_${pod.namespace}`, container: container.name, path: `${dir}/${name}`, budget };
      const message = "A container writes more than its log's budget: its oldest lines are removed";
      if (this.#told.has(container.id)) log.detail(4, message, facts);
      else log.warn(message, facts);
      this.#told.add(container.id);
    }
  }

  /** Compresses a rotated log. One that cannot be (a full disk) stays as it is: the number of files is kept anyway. */
  async #compress(path: string, signal: AbortSignal): Promise<void> {
    const { host, log } = this.#o;
    const temporary = `${path}.tmp`;
    try {
      await host.gzip(path, temporary, signal);
      await host.rename(temporary, `${path}.gz`);
      // The container was removed with its logs meanwhile: this copy must not stay.
      if (!await host.lstat(path)) await host.remove(`${path}.gz`);
      else await host.remove(path);
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      log.warn("A rotated log cannot be compressed; it stays as it is", { path, error: messageOf(thrown) });
    }
  }

  /** Gives the log its new name and has the runtime open a new one; without that it gets its own name back. */
  async #renew(target: Target, rotated: string, because: Because, signal: AbortSignal): Promise<void> {
    const { host, runtime, log } = this.#o;
    const { id, logPath } = target.container;
    await host.rename(logPath, rotated);
    try {
      await runtime.reopenContainerLog(id, { because, signal });
    } catch (thrown) {
      // Where a call fails whose work was done all the same (a deadline), the new log must not be overwritten.
      if (await host.lstat(logPath)) throw thrown;
      try {
        await host.rename(rotated, logPath);
      } catch (second) {
        log.error("A rotated log cannot be given its name back; what its container writes goes there", {
          path: logPath,
          rotated,
          error: messageOf(second),
        });
      }
      throw thrown;
    }
  }
}
