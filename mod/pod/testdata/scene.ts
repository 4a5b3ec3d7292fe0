/** Reads and plays scene files: commands with the answers they must give. Test support only; see scenes_test.ts. */
import type { BoundPod, Container, ContainerRestartRule, EphemeralContainer, PodSpec } from "../../kube/types.ts";
import { describe, isQuiet, World } from "./model.ts";

/** One command of a scene: a line, the lines under it, and the answer after `----`. */
export interface SceneStep {
  readonly line: number;
  readonly command: string;
  readonly args: readonly string[];
  readonly body: readonly string[];
  readonly want: readonly string[];
}

/** Reads a scene. Steps are parted by blank lines; `#` opens a comment. */
export function parseScene(text: string): SceneStep[] {
  const steps: SceneStep[] = [];
  let block: { line: number; lines: string[] } | undefined;
  const flush = () => {
    if (!block) return;
    const cut = block.lines.indexOf("----");
    if (cut < 1) throw new Error(`line ${block.line}: a step needs a command, then ---- and its answer`);
    const [command = "", ...args] = (block.lines[0] ?? "").split(/\s+/);
    const body = block.lines.slice(1, cut).map((l) => l.trim());
    steps.push({ line: block.line, command, args, body, want: block.lines.slice(cut + 1) });
    block = undefined;
  };
  text.split("\n").forEach((raw, i) => {
    const line = raw.trimEnd();
    if (line.startsWith("#")) return;
    if (line === "") return flush();
    block ??= { line: i + 1, lines: [] };
    block.lines.push(line);
  });
  flush();
  return steps;
}

function pairs(args: readonly string[]): Map<string, string> {
  return new Map(args.map((a) => {
    const cut = a.indexOf("=");
    return cut < 0 ? [a, ""] : [a.slice(0, cut), a.slice(cut + 1)];
  }));
}

/** `In:1,2:Restart` as a restart rule. */
function rule(text: string): ContainerRestartRule {
  const [operator = "", values = "", action = ""] = text.split(":");
  return { action, exitCodes: { operator, values: values.split(",").map(Number) } };
}

function container(name: string, kind: string, options: Map<string, string>): Container {
  const probe = (key: string) => options.has(key) ? { [`${key}Probe`]: { exec: { command: ["x"] } } } : {};
  const own = kind === "sidecar" ? "Always" : options.get("restart");
  return {
    name,
    image: options.get("image") ?? "img:1",
    ...(own === undefined ? {} : { restartPolicy: own }),
    ...(options.has("rule") ? { restartPolicyRules: (options.get("rule") ?? "").split(";").map(rule) } : {}),
    ...probe("startup"),
    ...probe("liveness"),
    ...probe("readiness"),
  };
}

/** A pod from a `pod` command. */
export function podOf(args: readonly string[], body: readonly string[]): BoundPod {
  const of = pairs(args);
  const spec: PodSpec & { containers: Container[] } = { containers: [], restartPolicy: of.get("restart") ?? "Always" };
  if (of.has("hostNetwork")) spec.hostNetwork = true;
  if (of.has("deadline")) spec.activeDeadlineSeconds = Number(of.get("deadline"));
  if (of.has("gate")) spec.readinessGates = [{ conditionType: of.get("gate") ?? "" }];
  for (const line of body) {
    const [kind = "", name = "", ...rest] = line.split(/\s+/);
    const made = container(name, kind, pairs(rest));
    if (kind === "container") spec.containers.push(made);
    else if (kind === "ephemeral") (spec.ephemeralContainers ??= []).push(made as EphemeralContainer);
    else if (kind === "init" || kind === "sidecar") (spec.initContainers ??= []).push(made);
    else throw new Error(`${kind} is no kind of container`);
  }
  const source = of.has("static") ? { annotations: { "kubernetes.io/config.source": "file" } } : {};
  return { metadata: { name: "web", namespace: "ns", uid: "u1", ...source }, spec };
}

/** Commands that other modules add to a scene. */
export type SceneCommand = (
  world: World,
  args: ReadonlyMap<string, string>,
  body: readonly string[],
) => readonly string[];

/** Plays one step and returns its answer. */
export async function play(
  state: { world?: World },
  step: SceneStep,
  more: Readonly<Record<string, SceneCommand>> = {},
): Promise<readonly string[]> {
  if (step.command === "pod") {
    state.world = new World(podOf(step.args, step.body));
    return ["ok"];
  }
  const world = state.world;
  if (!world) throw new Error(`line ${step.line}: a scene begins with a pod`);
  const [first = ""] = step.args;
  const options = pairs(step.args.slice(1));
  const instance = () => {
    const found = world.newest(first);
    if (!found) throw new Error(`line ${step.line}: container ${first} has no instance`);
    return found;
  };
  switch (step.command) {
    case "decide":
      return describe(world.decide());
    case "sync": {
      const actions = world.decide();
      world.apply(actions);
      return describe(actions);
    }
    case "settle": {
      const lines: string[] = [];
      for (let round = 0; round < 20; round++) {
        const actions = world.decide();
        if (isQuiet(actions)) return [...lines, ...describe(actions)];
        lines.push(...describe(actions));
        world.apply(actions);
      }
      throw new Error(`line ${step.line}: does not settle`);
    }
    case "exit":
      world.end(instance(), Number(options.get("code")), options.get("reason"));
      return ["ok"];
    case "state":
      instance().state = step.args[1] as "created" | "running" | "unknown";
      return ["ok"];
    case "lose":
      world.containers = world.containers.filter((c) => c.name !== first);
      return ["ok"];
    case "probe": {
      const id = instance().id;
      const seen = Object.fromEntries([...options].map(([k, v]) => [k, v === "ok"]));
      if (options.size === 0) world.probes.delete(id);
      else world.probes.set(id, { ...world.probes.get(id), ...seen });
      return ["ok"];
    }
    case "image": {
      const { spec } = world.pod;
      for (const c of [...spec.containers, ...spec.initContainers ?? []]) {
        if (c.name === first) c.image = step.args[1] ?? "";
      }
      return ["ok"];
    }
    case "pass":
      await world.clock.advance(Number(first.replace("s", "")) * 1000);
      return ["ok"];
    case "delete":
      world.pod.metadata.deletionTimestamp = new Date(world.clock.now()).toISOString();
      return ["ok"];
    case "sandbox": {
      const current = world.sandboxes[0];
      if (!current) throw new Error(`line ${step.line}: there is no sandbox`);
      if (first === "dies") current.ready = false;
      else if (first === "loses-ip") current.ips = [];
      else if (first === "host-network") current.hostNetwork = true;
      else if (first === "twin") world.createSandbox(current.attempt + 1);
      else throw new Error(`line ${step.line}: a sandbox can't ${first}`);
      // What runs in a sandbox dies with it.
      if (first === "dies") { for (const c of world.containers) if (c.state === "running") world.end(c, 137); }
      return ["ok"];
    }
    case "world":
      return [
        ...world.sandboxes.map((s) => `${s.id} ${s.ready ? "ready" : "not ready"}`),
        ...world.containers.map((c) =>
          `${c.id} ${c.state}${c.state === "exited" ? ` ${c.exitCode}` : ""} in ${c.sandboxId}`
        ),
      ];
  }
  const run = Object.hasOwn(more, step.command) ? more[step.command] : undefined;
  if (!run) throw new Error(`line ${step.line}: no command ${step.command}`);
  return run(world, pairs(step.args), step.body);
}
