import type { Container } from "../../kube/types.ts";
import type { DecideInput, KillContainer } from "../actions.ts";
import { newest, type ObservedContainer } from "../observed.ts";
import type { Wanted } from "./backoff.ts";
import { needsRestart } from "../resize/needs.ts";
import { definitionChanged, kill, killForResize, killWhenUnknown } from "./kills.ts";
import { restartsAfterKill, shouldStart } from "./restart.ts";

/** What the regular containers of an initialised pod need. */
export interface RegularVerdict {
  /** True when some container runs and is let run. */
  readonly keeps: boolean;
  readonly kill: readonly KillContainer[];
  readonly wanted: readonly Wanted[];
}

/** Why a running container must go, or undefined when it stays. */
function reasonToKill(input: DecideInput, spec: Container, instance: ObservedContainer): KillContainer | undefined {
  const finish = (reason: string, message: string, restarts: boolean, probe?: "liveness" | "startup") =>
    kill(instance, reason, restarts ? `${message}, will be restarted` : message, restarts, probe);
  // A new definition is always started, whatever the restart policy.
  if (definitionChanged(spec, instance)) {
    return finish("DefinitionChanged", `Container ${spec.name} definition changed`, true);
  }
  const probes = input.probes(instance.id);
  const restarts = restartsAfterKill(input.pod, spec);
  if (probes.liveness === false) {
    return finish("LivenessProbe", `Container ${spec.name} failed liveness probe`, restarts, "liveness");
  }
  if (probes.startup === false) {
    return finish("StartupProbe", `Container ${spec.name} failed startup probe`, restarts, "startup");
  }
  return needsRestart(input.pod, spec, instance, input.resize) ? killForResize(instance) : undefined;
}

function whyStarted(spec: Container, latest: ObservedContainer | undefined): Wanted["why"] {
  switch (latest?.state) {
    case undefined:
      return { reason: "FirstStart", message: `container ${spec.name} has not been started yet` };
    case "created":
      return { reason: "NeverStarted", message: `container ${spec.name} was created but not started` };
    case "exited":
      return { reason: "ContainerExited", message: `container ${spec.name} exited with code ${latest.exitCode}` };
    default:
      return { reason: "StateUnknown", message: `the state of container ${spec.name} was unknown` };
  }
}

/** The rules for regular containers of a pod that is initialised (runtime-contract.md sections 7 and 9). */
export function regularVerdict(input: DecideInput): RegularVerdict {
  const kills: KillContainer[] = [];
  const wanted: Wanted[] = [];
  let keeps = false;
  for (const spec of input.pod.spec.containers) {
    const container = { kind: "regular" as const, spec };
    const latest = newest(input.observed, spec.name);
    if (latest?.state === "running") {
      const gone = reasonToKill(input, spec, latest);
      if (!gone) keeps = true;
      else {
        kills.push(gone);
        if (gone.restarts) wanted.push({ container, why: { reason: gone.reason, message: gone.message } });
      }
    } else if (shouldStart(input.pod, spec, latest)) {
      wanted.push({ container, why: whyStarted(spec, latest) });
      if (latest?.state === "unknown") kills.push(killWhenUnknown(latest, "Container"));
    }
  }
  return { keeps, kill: kills, wanted };
}
