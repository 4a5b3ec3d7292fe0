import type { Event, ObjectReference } from "../../mod/kube/types.ts";

/** What happened, to what object. */
export interface Occurrence {
  readonly about: ObjectReference;
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
  readonly annotations?: Readonly<Record<string, string>>;
}

/** An event as the agent makes them: what counting and aggregating needs is there. */
export type CountedEvent = Event & {
  metadata: { name: string; namespace: string };
  count: number;
  firstTimestamp: string;
  lastTimestamp: string;
};
