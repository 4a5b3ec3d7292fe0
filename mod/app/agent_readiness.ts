import type { RuntimeFeatures, RuntimeHandler } from "../../cri/gen/runtime_pb.ts";
import type { Clock } from "../base/clock.ts";
import { formatDuration } from "../base/duration.ts";
import type { Pleg } from "../sync/pleg.ts";
import type { RuntimeState } from "../sync/runtime_state.ts";

/** A relist that is older than this says that the agent does not see its pods (runtime-contract.md section 11). */
const plegLimitMs = 3 * 60_000;

/** Whether the agent can run pods, and what its runtime can do. */
export interface AgentReadiness {
  /** What keeps it from running pods, in the contract's words and order (section 19); none: it is ready. */
  readonly troubles: readonly string[];
  readonly handlers: readonly RuntimeHandler[];
  /** Undefined when the runtime does not tell. */
  readonly features: RuntimeFeatures | undefined;
}

/** Puts together what the node's condition Ready says of this agent. */
export function agentReadiness(parts: {
  clock: Clock;
  runtime: Pick<RuntimeState, "troubles" | "handlers" | "features">;
  pleg: Pick<Pleg, "lastRelist">;
}): AgentReadiness {
  const { clock, runtime, pleg } = parts;
  const { down, notReady, network } = runtime.troubles;
  const troubles = [down, plegTrouble(clock.now(), pleg.lastRelist), notReady, network];
  return {
    troubles: troubles.filter((trouble) => trouble !== undefined),
    handlers: runtime.handlers,
    features: runtime.features,
  };
}

/** @param relist when the last relist began; 0: there was none */
function plegTrouble(now: number, relist: number): string | undefined {
  if (relist === 0) return "PLEG is not healthy: pleg has yet to be successful";
  const elapsed = now - relist;
  if (elapsed <= plegLimitMs) return undefined;
  const [seen, limit] = [elapsed, plegLimitMs].map((ms) => formatDuration(ms));
  return `PLEG is not healthy: pleg was last seen active ${seen} ago; threshold is ${limit}`;
}
