import type { Clock } from "../../mod/base/clock.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";

/** A moment with the nanoseconds that log stamps have. */
export interface Instant {
  /** Whole seconds since the epoch. */
  readonly seconds: number;
  /** 0 to 999,999,999. */
  readonly nanos: number;
}

/** What a reader of logs asks for (http.md section 5). */
export interface LogOptions {
  /** Go on until the container does not run any more. */
  readonly follow?: boolean;
  /** Begin so many lines before the end; lines of the file, so each part of a long line counts. */
  readonly tailLines?: number;
  /** Leave out lines with an older stamp. */
  readonly since?: Instant;
  /** Put the stamp before each line, but not before the further parts of one. */
  readonly timestamps?: boolean;
  /** End after so many bytes of output, be it in mid-line. */
  readonly limitBytes?: number;
  /** Only one of the two streams. */
  readonly stream?: "stdout" | "stderr";
}

export interface ReadLogsOptions {
  /** The log file as the runtime names it; links are resolved once, at the start. */
  readonly path: string;
  readonly options: LogOptions;
  /**
   * Takes output, at least once for each stretch that was there to read. The next part is read when its promise
   * resolves; the bytes are the receiver's to keep.
   */
  readonly out: (bytes: Uint8Array) => Promise<void>;
  /** Whether the container still runs; asked at the end of the file, at most once a second. Only for `follow`. */
  readonly isRunning: (signal: AbortSignal) => Promise<boolean>;
  readonly host: Pick<Host, "realPath" | "open" | "stat">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}
