import type { OpenFile } from "../../mod/base/host.ts";
import { abortedBy } from "../../mod/base/errors.ts";
import { isMissing } from "../../mod/base/host_error.ts";
import { Changes } from "./reader_changes.ts";
import { LogLines } from "./reader_lines.ts";
import { tailStart } from "./reader_tail.ts";
import type { ReadLogsOptions } from "./reader_types.ts";

/** Bytes that are read at once. */
const blockSize = 256 * 1024;
/** Longest line of a format that can only be read whole. */
const longestWhole = 16 * 1024 * 1024;
/** A followed log is looked at this often when nothing tells of a change: so the end of its container is seen. */
const lookMs = 1_000;
/** How long a runtime may still write to the file that it has just replaced. */
const graceMs = 100;
/** A log to which nothing was added for so long after its container's end is complete. */
const quietMs = 300;
/** A log that was written to so lately may not be complete, though its container has ended. */
const freshMs = 2_000;
/** So many quiet times a log that is being rotated is waited for, once its container has ended. */
const rotationLooks = 20;

/**
 * Reads a container's log (http.md section 5). Ends at the end of the file, with `follow` when the container does not
 * run any more and everything that it wrote was given out. A file that is replaced while it is followed is read to its
 * end, then the new one of its name is; one that was cut short is read again from its beginning. Holds no more than a
 * block of the log in memory, however long its lines are, and reads on only when `out` has taken what was read.
 *
 * Rejects with code Host when the file cannot be read or is no log, with what `out` or `isRunning` rejected with, and
 * with Aborted when the signal aborts.
 */
export async function readLogs(options: ReadLogsOptions): Promise<void> {
  const path = await options.host.realPath(options.path);
  await using reader = new LogReader({ ...options, path }, await options.host.open(path));
  await reader.run();
}

class LogReader implements AsyncDisposable {
  readonly #o: ReadLogsOptions;
  readonly #lines: LogLines;
  readonly #changes: Changes;
  #file: OpenFile;
  /** Where to read on. */
  #at = 0;
  #buffer = new Uint8Array(blockSize);
  /** Bytes in the buffer, of a line whose end is not there yet. */
  #kept = 0;
  #askedAt = -Infinity;

  constructor(options: ReadLogsOptions, file: OpenFile) {
    this.#o = options;
    this.#file = file;
    this.#lines = new LogLines(options.options, options.log);
    this.#changes = new Changes(options);
  }

  async run(): Promise<void> {
    const { follow, tailLines } = this.#o.options;
    if (tailLines !== undefined) this.#at = await tailStart(this.#file, tailLines);
    if (follow) await this.#follow();
    else {
      await this.#drain();
      await this.#finish();
    }
  }

  async #follow(): Promise<void> {
    const { clock, signal } = this.#o;
    let ran = false;
    await this.#drain();
    while (!this.#lines.done) {
      if (clock.now() - this.#askedAt >= lookMs) {
        const running = await this.#o.isRunning(signal);
        this.#askedAt = clock.now();
        if (!running) break;
        ran = true;
      }
      const what = await this.#changes.next(lookMs);
      if (what === "aborted") throw abortedBy(signal);
      await this.#drain();
      await this.#renew();
    }
    await this.#drain();
    await this.#renew();
    // The runtime says that the container has ended when it has read all output; writing the last of it to the log can
    // take it a moment longer on a busy machine, all the more when the log is rotated at that moment.
    if (ran || await this.#fresh()) await this.#awaitQuiet();
    await this.#finish();
  }

  /** Reads on until nothing was added for a while. A change that is told may be one that was read already. */
  async #awaitQuiet(): Promise<void> {
    const { clock, signal } = this.#o;
    for (let left = rotationLooks, until = clock.now() + quietMs; !this.#lines.done;) {
      const [file, at] = [this.#file, this.#at];
      if (await this.#changes.next(Math.max(until - clock.now(), 0)) === "aborted") throw abortedBy(signal);
      await this.#drain();
      await this.#renew();
      const added = file !== this.#file || at !== this.#at;
      if (!added && clock.now() < until) continue;
      if (!added && (left-- <= 0 || !await this.#renamed())) return;
      until = clock.now() + quietMs;
    }
  }

  /** The log's name is free: its file was rotated away, and the runtime has not opened the next one. */
  async #renamed(): Promise<boolean> {
    return await this.#o.host.stat(this.#o.path) === undefined;
  }

  async #fresh(): Promise<boolean> {
    const { mtimeMs } = await this.#file.info();
    return this.#o.clock.now() - mtimeMs < freshMs || await this.#renamed();
  }

  /** Reads to the end of the file. */
  async #drain(): Promise<void> {
    while (!this.#lines.done) {
      if (this.#o.signal.aborted) throw abortedBy(this.#o.signal);
      const read = await this.#file.read(this.#buffer.subarray(this.#kept), this.#at);
      if (read === 0) return;
      this.#at += read;
      this.#kept += read;
      this.#consume();
      await this.#give();
    }
  }

  #consume(): void {
    const data = this.#buffer.subarray(0, this.#kept);
    const taken = this.#lines.take(data, false);
    if (taken > 0) {
      this.#buffer.copyWithin(0, taken, this.#kept);
      this.#kept -= taken;
    }
    if (this.#kept < this.#buffer.length || this.#lines.done) return;
    // The buffer is full of one line.
    if (this.#lines.takeBeginning(this.#buffer)) this.#kept = 0;
    else if (this.#buffer.length < longestWhole) {
      const larger = new Uint8Array(this.#buffer.length * 2);
      larger.set(this.#buffer);
      this.#buffer = larger;
    } else {
      this.#lines.skipLine();
      this.#buffer = new Uint8Array(blockSize);
      this.#kept = 0;
    }
  }

  /** Gives out the line that has no end, as none will come. */
  async #finish(): Promise<void> {
    if (this.#kept > 0 && !this.#lines.done) this.#lines.take(this.#buffer.subarray(0, this.#kept), true);
    this.#kept = 0;
    await this.#give();
  }

  async #give(): Promise<void> {
    const bytes = this.#lines.output();
    if (bytes.length > 0) await this.#o.out(bytes);
  }

  /** At the end of a followed file: goes over to the file that has taken its name, and finds one that was cut short. */
  async #renew(): Promise<void> {
    if (this.#lines.done) return;
    const { host, path, clock, signal } = this.#o;
    const [now, own] = [await host.stat(path), await this.#file.info()];
    if (own.size < this.#at) {
      await this.#finish();
      this.#at = 0;
      return await this.#drain();
    }
    if (!now || (now.ino === own.ino && now.dev === own.dev)) return;
    // The runtime opens the new file before it lets go of the old one.
    for (let at = -1; at !== this.#at && !this.#lines.done;) {
      at = this.#at;
      await clock.sleep(graceMs, signal);
      await this.#drain();
    }
    let next: OpenFile;
    try {
      next = await host.open(path);
    } catch (thrown) {
      // Replaced once more, at this very moment: the next look finds what came.
      if (isMissing(thrown)) return;
      throw thrown;
    }
    await this.#finish();
    this.#file[Symbol.dispose]();
    this.#file = next;
    this.#at = 0;
    await this.#drain();
  }

  async [Symbol.asyncDispose](): Promise<void> {
    this.#file[Symbol.dispose]();
    await this.#changes[Symbol.asyncDispose]();
  }
}
