import type { BoundPod } from "./types.ts";

/** One event about a pod, as the contract names them (runtime-contract.md section 16). */
export interface PodEvent {
  readonly pod: BoundPod;
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
  /** Such as `spec.containers{web}`. */
  readonly fieldPath?: string;
  readonly annotations?: Record<string, string>;
}

/** Where events go: the log for a standalone agent, the API server later. Never throws, never waits. */
export interface EventSink {
  pod(event: PodEvent): void;
  node(event: { type: "Normal" | "Warning"; reason: string; message: string }): void;
}

/** Keeps events, for tests. */
export class RecordingEvents implements EventSink {
  readonly events: PodEvent[] = [];
  readonly nodeEvents: { type: "Normal" | "Warning"; reason: string; message: string }[] = [];
  pod(event: PodEvent): void {
    this.events.push(event);
  }
  node(event: { type: "Normal" | "Warning"; reason: string; message: string }): void {
    this.nodeEvents.push(event);
  }
}
