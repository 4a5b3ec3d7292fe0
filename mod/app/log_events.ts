import type { Logger } from "../base/log.ts";
import type { EventSink, PodEvent } from "../kube/events.ts";
import { podFullName } from "../kube/pod.ts";

/** Writes events to the log: all there is for an agent without an API server. */
export class LogEvents implements EventSink {
  readonly #log: Logger;

  constructor(log: Logger) {
    this.#log = log;
  }

  pod({ pod, type, reason, message, fieldPath }: PodEvent): void {
    const fields = {
      pod: podFullName(pod),
      podUid: pod.metadata.uid,
      reason,
      message,
      ...(fieldPath ? { fieldPath } : {}),
    };
    if (type === "Warning") this.#log.warn("event", fields);
    else this.#log.info("event", fields);
  }

  node(event: { type: "Normal" | "Warning"; reason: string; message: string }): void {
    const { type, ...fields } = event;
    if (type === "Warning") this.#log.warn("node event", fields);
    else this.#log.info("node event", fields);
  }
}
