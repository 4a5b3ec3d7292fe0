import { allSinks, EventRecorder } from "../../../managers/events/recorder.ts";
import type { Clock } from "../../base/clock.ts";
import type { Logger } from "../../base/log.ts";
import type { Random } from "../../base/random.ts";
import type { Scope } from "../../base/scope.ts";
import type { ApiClient } from "../../kube/api/types.ts";
import type { EventSink } from "../../kube/events.ts";

/** The sink of a cluster's member: what it is told goes to the log and, by and by, to the API server. */
export function clusterEvents(options: {
  /** The client of events. */
  readonly client: ApiClient;
  readonly nodeName: string;
  /** Hears everything too. */
  readonly log: EventSink;
  readonly logger: Logger;
  readonly clock: Clock;
  readonly random: Random;
  readonly scope: Scope;
}): EventSink {
  const { client, nodeName, clock, random, logger, scope } = options;
  const recorder = new EventRecorder({ client, nodeName, clock, random, log: logger });
  scope.spawn("events", (signal) => recorder.run(signal));
  return allSinks(options.log, recorder);
}
