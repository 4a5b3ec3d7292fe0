/** A model of the runtime and the agent around `decide`, for scenes and properties. Test support only. */
import { Backoff } from "../../base/backoff.ts";
import { FakeClock } from "../../base/fake_clock.ts";
import { podContainers } from "../../kube/pod.ts";
import type { BoundPod, ContainerKind, PodStatus } from "../../kube/types.ts";
import type { PodActions, ProbeView } from "../actions.ts";
import { decide } from "../decide/decide.ts";
import { containerHash } from "../hash.ts";
import type { ObservedContainer, ObservedPod, ObservedSandbox } from "../observed.ts";

/** What the model keeps of an instance, changeable. */
export type Instance = { -readonly [K in keyof ObservedContainer]: ObservedContainer[K] };
export type Sandbox = { -readonly [K in keyof ObservedSandbox]: ObservedSandbox[K] };

export class World {
  pod: BoundPod;
  readonly clock = new FakeClock(1_000_000);
  readonly backOff = new Backoff({ clock: this.clock, initial: 10_000, max: 300_000, resetAfter: 600_000 });
  sandboxes: Sandbox[] = [];
  containers: Instance[] = [];
  readonly probes = new Map<string, ProbeView>();
  /** The last status generated, and start errors to show in the next. */
  status: PodStatus | undefined;
  readonly startErrors = new Map<string, { reason: string; message: string }>();
  /** Highest restart count used per name, as a log directory would keep it. */
  readonly #counts = new Map<string, number>();

  constructor(pod: BoundPod) {
    this.pod = pod;
  }

  observed(): ObservedPod {
    const { uid, name, namespace } = this.pod.metadata;
    return {
      uid,
      name,
      namespace,
      sandboxes: this.sandboxes.map((s) => ({ ...s })),
      containers: this.containers.map((c) => ({ ...c })),
      readAt: this.clock.now(),
    };
  }

  decide(): PodActions {
    return decide({
      pod: this.pod,
      observed: this.observed(),
      now: this.clock.now(),
      probes: (id) => this.probes.get(id) ?? {},
      backOff: (key, since) => this.backOff.remaining(key, since),
    });
  }

  newest(name: string): Instance | undefined {
    return this.containers.find((c) => c.name === name);
  }

  end(instance: Instance, exitCode: number, reason = exitCode === 0 ? "Completed" : "Error"): void {
    instance.state = "exited";
    instance.exitCode = exitCode;
    instance.reason = reason;
    instance.finishedAt = this.clock.now();
  }

  #killLive(match: (c: Instance) => boolean): void {
    for (const c of this.containers) if (match(c) && (c.state === "running" || c.state === "unknown")) this.end(c, 137);
  }

  /** Carries the actions out as the executor would, without failures. */
  apply(actions: PodActions): void {
    if (actions.killPod) {
      this.#killLive(() => true);
      for (const s of this.sandboxes) s.ready = false;
    }
    for (const k of actions.kill) this.#killLive((c) => c.id === k.id);
    const removed = new Set(actions.remove.map((r) => r.id));
    for (const c of actions.resetContainers?.containers ?? []) removed.add(c.id);
    // What never ran gives its number to the one that stands in for it.
    for (const c of this.containers) {
      if (removed.has(c.id) && c.state === "created") this.#counts.set(c.name, c.restartCount - 1);
    }
    this.containers = this.containers.filter((c) => !removed.has(c.id));
    let sandboxId = actions.sandboxId ?? "";
    if (actions.createSandbox) sandboxId = this.createSandbox(actions.createSandbox.attempt);
    for (const s of actions.start) {
      if (s.afterExit) this.backOff.step(s.afterExit.key, s.afterExit.at);
      this.start(s.kind, s.name, sandboxId);
    }
  }

  createSandbox(attempt: number): string {
    const hostNetwork = this.pod.spec.hostNetwork === true;
    const id = `s${attempt}`;
    this.sandboxes.unshift({
      id,
      attempt,
      ready: true,
      createdAt: this.clock.now(),
      ips: hostNetwork ? [] : ["10.0.0.1"],
      hostNetwork,
      hasNetwork: !hostNetwork,
      handler: "",
    });
    return id;
  }

  start(kind: ContainerKind, name: string, sandboxId: string): void {
    const found = podContainers(this.pod).find((c) => c.kind === kind && c.spec.name === name);
    if (!found) throw new Error(`${kind} container ${name} is not in the spec`);
    const restartCount = (this.#counts.get(name) ?? -1) + 1;
    this.#counts.set(name, restartCount);
    const image = found.spec.image ?? "";
    this.containers.unshift({
      id: `${name}#${restartCount}`,
      name,
      restartCount,
      sandboxId,
      state: "running",
      createdAt: this.clock.now(),
      startedAt: this.clock.now(),
      finishedAt: 0,
      exitCode: 0,
      reason: "",
      message: "",
      image,
      imageRef: `sha256:${image}`,
      hash: containerHash(found.spec),
      annotations: {},
      logPath: "",
      mounts: [],
    });
  }
}

/** True when the actions change nothing. */
export function isQuiet(a: PodActions): boolean {
  return !a.killPod && !a.resetContainers && !a.createSandbox &&
    a.kill.length + a.remove.length + a.start.length === 0;
}

/** The actions as scenes write them, one a line. */
export function describe(a: PodActions): string[] {
  const lines: string[] = [];
  if (a.killPod) lines.push(`kill pod: ${a.killPod.reason}`);
  for (const k of a.kill) {
    lines.push(
      `kill ${k.id}${k.probe ? ` grace of ${k.probe} probe` : ""}${k.restarts ? " to restart" : ""}: ${k.message}`,
    );
  }
  for (const r of a.remove) lines.push(`remove ${r.id}: ${r.reason}`);
  for (const c of a.resetContainers?.containers ?? []) lines.push(`reset ${c.id}${c.live ? " live" : ""}`);
  if (a.createSandbox) {
    const { attempt, replaces, reason } = a.createSandbox;
    lines.push(`sandbox ${attempt}${replaces ? ` in place of ${replaces}` : ""}: ${reason}`);
  }
  for (const s of a.start) {
    lines.push(`start ${s.kind} ${s.name}${s.afterExit ? " stepping its back-off" : ""}: ${s.reason}`);
  }
  for (const h of a.held) lines.push(`hold ${h.kind} ${h.name} ${h.remainingMs}ms: ${h.message}`);
  if (a.finished) lines.push("finished");
  return lines.length > 0 ? lines : ["nothing"];
}
