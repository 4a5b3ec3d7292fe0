import type { Program } from "../../cri/fake/program.ts";
import type { Container, Pod, Probe, Volume } from "../../mod/kube/types.ts";
import type { Dice } from "./dice.ts";

/** What one instance of a container does. The plan is written into the container's command, where the runtime reads it. */
export interface Act {
  /** Milliseconds until it ends by itself; absent: it runs for ever. */
  readonly ms?: number;
  readonly code?: number;
  readonly reason?: string;
  readonly ignoresStop?: true;
  readonly stopMs?: number;
  readonly stopCode?: number;
  readonly startError?: string;
}

/** What a container does, instance by instance; the last act is repeated. */
export interface Plan {
  /** Names the container's probes and hooks in the world. */
  readonly key: string;
  readonly acts: readonly Act[];
}

/** Reads a container's plan back from its command. */
export function planOf(command: readonly string[]): Plan | undefined {
  const text = command[0] === "/sim" ? command[1] : undefined;
  return text === undefined ? undefined : JSON.parse(text) as Plan;
}

/** The act of an instance, as the fake runtime's program. */
export function programOf(plan: Plan, attempt: number): Program {
  const act = plan.acts[Math.min(attempt, plan.acts.length - 1)] ?? {};
  const { ms, code, reason, ignoresStop, stopMs, stopCode, startError } = act;
  return {
    onStop: ignoresStop ? "ignores" : "exits",
    ...(ms === undefined ? {} : { runMs: ms }),
    ...(code === undefined ? {} : { exitCode: code }),
    ...(reason === undefined ? {} : { reason }),
    ...(stopMs === undefined ? {} : { stopMs }),
    ...(stopCode === undefined ? {} : { stopExitCode: stopCode }),
    ...(startError === undefined ? {} : { startError }),
  };
}

/** Makes pods at random; names and ports come from a counter, so that each container's probes are told apart. */
export class PodMaker {
  readonly #dice: Dice;
  #count = 0;

  constructor(dice: Dice) {
    this.#dice = dice;
  }

  /** A manifest's pod. */
  pod(name: string): Pod {
    const dice = this.#dice;
    const restartPolicy = dice.weighted({ Always: 6, OnFailure: 2, Never: 2 });
    const volumes = this.#volumes();
    const inits = dice.chance(0.35) ? dice.int(1, 3) : 0;
    const initContainers = Array.from({ length: inits }, (_, i) => this.#init(`i${i}`, volumes));
    const containers = Array.from(
      { length: Number(dice.weighted({ 1: 6, 2: 3, 3: 1 })) },
      (_, i) => this.#regular(`c${i}`, restartPolicy, volumes),
    );
    return {
      apiVersion: "v1",
      kind: "Pod",
      metadata: {
        name,
        ...(dice.chance(0.2) ? { uid: `uid-${name}` } : {}),
        ...(dice.chance(0.3) ? { labels: { app: name }, annotations: { note: String(dice.int(1, 9)) } } : {}),
      },
      spec: {
        restartPolicy,
        ...(initContainers.length > 0 ? { initContainers } : {}),
        containers,
        ...(volumes.length > 0 ? { volumes } : {}),
        ...(dice.chance(0.15) ? { hostNetwork: true } : {}),
        ...(dice.chance(0.06) ? { activeDeadlineSeconds: dice.span(5, 900) } : {}),
        ...(dice.chance(0.6) ? { terminationGracePeriodSeconds: dice.pick([0, 1, 2, 5, 30]) } : {}),
        ...(dice.chance(0.05) ? { priorityClassName: "system-node-critical", priority: 2_000_001_000 } : {}),
        ...(dice.chance(0.05) ? { hostAliases: [{ ip: "10.1.2.3", hostnames: ["alias"] }] } : {}),
      },
    };
  }

  #key(): { key: string; port: number } {
    const n = ++this.#count;
    return { key: `k${n}`, port: 1000 + n };
  }

  #volumes(): Volume[] {
    const dice = this.#dice;
    const made: Volume[] = [];
    if (dice.chance(0.35)) made.push({ name: "scratch", emptyDir: dice.chance(0.3) ? { medium: "Memory" } : {} });
    if (dice.chance(0.2)) made.push({ name: "host", hostPath: { path: "/srv/data", type: "DirectoryOrCreate" } });
    if (dice.chance(0.15)) {
      const items = [{ path: "labels", fieldRef: { fieldPath: "metadata.labels" } }];
      made.push({ name: "info", downwardAPI: { items } });
    }
    return made;
  }

  #base(name: string, volumes: readonly Volume[], plan: Plan, port: number): Container {
    const dice = this.#dice;
    const image = dice.weighted({
      "registry.sim/app:1": 8,
      "registry.sim/app:2": 2,
      "registry.sim/slow:1": 1,
      "registry.sim/none:1": 0.3,
    });
    const mounts = volumes.filter(() => dice.chance(0.7)).map((v) => ({
      name: v.name,
      mountPath: `/mnt/${v.name}`,
      ...(v.name === "scratch" && dice.chance(0.3) ? { subPath: "below" } : {}),
    }));
    const requests = {
      ...(dice.chance(0.3) ? { cpu: dice.pick(["10m", "100m", "250m", "1500m"]) } : {}),
      ...(dice.chance(0.3) ? { memory: dice.pick(["16Mi", "64Mi"]) } : {}),
    };
    return {
      name,
      image,
      command: ["/sim", JSON.stringify(plan)],
      ports: [{ name: "web", containerPort: port }],
      ...(dice.chance(0.2) ? { imagePullPolicy: dice.pick(["Always", "IfNotPresent"]) } : {}),
      ...(mounts.length > 0 ? { volumeMounts: mounts } : {}),
      ...(dice.chance(0.5) ? { resources: { requests, ...(dice.chance(0.3) ? { limits: requests } : {}) } } : {}),
      ...(dice.chance(0.2) ? { env: [{ name: "IP", valueFrom: { fieldRef: { fieldPath: "status.podIP" } } }] } : {}),
    };
  }

  #probe(key: string, port: number, which: "liveness" | "readiness" | "startup"): Probe {
    const dice = this.#dice;
    const kind = dice.weighted({ exec: 3, http: 4, tcp: 2 });
    return {
      ...(kind === "exec" ? { exec: { command: ["probe", `${key}/${which}`] } } : {}),
      ...(kind === "http" ? { httpGet: { path: `/${which}`, port: dice.chance(0.5) ? "web" : port } } : {}),
      ...(kind === "tcp" ? { tcpSocket: { port } } : {}),
      periodSeconds: dice.pick([1, 5, 10]),
      failureThreshold: which === "startup" ? dice.pick([3, 30]) : dice.pick([1, 3]),
      ...(dice.chance(0.3) ? { initialDelaySeconds: dice.int(1, 10) } : {}),
      ...(dice.chance(0.3) ? { timeoutSeconds: dice.int(1, 3) } : {}),
      ...(which === "readiness" && dice.chance(0.3) ? { successThreshold: 2 } : {}),
    };
  }

  #equip(container: Container, key: string, port: number): Container {
    const dice = this.#dice;
    const hook = (when: string) =>
      dice.chance(0.5) ? { exec: { command: ["hook", `${key}/${when}`] } } : { httpGet: { path: `/${when}`, port } };
    return {
      ...container,
      ...(dice.chance(0.2) ? { livenessProbe: this.#probe(key, port, "liveness") } : {}),
      ...(dice.chance(0.25) ? { readinessProbe: this.#probe(key, port, "readiness") } : {}),
      ...(dice.chance(0.12) ? { startupProbe: this.#probe(key, port, "startup") } : {}),
      ...(dice.chance(0.15)
        ? {
          lifecycle: {
            ...(dice.chance(0.6) ? { preStop: hook("preStop") } : {}),
            ...(dice.chance(0.5) ? { postStart: hook("postStart") } : {}),
          },
        }
        : {}),
    };
  }

  #stop(): Act {
    const dice = this.#dice;
    return {
      ...(dice.chance(0.2) ? { ignoresStop: true } : {}),
      ...(dice.chance(0.3) ? { stopMs: dice.span(10, 20_000) } : {}),
      ...(dice.chance(0.3) ? { stopCode: dice.pick([0, 143]) } : {}),
    };
  }

  /** An instance that ends after a while. */
  #ending(code: number): Act {
    const dice = this.#dice;
    const oom = code !== 0 && dice.chance(0.2);
    return { ms: dice.span(1, 60_000), code: oom ? 137 : code, ...(oom ? { reason: "OOMKilled" } : {}) };
  }

  #init(name: string, volumes: readonly Volume[]): Container {
    const dice = this.#dice;
    const { key, port } = this.#key();
    const fails = Array.from({ length: Number(dice.weighted({ 0: 7, 1: 2, 2: 1 })) }, () => this.#ending(1));
    if (dice.chance(0.35)) {
      const sidecar = this.#base(name, volumes, { key, acts: [...fails, this.#stop()] }, port);
      return this.#equip({ ...sidecar, restartPolicy: "Always" }, key, port);
    }
    return this.#base(name, volumes, { key, acts: [...fails, this.#ending(0)] }, port);
  }

  #regular(name: string, restartPolicy: string, volumes: readonly Volume[]): Container {
    const dice = this.#dice;
    const { key, port } = this.#key();
    const early = Array.from(
      { length: Number(dice.weighted({ 0: 8, 1: 2, 2: 1 })) },
      () => this.#ending(dice.pick([0, 1])),
    );
    const last = dice.chance(restartPolicy === "Always" ? 0.1 : 0.5)
      ? this.#ending(dice.pick([0, 0, 1, 42]))
      : dice.chance(0.03)
      ? { startError: 'exec: "/sim": not found' }
      : this.#stop();
    return this.#equip(this.#base(name, volumes, { key, acts: [...early, last] }, port), key, port);
  }
}

/** Texts that are no manifest, or one that is refused. */
export function badManifest(dice: Dice): string {
  return dice.pick([
    "",
    "{",
    "kind: Pod\napiVersion: v1\nmetadata: {name: x}\nspec: {containers: []}\n",
    "just words",
    '{"apiVersion":"v1","kind":"Service","metadata":{"name":"x"}}',
    '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"Not A Name"},"spec":{"containers":[{"name":"c","image":"i"}]}}',
    '{"apiVersion":"v1","kind":"Pod","metadata":{"name":"refs"},"spec":{"serviceAccountName":"x","containers":[{"name":"c","image":"i"}]}}',
  ]);
}
