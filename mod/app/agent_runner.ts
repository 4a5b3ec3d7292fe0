import type { RuntimeService } from "../../cri/api.ts";
import type { ActuatedResources } from "../../managers/allocation/types.ts";
import type { GroupKiller, PodGroupLimits } from "../../managers/cgroups/types.ts";
import type { ImageManager } from "../../managers/images/types.ts";
import { createHookRunner } from "../../managers/lifecycle/hooks.ts";
import type { ExitWatch } from "../../managers/runtime/exit_watch.ts";
import { Killer } from "../../managers/runtime/kill.ts";
import { PodRunner, type RunnerOptions } from "../../managers/runtime/runner.ts";
import { Resizer } from "../../managers/runtime/resizer.ts";
import { Starter } from "../../managers/runtime/start.ts";
import type { ContainerLogFiles, PodBuilder } from "../../managers/runtime/types.ts";
import type { Scope } from "../base/scope.ts";
import { resourcePolicy } from "./agent_parts.ts";
import type { AgentOptions } from "./agent_types.ts";

/** The longest that the runtime may take to stop a sandbox, unless the configuration allows any call more; milliseconds. */
const sandboxStopMs = 120_000;

/** Parts of the agent that its runner works with. */
export interface RunnerParts extends Pick<RunnerOptions, "removeContainer" | "backoff" | "onBackoff" | "onSandbox"> {
  /** The journaled one. */
  readonly runtime: RuntimeService;
  readonly images: ImageManager;
  readonly builder: PodBuilder;
  readonly groups: GroupKiller & PodGroupLimits;
  /** What of pods' resources is carried out; none where nothing is resized. */
  readonly actuated: ActuatedResources | undefined;
  readonly exits: ExitWatch;
  readonly logs: ContainerLogFiles;
  readonly scope: Scope;
}

/** Carries out what is decided for this agent's pods: starts and ends containers and sandboxes. */
export function makePodRunner(o: AgentOptions, parts: RunnerParts): PodRunner {
  const { clock, events, log, journal, config } = o;
  const { runtime, images, builder, groups, exits, logs, scope, actuated } = parts;
  const hooks = createHookRunner({ runtime, http: o.dial.http, clock, log, events, meter: o.meter?.work });
  const killer = new Killer({ runtime, hooks, groups, journal, clock, events, log });
  const starter = new Starter({
    exits,
    runtime,
    images,
    builder,
    hooks,
    killer,
    logs,
    clock,
    events,
    log,
    scope,
    actuated,
  });
  const resizer = actuated && new Resizer({
    runtime,
    groups,
    actuated,
    policy: resourcePolicy(o),
    clock,
    log,
    onDone: (done) => o.meter?.resizes.done(done),
  });
  return new PodRunner({
    runtime,
    removeContainer: parts.removeContainer,
    builder,
    clock,
    sandboxStopMs: Math.max(sandboxStopMs, config.runtimeRequestTimeoutMs),
    killer,
    starter,
    resizer,
    backoff: parts.backoff,
    onBackoff: parts.onBackoff,
    events,
    log,
    onSandbox: parts.onSandbox,
    onStart: (kind, failed) => o.meter?.container(kind, failed),
  });
}
