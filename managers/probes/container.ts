import type { ProbeView } from "../../mod/pod/actions.ts";
import type { Instance, ProbeWorker } from "./worker.ts";
import type { ProbeTarget, ProbeType } from "./types.ts";

/** Containers started this many milliseconds before the agent count as carried over from an earlier agent. */
const restartGraceMs = 10_000;

/** A start that lies so many milliseconds ahead was told by a clock that has been set back since. */
const aheadMs = 1000;

/** The probes of one container: which instance they look at, its results, and the gate that startup is. */
export class ContainerProbes {
  readonly #workers = new Map<ProbeType, ProbeWorker>();
  readonly #agentStartedAt: number;
  readonly #now: () => number;
  readonly #onChange: (update: { type: ProbeType; containerId: string; ok: boolean; message: string }) => void;
  #startupPassed = false;
  #active: AbortController | undefined;
  containerId: string | undefined;
  view: ProbeView = {};

  constructor(options: {
    agentStartedAt: number;
    /** Wall time, milliseconds. */
    now: () => number;
    onChange: (update: { type: ProbeType; containerId: string; ok: boolean; message: string }) => void;
  }) {
    this.#agentStartedAt = options.agentStartedAt;
    this.#now = options.now;
    this.#onChange = options.onChange;
  }

  has(type: ProbeType): boolean {
    return this.#workers.has(type);
  }

  add(type: ProbeType, worker: ProbeWorker): void {
    this.#workers.set(type, worker);
  }

  /** True when probes other than startup may run. */
  started(): boolean {
    return this.#startupPassed || !this.#workers.has("startup");
  }

  /** Takes over where the container stands now; cheap when nothing changed. */
  observe(target: ProbeTarget | undefined): void {
    if (target && target.containerId !== this.containerId) this.#newInstance(target);
    if (!target?.running) {
      this.#endInstance();
      if (this.view.readiness) this.view = { ...this.view, readiness: false };
      return;
    }
    if (this.#active) return;
    this.#active = new AbortController();
    const instance: Instance = {
      containerId: target.containerId,
      startedAt: target.startedAt,
      signal: this.#active.signal,
    };
    for (const [type, worker] of this.#workers) {
      worker.begin(instance, { atOnce: type === "readiness", held: this.#held(type) });
    }
  }

  /** True when the probe has said all it has to say about this instance (section 18: holds until a new id). */
  #held(type: ProbeType): boolean {
    if (type === "startup") return this.#startupPassed || this.view.startup === false;
    return type === "liveness" && this.view.liveness === false;
  }

  /** Results before the first probe: readiness false, liveness true, startup unknown (section 18). */
  #newInstance(target: ProbeTarget): void {
    this.#endInstance();
    this.containerId = target.containerId;
    // A container that an earlier agent had running keeps what it was until a probe says otherwise; a young one only
    // if that agent has written down what it was.
    // One that was started after now ran before the clock was set back.
    const earlier = target.running && target.startedAt > 0 &&
      (target.startedAt < this.#agentStartedAt || target.startedAt > this.#now() + aheadMs);
    const carried = earlier &&
      (target.startedAt < this.#agentStartedAt - restartGraceMs || target.started === true);
    this.#startupPassed = carried && target.started === true;
    const kept = carried && target.started !== false;
    this.view = {
      ...(this.has("liveness") ? { liveness: true } : {}),
      ...(this.has("readiness") ? { readiness: kept && target.ready !== false } : {}),
      ...(this.has("startup") && kept ? { startup: true } : {}),
    };
  }

  #endInstance(): void {
    this.#active?.abort();
    this.#active = undefined;
    for (const worker of this.#workers.values()) worker.pause();
  }

  /** Takes a result that reached its threshold; answers whether the worker is to hold. */
  result(type: ProbeType, ok: boolean, message: string): "hold" | "go on" {
    const containerId = this.containerId;
    if (containerId === undefined) return "hold";
    const before = this.view[type];
    this.view = { ...this.view, [type]: ok };
    if (type === "startup" && ok) {
      this.#startupPassed = true;
      this.#workers.get("readiness")?.wake({ atOnce: true });
      this.#workers.get("liveness")?.wake({ atOnce: false });
    }
    if (before !== ok) this.#onChange({ type, containerId, ok, message });
    return type === "startup" || (type === "liveness" && !ok) ? "hold" : "go on";
  }

  /** Ends the liveness and startup probes quietly: neither may have the container restarted any more. */
  stopLivenessAndStartup(): void {
    for (const type of ["liveness", "startup"] as const) {
      this.#workers.get(type)?.stop();
      this.#workers.delete(type);
    }
    const { readiness, startup } = this.view;
    this.view = {
      ...(this.view.liveness === undefined ? {} : { liveness: true }),
      ...(readiness === undefined ? {} : { readiness }),
      ...(startup ? { startup } : {}),
    };
    this.#workers.get("readiness")?.wake({ atOnce: false });
  }

  stop(): void {
    this.#endInstance();
    for (const worker of this.#workers.values()) worker.stop();
    this.#workers.clear();
  }
}
