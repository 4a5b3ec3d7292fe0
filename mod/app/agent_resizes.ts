import { AllocationManager } from "../../managers/allocation/manager.ts";
import type { Scope } from "../base/scope.ts";
import { containerResources } from "../pod/config/linux_resources.ts";
import type { SyncLoop } from "../sync/sync_loop.ts";
import { resourcePolicy } from "./agent_parts.ts";
import type { AgentOptions } from "./agent_types.ts";

/** Milliseconds between looks at resizes that wait, and while not every source was read (features.md section 13). */
const retryMs = 180_000;
const earlyRetryMs = 30_000;

/** What this agent's pods were given; none for an agent that is alone, to which no resize can come. */
export function makeResizes(o: AgentOptions, parts: {
  readonly scope: Scope;
  /** Told when a pod's resources have become others. */
  readonly onChange: () => void;
}): AllocationManager | undefined {
  if (!o.cluster) return undefined;
  const { config, host, clock, log, events, flags } = o;
  const on = (gate: string, byDefault: boolean) => o.gates?.enabled(gate) ?? byDefault;
  const policy = resourcePolicy(o);
  const resizes = new AllocationManager({
    host,
    clock,
    log,
    events,
    scope: parts.scope,
    rootDir: flags.rootDir,
    onChange: parts.onChange,
    meter: o.meter?.resizes,
    policy: {
      gates: {
        podLevel: on("InPlacePodLevelResourcesVerticalScaling", true),
        initContainers: on("InPlacePodVerticalScalingInitContainers", true),
      },
      cpuManagerPolicy: config.cpuManagerPolicy,
      memoryManagerPolicy: config.memoryManagerPolicy,
      exclusiveCpus: on("InPlacePodVerticalScalingExclusiveCPUs", false),
      exclusiveMemory: on("InPlacePodVerticalScalingExclusiveMemory", false),
      swaps: (pod, container) =>
        (containerResources({ pod, container, policy }).unified?.["memory.swap.max"] ?? "0") !== "0",
    },
  });
  if (o.meter) o.meter.resizes.counts = () => resizes.counts();
  return resizes;
}

/** Looks at resizes that wait, again and again. */
export async function retryResizes(
  { clock }: AgentOptions,
  loop: Pick<SyncLoop, "retryResizes" | "sourcesReady">,
  signal: AbortSignal,
): Promise<void> {
  while (!signal.aborted) {
    await clock.sleep(loop.sourcesReady ? retryMs : earlyRetryMs, signal);
    loop.retryResizes("periodic_retry");
  }
}
