/** The scene commands about status. Test support only; see scenes_test.ts. */
import type { ContainerState, ContainerStateTerminated, ContainerStatus, PodStatus } from "../../kube/types.ts";
import { generateStatus } from "../status/generate.ts";
import type { World } from "./model.ts";
import type { SceneCommand } from "./scene.ts";

function ended(t: ContainerStateTerminated): string {
  return `${t.reason ?? "?"} ${t.exitCode}${t.message ? ` (${t.message})` : ""}`;
}

function state(s: ContainerState | undefined): string {
  if (s?.running) return "running";
  if (s?.terminated) return `terminated ${ended(s.terminated)}`;
  return s?.waiting
    ? `waiting ${s.waiting.reason ?? ""}${s.waiting.message ? ` (${s.waiting.message})` : ""}`.trim()
    : "none";
}

function container(kind: string, s: ContainerStatus): string {
  const flags = [s.ready ? "ready" : "", s.started ? "started" : ""].filter((f) => f !== "").join(" ");
  const last = s.lastState?.terminated ? `, last ${ended(s.lastState.terminated)}` : "";
  return `${kind} ${s.name} ${state(s.state)}${flags ? ` ${flags}` : ""} restarts=${s.restartCount}${last}`;
}

/** A status as scenes write it. */
export function describeStatus(status: PodStatus): string[] {
  const { phase, reason, message, podIP } = status;
  return [
    `${phase}${reason ? ` ${reason}` : ""}${message ? ` (${message})` : ""}${podIP ? ` ${podIP}` : ""}`,
    ...(status.conditions ?? []).map((c) =>
      `${c.type}=${c.status}${c.reason ? ` ${c.reason}` : ""}${c.message ? ` (${c.message})` : ""}`
    ),
    ...(status.initContainerStatuses ?? []).map((s) => container("init", s)),
    ...(status.containerStatuses ?? []).map((s) => container("regular", s)),
    ...(status.ephemeralContainerStatuses ?? []).map((s) => container("ephemeral", s)),
  ];
}

/** Makes the world's next status, which builds on the one before. */
export function nextStatus(world: World, options: { terminating?: boolean; deadline?: boolean } = {}): PodStatus {
  world.status = generateStatus({
    pod: world.pod,
    observed: world.observed(),
    ...(world.status ? { previous: world.status } : {}),
    probes: (id) => world.probes.get(id) ?? {},
    startErrors: (name) => world.startErrors.get(name),
    held: world.decide().held,
    hostIPs: [],
    now: world.clock.now(),
    terminating: options.terminating ?? false,
    ...(options.deadline ? { forced: { reason: "DeadlineExceeded", message: "too long" } } : {}),
    runtimeName: "containerd",
  });
  return world.status;
}

export const statusCommands: Readonly<Record<string, SceneCommand>> = {
  status: (world, args) =>
    describeStatus(nextStatus(world, { terminating: args.has("terminating"), deadline: args.has("deadline") })),
  fails: (world, args) => {
    const [name = "", reason = "", ...words] = [...args.keys()];
    world.startErrors.set(name, { reason, message: words.join(" ") });
    return ["ok"];
  },
  forget: (world) => {
    world.status = undefined;
    return ["ok"];
  },
};
