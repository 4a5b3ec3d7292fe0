import type { KubeletConfiguration } from "../../../kube/types.ts";
import type { FeatureGates } from "../feature_gates.ts";
import { fieldName } from "../fields.ts";
import type { KubeletFlags } from "../flags.ts";
import { getPath } from "../json.ts";
import type { KubeletConfig } from "../kubelet_config.ts";

/** What validation knows of the machine; a fact that is absent is not checked. */
export interface MachineFacts {
  readonly cgroupVersion?: 1 | 2;
  /** Sorted CPU numbers. */
  readonly onlineCpus?: readonly number[];
  readonly memoryBytes?: number;
}

/** What the rules look at, and where they report. */
export class Context {
  readonly problems: string[] = [];
  readonly warnings: string[] = [];

  constructor(
    /** As written, with defaults. */
    readonly written: KubeletConfiguration,
    readonly config: KubeletConfig,
    readonly flags: KubeletFlags,
    readonly gates: FeatureGates,
    readonly facts: MachineFacts,
  ) {}

  /** True without an API server. */
  get standalone(): boolean {
    return this.flags.kubeconfig === "";
  }

  /** A violation: `what` goes on after the field's name and value. */
  refuse(path: string, what: string): void {
    this.problems.push(`${fieldName(path)}: ${show(getPath(this.written, path))} ${what}`);
  }

  /** A violation whose text says the value itself. */
  refuseText(path: string, what: string): void {
    this.problems.push(`${fieldName(path)}: ${what}`);
  }
}

function show(value: unknown): string {
  if (value === undefined || value === null) return "(unset)";
  const text = typeof value === "object" || typeof value === "string" ? JSON.stringify(value) : String(value);
  return text.length > 120 ? `${text.slice(0, 120)}…` : text;
}
