import type { StatusEntry } from "../../managers/status/status_manager.ts";
import type { Agent, AgentOptions } from "../../mod/app/agent_types.ts";
import type { World } from "./world.ts";

/** How a world is run. */
export interface RunOptions {
  seed: number;
  /** Random steps before the last settling. */
  steps?: number;
  /** How long the world gets to come to rest, milliseconds; default 40 minutes. */
  settleMs?: number;
  /** The node is a member of a cluster, whose API server is simulated too. */
  cluster?: boolean;
  echo?: (line: string) => void;
  /** Puts another agent in the place of the real one. */
  makeAgent?: (options: AgentOptions) => Agent;
  /** Changes the world before it begins; for tests of the invariants. */
  tamper?: (world: World) => void;
  /** Stands between the agent and the runtime; `kill` ends the agent's life at once. */
  between?: (service: World["service"], kill: () => void) => World["service"];
  /** The first agent is killed after so many steps through the gates to its world: files, runtime, network. */
  fuse?: number;
  /** How long the agent is away after its end, milliseconds; at random when not given. */
  downMs?: number;
  /** The longest restart back-off, milliseconds; at random when not given. */
  maxBackOffMs?: number;
  /** Told of every status that an agent publishes while it lives. */
  onStatus?: (entry: StatusEntry) => void;
}
