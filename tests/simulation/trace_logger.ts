import type { LogFields, Logger } from "../../mod/base/log.ts";
import type { World } from "./world.ts";

/** Errors that a program makes, as the run-time words them. */
const internal =
  /\b(Type|Range|Reference|Syntax)Error\b|is not (a function|iterable)|of undefined|of null|(undefined|null) to object|Invalid (time value|array length)|Cannot use 'in'/;

/** Notes what an operator would read; an internal error of the agent breaks an invariant. */
export class TraceLogger implements Logger {
  constructor(
    private readonly world: World,
    private readonly alive: () => boolean,
    private readonly fields: LogFields = {},
  ) {}

  #note(level: string, message: string, fields: LogFields | undefined): void {
    if (!this.alive()) return;
    const all = { ...this.fields, ...fields };
    this.world.trace.note(`${level} ${message} ${Object.entries(all).map(([k, v]) => `${k}=${v}`).join(" ")}`);
    this.#judge(message, fields);
  }

  #judge(message: string, fields: LogFields | undefined): void {
    if (this.alive() && (message.includes("task of the agent failed") || internal.test(String(fields?.error)))) {
      this.world.fail("no internal error", `${message} ${JSON.stringify(fields)}`);
    }
  }

  error(message: string, fields?: LogFields): void {
    this.#note("error", message, fields);
  }
  warn(message: string, fields?: LogFields): void {
    this.#note("warn", message, fields);
  }
  info(message: string, fields?: LogFields): void {
    this.#judge(message, fields);
  }
  detail(_: number, message: string, fields?: LogFields): void {
    this.#judge(message, fields);
  }
  with(fields: LogFields): Logger {
    return new TraceLogger(this.world, this.alive, { ...this.fields, ...fields });
  }
}
