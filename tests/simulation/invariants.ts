import type { Snapshot, SnapshotContainer } from "../../cri/fake/snapshot.ts";
import type { StatusEntry } from "../../managers/status/status_manager.ts";
import type { JournalRecord } from "../../mod/base/journal.ts";
import type { BoundPod, PodStatus } from "../../mod/kube/types.ts";
import { short } from "./trace.ts";
import type { World } from "./world.ts";

const ranks: Record<string, number> = { Pending: 0, Running: 1, Succeeded: 2, Failed: 2 };

/** The restart back-off as the contract has it (section 9). */
const backOff = { firstMs: 10_000, resetMs: 600_000 };

interface Published {
  life: number;
  phase: string;
  counts: Map<string, number>;
  /** Newest sandbox attempt when it was published. */
  attempt: number;
}

interface Restarts {
  life: number;
  lastId: string;
  delay: number;
  last: number;
}

/** What the agent does itself, without the runtime: such a record is of no call. */
const ownActions = new Set(["CgroupKill", "MountVolume"]);

/** Calls that change something at one moment of time. */
const atOnceLimit = 2000;

/** Reasons that mean that nobody wants a pod any more. */
const removals = new Set(["PodDeleted", "PodRemoved", "PodGone", "SourceRemoved", "Orphaned"]);

/** Watches a world and says so, through `World.fail`, when one of the agent's invariants does not hold. */
export class Invariants {
  readonly #world: World;
  readonly #maxBackOffMs: number;
  readonly #published = new Map<string, Published>();
  /** UIDs whose next status may begin anew: the pod was removed, or redefined under its UID. */
  readonly #anew = new Set<string>();
  /** UIDs that have had several definitions: what one has come to does not bind another. */
  readonly redefined = new Set<string>();
  readonly #stopped = new Set<string>();
  readonly #restarts = new Map<string, Restarts>();
  readonly #records = new Map<string, number>();
  /** Calls that have no record yet, with the life that made them. */
  readonly #open: { key: string; life: number; index: number }[] = [];
  #seen = 0;
  #atOnce = 0;
  #atOnceAt = 0;
  #life = 0;
  /** While set, what the agent publishes of these pods must not get worse. */
  transparent: { uids: ReadonlySet<string>; ready: ReadonlySet<string> } | undefined;

  constructor(world: World, options: { maxBackOffMs: number }) {
    this.#world = world;
    this.#maxBackOffMs = options.maxBackOffMs;
    world.onMutation = (call, target, error) => this.#onMutation(call, target, error);
  }

  /** A new life of the agent begins. */
  begin(life: number): void {
    this.#life = life;
  }

  /** The pods of these UIDs are not what they were: removed, or defined anew. */
  renewed(uids: Iterable<string>): void {
    for (const uid of uids) {
      this.#anew.add(uid);
      for (const key of this.#restarts.keys()) if (key.startsWith(`${uid}/`)) this.#restarts.delete(key);
    }
  }

  /** The machine's clock was set: between a time before and one after lies no known span. */
  clockStepped(): void {
    this.#restarts.clear();
  }

  /** Invariant 1, and the turn-taking of static pods of one name. */
  check(snapshot: Snapshot = this.#world.runtime.snapshot()): void {
    const live = new Map<string, SnapshotContainer>();
    const names = new Map<string, string>();
    for (const c of snapshot.containers) {
      if (c.state !== "running") continue;
      const key = `${c.uid}/${c.name}`;
      const other = live.get(key);
      if (other) this.#world.fail("one instance", `${key} runs twice: ${short(other.id)} and ${short(c.id)}`);
      live.set(key, c);
      const name = `${c.namespace}/${c.podName}`;
      // Pods of the API's that follow one another do not wait for one another.
      if (!name.endsWith("-node1")) continue;
      const uid = names.get(name);
      if (uid !== undefined && uid !== c.uid) {
        this.#world.fail("one after another", `${name} runs as ${uid} and as ${c.uid} at the same time`);
      }
      names.set(name, c.uid);
    }
  }

  onStatus({ pod, status }: StatusEntry): void {
    const { trace } = this.#world;
    const uid = pod.metadata.uid;
    const phase = status.phase ?? "none";
    const snapshot = this.#world.runtime.snapshot();
    const before = this.#published.get(uid);
    const counts = countsOf(status);
    const attempt = Math.max(-1, ...snapshot.sandboxes.filter((s) => s.uid === uid).map((s) => s.attempt));
    trace.note(`status ${pod.metadata.name} ${short(uid)}: ${summary(status)}`);
    if (!(phase in ranks)) this.#world.fail("phase", `${uid} has phase ${phase}`);
    if (ranks[phase] === 2) {
      const running = snapshot.containers.filter((c) => c.uid === uid && c.state === "running");
      if (running.length > 0) {
        this.#world.fail("terminal phase", `${uid} is ${phase} while ${running.map((c) => c.name)} run(s)`);
      }
    }
    if (before && !this.#anew.has(uid) && !this.redefined.has(uid)) {
      this.#compare(pod, before, { phase, counts }, snapshot);
    }
    // What another life of the agent told last does not say whether this is the beginning.
    const lower = before?.life === this.#life && (ranks[phase] ?? 0) < (ranks[before.phase] ?? 0);
    if (lower) this.#anew.delete(uid);
    this.#published.set(uid, { life: this.#life, phase, counts, attempt });
    const ready = status.conditions?.find((c) => c.type === "Ready")?.status === "True";
    if (this.transparent?.ready.has(uid) && !ready) {
      this.#world.fail("transparent restart", `${uid} was ready before the agent was killed, and is published unready`);
    }
  }

  #compare(
    pod: BoundPod,
    before: Published,
    now: { phase: string; counts: Map<string, number> },
    snapshot: Snapshot,
  ): void {
    const uid = pod.metadata.uid;
    if (before.life === this.#life && (ranks[now.phase] ?? 0) < (ranks[before.phase] ?? 0)) {
      const boxes = snapshot.sandboxes.filter((s) => s.uid === uid);
      const attempt = Math.max(-1, ...boxes.map((s) => s.attempt));
      const renewed = attempt > 0 || !boxes.some((s) => s.ready);
      const again = (pod.spec.initContainers?.length ?? 0) > 0 && renewed && before.phase === "Running";
      if (!again) this.#world.fail("phase forward", `${uid} went from ${before.phase} to ${now.phase}`);
    }
    if (before.life === this.#life && ranks[before.phase] === 2 && now.phase !== before.phase) {
      this.#world.fail("phase forward", `${uid} went from ${before.phase} to ${now.phase}`);
    }
    for (const [name, count] of now.counts) {
      const last = before.counts.get(name) ?? 0;
      if (count < last && before.life === this.#life) {
        this.#world.fail("restart counts", `${uid}/${name} went from ${last} to ${count}`);
      }
    }
  }

  #onMutation(call: string, target: string, error: unknown): void {
    const { trace, runtime } = this.#world;
    this.#noStorm();
    const words = error === undefined ? "" : ` -> ${error instanceof Error ? error.message : String(error)}`;
    const snapshot = runtime.snapshot();
    const container = snapshot.containers.find((c) => c.id === target);
    const shown = container ? `${container.podName}/${container.name}#${container.attempt} ` : "";
    trace.note(`cri ${call} ${shown}${short(target)}${words}`);
    if (call === "stopContainer" || call === "removeContainer") this.#stopped.add(target);
    if (call === "stopPodSandbox" || call === "removePodSandbox") {
      for (const c of snapshot.containers) if (c.sandboxId === target) this.#stopped.add(c.id);
    }
    if (call === "startContainer") {
      if (container) this.#started(container, snapshot);
      this.check(snapshot);
    }
  }

  /** Work without end needs time: an agent that does so much at one moment goes round in circles. */
  #noStorm(): void {
    const now = this.#world.clock.now();
    this.#atOnce = now === this.#atOnceAt ? this.#atOnce + 1 : 0;
    this.#atOnceAt = now;
    if (this.#atOnce > atOnceLimit) this.#world.fail("no storm", `${atOnceLimit} calls to the runtime at one moment`);
  }

  /** Invariant 8: a restart after an exit comes no sooner than the back-off allows. */
  #started(container: SnapshotContainer, snapshot: Snapshot): void {
    if (container.startedAt === 0) return;
    const key = `${container.uid}/${container.name}`;
    const before = this.#restarts.get(key);
    if (before?.lastId === container.id) return;
    const last = snapshot.containers.find((c) => c.id === before?.lastId);
    const now = container.startedAt;
    const natural = last !== undefined && last.state === "exited" && !this.#stopped.has(last.id);
    // Another definition has a back-off of its own; the agent may hear of it long after it was made.
    const same = last?.image === container.image;
    if (!before || !natural || !same || before.life !== this.#life) {
      this.#restarts.set(key, { life: this.#life, lastId: container.id, delay: 0, last: now });
      return;
    }
    const quiet = before.delay === 0 || last.finishedAt - before.last > backOff.resetMs;
    const due = quiet ? 0 : before.delay;
    if (now - last.finishedAt < due - 5) {
      this.#world.fail(
        "back-off",
        `${key} was started ${now - last.finishedAt} ms after its exit; its back-off was ${due} ms`,
      );
    }
    const delay = Math.min(quiet ? backOff.firstMs : before.delay * 2, this.#maxBackOffMs);
    this.#restarts.set(key, { life: this.#life, lastId: container.id, delay, last: now });
  }

  onRecord(life: number, record: JournalRecord): void {
    if (record.reason === "" || record.message === "") {
      this.#world.fail("journal", `${record.action} of ${record.target} has no reason`);
    }
    this.#mustGoOn(record);
    if (ownActions.has(record.action) || !/^[A-Z][a-z]+[A-Z]/.test(record.action)) return;
    const key = `${life} ${record.action} ${record.target} ${record.at}`;
    this.#records.set(key, (this.#records.get(key) ?? 0) + 1);
  }

  /** A pod that the API server has and that nobody deleted goes on, whatever the server answers and whenever it is away. */
  #mustGoOn({ action, reason, message, pod }: JournalRecord): void {
    if (!pod || !removals.has(reason) || !/^(Stop|Remove)/.test(action)) return;
    const found = this.#world.cluster?.pods().find(({ metadata }) => metadata.uid === pod.uid);
    if (!found || found.metadata.deletionTimestamp !== undefined) return;
    // The server may not have heard yet that it has ended.
    if (ranks[found.status?.phase ?? ""] === 2 || ranks[this.#published.get(pod.uid)?.phase ?? ""] === 2) return;
    this.#world.fail("pods go on", `${pod.name} is wanted, but there was ${action} because ${reason}: ${message}`);
  }

  /** Notes which life has made the calls since the last look. */
  collect(): void {
    const { calls } = this.#world.runtime;
    for (; this.#seen < calls.length; this.#seen++) {
      const call = calls[this.#seen];
      if (call?.because === undefined) continue;
      this.#open.push({
        key: `${this.#life} ${call.call} ${call.target} ${call.at}`,
        life: this.#life,
        index: this.#seen,
      });
    }
  }

  /**
   * Invariant 7: each call that was answered has its record, and each record its call. A call that was under way when
   * the agent was killed may have none.
   */
  reconcile(diedAt?: number): void {
    this.collect();
    const { calls } = this.#world.runtime;
    // Of two calls that look alike the one that was answered has the record.
    this.#open.sort((a, b) =>
      Number(calls[a.index]?.endedAt ?? Infinity) - Number(calls[b.index]?.endedAt ?? Infinity)
    );
    const still = this.#open.splice(0).filter(({ key, index }) => {
      const records = this.#records.get(key) ?? 0;
      if (records > 0) {
        if (records === 1) this.#records.delete(key);
        else this.#records.set(key, records - 1);
        return false;
      }
      const call = calls[index];
      if (call?.endedAt === undefined) return diedAt === undefined;
      if (diedAt !== undefined && call.endedAt >= diedAt) return false;
      this.#world.fail("journal", `${key} has no record`);
      return false;
    });
    this.#open.push(...still);
    for (const key of this.#records.keys()) this.#world.fail("journal", `the record ${key} is of no call`);
    this.#records.clear();
  }
}

function statusesOf(status: PodStatus) {
  return [...status.initContainerStatuses ?? [], ...status.containerStatuses ?? []];
}

function countsOf(status: PodStatus): Map<string, number> {
  return new Map(statusesOf(status).map((s) => [s.name, s.restartCount]));
}

/** A status in one line. */
export function summary(status: PodStatus): string {
  const containers = statusesOf(status).map((s) => {
    const { waiting, running, terminated } = s.state ?? {};
    const state = running ? "run" : terminated ? `exit ${terminated.exitCode}` : waiting?.reason ?? "?";
    return `${s.name}=${state}${s.ready ? "+" : ""}/${s.restartCount}`;
  });
  const ready = status.conditions?.find((c) => c.type === "Ready")?.status === "True" ? " Ready" : "";
  return `${status.phase}${status.reason ? `(${status.reason})` : ""}${ready} ${containers.join(" ")}`;
}
