import type { LogFields, Logger } from "../../mod/base/log.ts";
import type { World } from "./world.ts";

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
  }

  error(message: string, fields?: LogFields): void {
    this.#note("error", message, fields);
    if (
      this.alive() &&
      (message.includes("task of the agent failed") ||
        /\bTypeError|not a function|of undefined/.test(String(fields?.error)))
    ) {
      this.world.fail("no internal error", `${message} ${JSON.stringify(fields)}`);
    }
  }
  warn(message: string, fields?: LogFields): void {
    this.#note("warn", message, fields);
  }
  info(): void {}
  detail(): void {}
  with(fields: LogFields): Logger {
    return new TraceLogger(this.world, this.alive, { ...this.fields, ...fields });
  }
}
