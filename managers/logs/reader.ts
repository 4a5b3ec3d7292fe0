import type { FileInfo, OpenFile } from "../../mod/base/host.ts";
import { abortedBy } from "../../mod/base/errors.ts";
import { isMissing } from "../../mod/base/host_error.ts";
import { LogLines } from "./reader_lines.ts";
import { tailStart } from "./reader_tail.ts";
import type { ReadLogsOptions } from "./reader_types.ts";

/** Bytes that are read at once. */
const blockSize = 256 * 1024;
/** Longest line of a format that can only be read whole. */
const longestWhole = 16 * 1024 * 1024;
/** How often the runtime is asked whether the container of a followed log still runs. */
const askMs = 1_000;
/**
 * Milliseconds from one look at a followed log to the next: the least when there was something new, and half as much
 * again each time that there was not, up to the most. The log is not watched: the kernel tells a watch of every single
 * write, which costs several times what reading the file does, and Deno 2.9.3 stands still when a watch is ended, or
 * another one begun, while it is told of one write after the other.
 */
const leastPauseMs = 20;
const mostPauseMs = 250;
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
  using reader = new LogReader({ ...options, path }, await options.host.open(path));
  await reader.run();
}

class LogReader implements Disposable {
  readonly #o: ReadLogsOptions;
  readonly #lines: LogLines;
  #file: OpenFile;
  /** What the file is, once that was asked. */
  #own: FileInfo | undefined;
  /** Where to read on. */
  #at = 0;
  #buffer = new Uint8Array(blockSize);
  /** Bytes in the buffer, of a line whose end is not there yet. */
  #kept = 0;
  #askedAt = -Infinity;
  #pauseMs = leastPauseMs;

  constructor(options: ReadLogsOptions, file: OpenFile) {
    this.#o = options;
    this.#file = file;
    this.#lines = new LogLines(options.options, options.log);
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
      if (clock.now() - this.#askedAt >= askMs) {
        const running = await this.#o.isRunning(signal);
        this.#askedAt = clock.now();
        if (!running) break;
        ran = true;
      }
      await this.#look();
    }
    await this.#drain();
    await this.#renew();
    // The runtime says that the container has ended when it has read all output; writing the last of it to the log can
    // take it a moment longer on a busy machine, all the more when the log is rotated at that moment.
    if (ran || await this.#fresh()) await this.#awaitQuiet();
    await this.#finish();
  }

  /** Waits a little, `most` milliseconds at most, and reads what is new; tells whether there was anything. */
  async #look(most = Infinity): Promise<boolean> {
    const { clock, signal, host, path } = this.#o;
    await clock.sleep(Math.min(this.#pauseMs, most), signal);
    const [file, at] = [this.#file, this.#at];
    this.#own ??= await file.info();
    const now = await host.stat(path);
    // Most looks are at a log that is as it was: one question of the kernel is enough for them.
    if (now?.size !== at || now.ino !== this.#own.ino || now.dev !== this.#own.dev) {
      await this.#drain();
      // A file that is still written to has not been replaced for good.
      if (at === this.#at) await this.#renew();
    }
    const found = file !== this.#file || at !== this.#at;
    this.#pauseMs = found ? leastPauseMs : Math.min(this.#pauseMs * 1.5, mostPauseMs);
    return found;
  }

  /** Reads on until nothing was added for a while. */
  async #awaitQuiet(): Promise<void> {
    const { clock } = this.#o;
    for (let left = rotationLooks, until = clock.now() + quietMs; !this.#lines.done;) {
      const added = await this.#look(Math.max(until - clock.now(), 0));
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
      const room = this.#buffer.subarray(this.#kept);
      const read = await this.#file.read(room, this.#at);
      this.#at += read;
      this.#kept += read;
      this.#consume();
      await this.#give();
      // less than there was room for: that was the end
      if (read < room.length) return;
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
    this.#own = undefined;
    this.#at = 0;
    await this.#drain();
  }

  [Symbol.dispose](): void {
    this.#file[Symbol.dispose]();
  }
}
