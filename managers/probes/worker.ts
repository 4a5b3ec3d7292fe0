import type { Clock } from "../../mod/base/clock.ts";
import type { ProbeSettings } from "./settings.ts";

/** The container instance that a worker probes now. */
export interface Instance {
  readonly containerId: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  /** Aborts when the instance stops running or is no longer probed. */
  readonly signal: AbortSignal;
}

/**
 * When one probe of one container runs, and when its result counts. Ticks stand on a grid of one period; without an
 * instance to probe, or while held or gated, there is no timer at all. At most one run is under way.
 */
export class ProbeWorker {
  readonly #clock: Clock;
  readonly #settings: ProbeSettings;
  readonly #gate: () => boolean;
  readonly #start: (instance: Instance) => Promise<{ ok: boolean; message: string } | undefined>;
  readonly #spawn: (run: () => Promise<void>) => void;
  readonly #onResult: (ok: boolean, message: string) => "hold" | "go on";
  readonly #notBefore: number;
  /** The last tick, or the first one as long as there was none. */
  #grid: number;
  #ticked = false;
  #timer: Disposable | undefined;
  #instance: Instance | undefined;
  #running: Instance | undefined;
  #held = false;
  #stopped = false;
  #last: boolean | undefined;
  #streak = 0;

  constructor(options: {
    clock: Clock;
    settings: ProbeSettings;
    /** Wall time of the first tick; nothing runs before it. */
    firstTick: number;
    /** False while this probe must wait for the startup probe. */
    gate: () => boolean;
    /** Carries out one run; undefined when it says nothing. */
    start: (instance: Instance) => Promise<{ ok: boolean; message: string } | undefined>;
    /** Starts a task in the owner's scope. */
    spawn: (run: () => Promise<void>) => void;
    /** Told of each result that reached its threshold; answers whether to hold until a new instance. */
    onResult: (ok: boolean, message: string) => "hold" | "go on";
  }) {
    this.#clock = options.clock;
    this.#settings = options.settings;
    this.#gate = options.gate;
    this.#start = options.start;
    this.#spawn = options.spawn;
    this.#onResult = options.onResult;
    this.#notBefore = this.#grid = options.firstTick;
  }

  /** Begins with a new instance: no hold, no streak. With `atOnce` the grid starts anew at the first chance. */
  begin(instance: Instance, options: { atOnce: boolean; held?: boolean }): void {
    this.#instance = instance;
    this.#held = options.held ?? false;
    this.#last = undefined;
    this.#streak = 0;
    this.#schedule(options.atOnce);
  }

  /** There is nothing to probe until the next `begin`. */
  pause(): void {
    this.#instance = undefined;
    this.#disarm();
  }

  /** The gate may have opened. */
  wake(options: { atOnce: boolean }): void {
    if (!this.#timer) this.#schedule(options.atOnce);
  }

  stop(): void {
    this.#stopped = true;
    this.pause();
  }

  #disarm(): void {
    this.#timer?.[Symbol.dispose]();
    this.#timer = undefined;
  }

  #schedule(atOnce: boolean): void {
    this.#disarm();
    const instance = this.#instance;
    if (!instance || this.#stopped || this.#held || this.#running === instance || !this.#gate()) return;
    const now = this.#clock.now();
    const { periodMs, initialDelayMs } = this.#settings;
    // Bounded by the setting, so that a wall clock set back does not put the probe off for longer than it says.
    const delay = Math.min(Math.max(0, instance.startedAt + initialDelayMs - now), initialDelayMs);
    const earliest = Math.max(now + delay, Math.min(this.#notBefore, now + periodMs));
    const steps = Math.max(Math.ceil((earliest - this.#grid) / periodMs), this.#ticked ? 1 : -Infinity);
    let due = atOnce ? earliest : this.#grid + steps * periodMs;
    // The last tick is in the future when the wall clock was set back: the grid then starts anew.
    if (due - earliest > periodMs) due = earliest + periodMs;
    this.#timer = this.#clock.after(due - now, () => {
      this.#timer = undefined;
      this.#grid = due;
      this.#ticked = true;
      this.#spawn(() => this.#run(instance));
    });
  }

  async #run(instance: Instance): Promise<void> {
    if (instance !== this.#instance) return;
    this.#running = instance;
    let result: { ok: boolean; message: string } | undefined;
    try {
      result = await this.#start(instance);
    } finally {
      if (this.#running === instance) this.#running = undefined;
      const current = instance === this.#instance && !this.#stopped;
      if (current && result) this.#count(result.ok, result.message);
      if (current) this.#schedule(false);
    }
  }

  #count(ok: boolean, message: string): void {
    this.#streak = this.#last === ok ? this.#streak + 1 : 1;
    this.#last = ok;
    if (this.#streak < (ok ? this.#settings.successThreshold : this.#settings.failureThreshold)) return;
    this.#held = this.#onResult(ok, message) === "hold";
  }
}
