import type { Clock } from "../../mod/base/clock.ts";
import { messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import { jitter, type Random } from "../../mod/base/random.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import { type ApiClient, isApiNotFound } from "../../mod/kube/api/types.ts";
import type { EventSink } from "../../mod/kube/events.ts";
import type { Node } from "../../mod/kube/types.ts";
import { nodeChanged } from "./compare.ts";
import { nodePatch } from "./patch.ts";
import { nextNode, schedulableEvent } from "./status.ts";
import type { NodeProfile, NodeSituation, NodeUrgency } from "./types.ts";
import type { NodeRecord } from "./view.ts";

/** How often a status is tried to be written before the next look (runtime-contract.md section 11). */
const mostTries = 5;
/** Spread of the time between two looks. */
const lookJitter = 0.04;
/** How often readiness and pressure are looked at, in milliseconds: until the node is first ready, and from then on. */
const quickMs = 100;
const watchMs = 1000;
/** A wall clock that moves so much more or less than was slept has stepped, or the machine stood still; milliseconds. */
const stepMs = 5000;
/** How long after that ages of what was last seen mean nothing, in milliseconds. */
const calmMs = 10_000;
/** How long the node may take to become ready before only the ordinary looks are left, in milliseconds. */
const readyGraceMs = 120_000;

export interface StatusKeeperOptions {
  /** The client of heartbeats. */
  readonly client: ApiClient;
  readonly profile: NodeProfile;
  readonly record: NodeRecord;
  readonly situation: (signal: AbortSignal) => Promise<NodeSituation>;
  /** What of the situation is reported at once when it changes; cheap. */
  readonly urgency: () => NodeUrgency;
  /** nodeStatusUpdateFrequency, milliseconds. */
  readonly lookMs: number;
  /** nodeStatusReportFrequency, milliseconds. */
  readonly reportMs: number;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly events: Pick<EventSink, "node">;
  /** Told of each status that was written, or need not be. */
  readonly onKnown?: (node: Node) => void;
}

/**
 * Keeps the node's status at the API server true (features.md F2): looks every nodeStatusUpdateFrequency and writes
 * what has changed, or all heartbeats once every nodeStatusReportFrequency; readiness and pressure are written within
 * a second of their change, and at the start within a tenth.
 */
export class NodeStatusKeeper {
  readonly #o: StatusKeeperOptions;
  /** When the last status was written; 0: none yet. */
  #reportedAt = 0;
  /** Added to the time until the next report, so that the nodes of a cluster do not report together. */
  #delayMs = 0;
  #unschedulable = false;
  #rebootTold = false;
  /** Readiness and pressure as the last look saw them; undefined before the first. */
  #posted: string | undefined;
  #complaint = "";

  constructor(options: StatusKeeperOptions) {
    this.#o = options;
  }

  /** Runs until the signal aborts; then rejects with Aborted. The node must be registered, or be registered by others. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, lookMs } = this.#o;
    // In the time that was slept, not by the wall clock, which may step.
    let ready = false, age = 0, next = lookMs, calmUntil = 0;
    while (!signal.aborted) {
      const urgent = this.#urgency();
      ready ||= urgent.ready;
      // What is not known yet is not reported as a trouble at once: a node that was ready stays so over a restart.
      const pressing = this.#posted === undefined ? urgent.ready : urgent.text !== this.#posted;
      if (age >= next || (pressing && age >= calmUntil)) {
        await this.sync(signal);
        // A failed write, too, is left to the ordinary look: a server in trouble is not asked ten times a second.
        next = age + jitter(random, lookMs, lookJitter);
      }
      const quick = !ready && age < readyGraceMs;
      const pause = Math.max(1, Math.min(next - age, quick ? quickMs : watchMs));
      const before = clock.now();
      await clock.sleep(pause, signal);
      age += pause;
      if (Math.abs(clock.now() - before - pause) > stepMs) {
        this.#o.log.info(
          "the machine's clock has stepped, or the machine stood still; the node's status waits a little",
        );
        calmUntil = next = age + calmMs;
      }
    }
  }

  /** One look; true when the API server has what is true. Never rejects but when aborted. */
  async sync(signal: AbortSignal): Promise<boolean> {
    const { log, profile } = this.#o;
    const { text } = this.#urgency();
    this.#posted = text;
    let failure: unknown;
    for (let tries = 0; tries < mostTries; tries++) {
      try {
        await this.#try(tries, signal);
        this.#complaint = "";
        return true;
      } catch (thrown) {
        if (signal.aborted) throw thrown;
        failure = thrown;
        if (isApiNotFound(thrown)) {
          this.#o.record.gone();
          break;
        }
      }
    }
    const error = messageOf(failure);
    const line = { node: profile.name, error };
    if (error === this.#complaint) log.detail(2, "the node's status still cannot be written", line);
    else if (isApiNotFound(failure)) {
      log.error(
        "the node's object is not there (was it deleted?); pods go on; restart the agent to register anew",
        line,
      );
    } else log.error("the node's status cannot be written; it is tried again", line);
    this.#complaint = error;
    return false;
  }

  async #try(tries: number, signal: AbortSignal): Promise<void> {
    const { client, profile, record, clock, random, reportMs, events } = this.#o;
    const known = tries === 0 ? record.node : undefined;
    const before = known ?? await client.get(resources.nodes, { name: profile.name }, { signal });
    const next = nextNode(before, profile, await this.#o.situation(signal), clock.now());
    const changed = nodeChanged(before, next.node);
    const schedulable = schedulableEvent(profile.name, this.#unschedulable, before.spec?.unschedulable === true);
    if (schedulable) {
      this.#unschedulable = before.spec?.unschedulable === true;
      events.node(schedulable);
    }
    const first = this.#reportedAt === 0;
    const sinceReport = clock.now() - this.#reportedAt;
    // Negative after a clock that was ahead has been set right.
    if (!changed && !first && sinceReport >= 0 && sinceReport < reportMs + this.#delayMs) {
      this.#o.onKnown?.(before);
      return;
    }
    const patch = nodePatch(before, next.node);
    const after = patch
      ? await client.patch(resources.nodes, { name: profile.name }, patch, {
        signal,
        type: "strategic-merge",
        subresource: "status",
      })
      : before;
    this.#delayMs = changed || first ? reportMs * (random() - 0.5) : 0;
    this.#reportedAt = clock.now();
    record.note(after);
    for (const event of next.events) {
      if (event.reason === "Rebooted") {
        if (this.#rebootTold) continue;
        this.#rebootTold = true;
      }
      events.node(event);
    }
    this.#o.onKnown?.(after);
  }

  #urgency(): { ready: boolean; text: string } {
    const { troubles, pressure } = this.#o.urgency();
    const ready = troubles.length === 0;
    return { ready, text: `${ready} ${[...pressure].sort().join(",")}` };
  }
}
