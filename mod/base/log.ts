/** Fields of a structured log line. */
export type LogFields = Record<string, unknown>;

/**
 * Structured logging as the agent uses it. `detail` levels follow `-v`: 2 for steady-state facts, 4 for debugging.
 * The process-wide sink is set up once by mod/app; everything else is handed a Logger.
 */
export interface Logger {
  error(message: string, fields?: LogFields): void;
  warn(message: string, fields?: LogFields): void;
  info(message: string, fields?: LogFields): void;
  /** A line shown only when the verbosity is at least `level`. */
  detail(level: number, message: string, fields?: LogFields): void;
  /** A logger whose lines carry these fields too. */
  with(fields: LogFields): Logger;
}

/** A logger that drops everything. */
export const silent: Logger = {
  error: () => {},
  warn: () => {},
  info: () => {},
  detail: () => {},
  with: () => silent,
};

/** A logger that keeps its lines, for tests that assert on what an operator would read. */
export class RecordingLogger implements Logger {
  constructor(
    readonly lines: { level: string; message: string; fields: LogFields }[] = [],
    private readonly fields: LogFields = {},
  ) {}
  #add(level: string, message: string, fields?: LogFields): void {
    this.lines.push({ level, message, fields: { ...this.fields, ...fields } });
  }
  error(message: string, fields?: LogFields): void {
    this.#add("error", message, fields);
  }
  warn(message: string, fields?: LogFields): void {
    this.#add("warn", message, fields);
  }
  info(message: string, fields?: LogFields): void {
    this.#add("info", message, fields);
  }
  detail(level: number, message: string, fields?: LogFields): void {
    this.#add(`detail${level}`, message, fields);
  }
  with(fields: LogFields): Logger {
    return new RecordingLogger(this.lines, { ...this.fields, ...fields });
  }
}
