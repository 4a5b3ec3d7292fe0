import { configureSync, getLogger, type LogRecord, resetSync } from "@logtape/logtape";
import type { Clock } from "../base/clock.ts";
import type { LogFields, Logger } from "../base/log.ts";
import type { LoggingConfig } from "./config/kubelet_config.ts";
import { jsonLine, type LogLine, textLine } from "./log_format.ts";

/** What logging needs. */
export interface LoggingOptions {
  readonly config: LoggingConfig;
  readonly clock: Clock;
  readonly pid: number;
  /** Writes bytes to a stream at once, such as `Deno.stderr.writeSync`; may throw, which is ignored. */
  readonly write: (stream: "stdout" | "stderr", bytes: Uint8Array) => void;
}

/** The agent's log and its end. */
export interface Logging extends Disposable {
  readonly log: Logger;
  /** Writes what is buffered. */
  flush(): void;
  /** Changes -v while running (/debug/flags/v). */
  setVerbosity(level: number): void;
}

const root = "kubelet";
const encoder = new TextEncoder();
/** LogTape fills `{name}` in messages; ours are plain, so they travel beside its own and are used as they are. */
const lineKey = "line";

/** `*` and `?` as in --vmodule, matched against a component's whole name. */
function glob(pattern: string): RegExp {
  const source = pattern.replace(/[.+^${}()|[\]\\]/g, "\\$&").replace(/\*+/g, "[^]*").replaceAll("?", "[^]");
  return new RegExp(`^${source}$`);
}

/** Holds lines back until the buffer is full or the flush period is over; arms a timer only while it holds some. */
class Output {
  #held: Uint8Array[] = [];
  #bytes = 0;
  #timer: Disposable | undefined;
  constructor(private readonly options: LoggingOptions) {}

  line(line: LogLine): void {
    const { config } = this.options;
    const bytes = encoder.encode(`${config.format === "json" ? jsonLine(line) : textLine(line)}\n`);
    if (!config.splitStream || line.severity === "E") {
      this.flush(); // so that an error stands after the lines that led to it
      this.#write("stderr", bytes);
    } else if (config.infoBufferBytes === 0) this.#write("stdout", bytes);
    else {
      this.#held.push(bytes);
      this.#bytes += bytes.length;
      if (this.#bytes >= config.infoBufferBytes) this.flush();
      else this.#timer ??= this.options.clock.after(config.flushFrequencyMs, () => this.flush());
    }
  }

  flush(): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
    const held = this.#held;
    this.#held = [];
    this.#bytes = 0;
    for (const bytes of held) this.#write("stdout", bytes);
  }

  #write(stream: "stdout" | "stderr", bytes: Uint8Array): void {
    try {
      this.options.write(stream, bytes);
    } catch {
      // A full disk or a closed pipe must not take the agent down, and there is nowhere left to say so.
    }
  }
}

/** Verbosity by component. */
class Levels {
  readonly #modules: { pattern: RegExp; level: number }[];
  readonly #known = new Map<string, number>();
  constructor(public verbosity: number, vmodule: LoggingConfig["vmodule"]) {
    this.#modules = vmodule.map((item) => ({ pattern: glob(item.filePattern), level: item.verbosity }));
  }

  of(component: string): number {
    if (this.#modules.length === 0) return this.verbosity;
    let level = this.#known.get(component);
    if (level === undefined) {
      level = this.#modules.find((module) => module.pattern.test(component))?.level ?? -1;
      if (this.#known.size < 1000) this.#known.set(component, level);
    }
    return level < 0 ? this.verbosity : level;
  }
}

/** Two sets of fields: the logger's own and the line's. */
type Emit = (
  severity: LogLine["severity"],
  verbosity: number,
  message: string,
  own: LogFields,
  more: LogFields | undefined,
) => void;

/** The Logger that the agent is handed; the field `component` names the part that speaks. */
class TapeLogger implements Logger {
  readonly #component: string;
  constructor(private readonly levels: Levels, private readonly emit: Emit, private readonly fields: LogFields) {
    this.#component = typeof fields.component === "string" ? fields.component : root;
  }
  error(message: string, fields?: LogFields): void {
    this.emit("E", 0, message, this.fields, fields);
  }
  warn(message: string, fields?: LogFields): void {
    this.emit("W", 0, message, this.fields, fields);
  }
  info(message: string, fields?: LogFields): void {
    this.emit("I", 0, message, this.fields, fields);
  }
  detail(level: number, message: string, fields?: LogFields): void {
    if (level <= this.levels.of(this.#component)) this.emit("I", level, message, this.fields, fields);
  }
  with(fields: LogFields): Logger {
    return new TapeLogger(this.levels, this.emit, joined(this.fields, fields));
  }
}

/** Both sets of fields; a getter that throws costs the second set, not the line. */
function joined(own: LogFields, more: LogFields | undefined): LogFields {
  try {
    return { ...own, ...more };
  } catch {
    return { ...own, fields: "<unprintable>" };
  }
}

const levelOf = { I: "info", W: "warn", E: "error" } as const;

/**
 * Sets up the process's log (features.md A20): text or JSON lines on stderr, `-v` and `--vmodule` by component. The
 * sink is LogTape's, so libraries that log through it land here too. Nothing in it throws; idle, it costs nothing.
 */
export function startLogging(options: LoggingOptions): Logging {
  const { config, clock, pid } = options;
  const output = new Output(options);
  const levels = new Levels(config.verbosity, config.vmodule);
  configureSync({
    reset: true,
    sinks: { agent: (record) => output.line(lineOf(record, pid)) },
    loggers: [
      { category: [], sinks: ["agent"], lowestLevel: "info" },
      { category: ["logtape", "meta"], sinks: ["agent"], lowestLevel: "warning" },
    ],
  });
  const tape = getLogger([root]);
  const emit: Emit = (severity, verbosity, message, own, more) => {
    try {
      const fields = joined(own, more);
      const component = typeof fields.component === "string" ? fields.component : root;
      const line: LogLine = { severity, verbosity, message: String(message), fields, at: clock.now(), pid, component };
      tape[levelOf[severity]]("line", { [lineKey]: line });
    } catch {
      // logging never fails its caller
    }
  };
  return {
    log: new TapeLogger(levels, emit, {}),
    flush: () => output.flush(),
    setVerbosity: (level) => {
      levels.verbosity = level;
    },
    [Symbol.dispose]: () => {
      output.flush();
      resetSync();
    },
  };
}

function isLine(value: unknown): value is LogLine {
  return typeof value === "object" && value !== null && "severity" in value && "fields" in value && "at" in value;
}

function lineOf(record: LogRecord, pid: number): LogLine {
  const line = record.properties[lineKey];
  if (isLine(line)) return line;
  const error = record.level === "error" || record.level === "fatal";
  return {
    severity: error ? "E" : record.level === "warning" ? "W" : "I",
    at: record.timestamp,
    message: record.message.map(String).join(""),
    fields: record.properties,
    verbosity: 0,
    pid,
    component: record.category.join("."),
  };
}
