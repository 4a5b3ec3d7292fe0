import type { Clock } from "../base/clock.ts";
import type { Agent } from "./agent_types.ts";
import { judge, type PodVerdict, table } from "./run_once.ts";

/** How long run-once waits for all pods to come to an end or to readiness, in milliseconds. */
const limitMs = 10 * 60_000;
/** How often it looks at what no status change tells: the sources, and the time. */
const lookMs = 250;

/** Waits, for run-once mode, until every pod of the sources is judged, and prints them. */
export class RunOnce {
  readonly #o: { print: (text: string) => void; clock: Clock };
  #wake: (() => void) | undefined;

  constructor(options: { print: (text: string) => void; clock: Clock }) {
    this.#o = options;
  }

  /** A pod's status changed. */
  changed(): void {
    this.#wake?.();
  }

  /** True when every pod is well. */
  async watch(agent: Pick<Agent, "pods" | "sourcesReady" | "problems">, signal: AbortSignal): Promise<boolean> {
    const { clock, print } = this.#o;
    const end = clock.now() + limitMs;
    while (!signal.aborted) {
      const rows = agent.pods().map(({ pod, status }) => judge(pod, status, clock.now()));
      const done = agent.sourcesReady && rows.every((r) => r.ok !== undefined);
      if (done || clock.now() >= end) return this.#report(rows, agent.problems(), done);
      const { promise, resolve } = Promise.withResolvers<void>();
      this.#wake = resolve;
      using _timer = clock.after(lookMs, resolve);
      await promise;
    }
    print("run-once was called off\n");
    return false;
  }

  #report(rows: readonly PodVerdict[], problems: ReadonlyMap<string, string>, done: boolean): boolean {
    const { print } = this.#o;
    print(table([...rows].sort((a, b) => a.name < b.name ? -1 : 1)));
    for (const [where, problem] of problems) print(`${where}: ${problem}\n`);
    if (!done) print(`not all pods were ready after ${limitMs / 60_000} minutes\n`);
    return done && problems.size === 0 && rows.every((r) => r.ok === true);
  }
}
