import { KubeletError } from "../../base/errors.ts";
import { gateDependencies } from "./feature_gates_dependencies.ts";
import { knownGates } from "./feature_gates_table.ts";
import { didYouMean } from "./nearest.ts";

/** How mature a gate is. */
export type GateStage = "ALPHA" | "BETA" | "GA" | "DEPRECATED";

/** A gate as Kubernetes v1.36 knows it. */
export interface GateSpec {
  readonly stage: GateStage;
  readonly on: boolean;
  /** The default cannot be changed. */
  readonly locked?: true;
}

/** The state of every gate. */
export class FeatureGates {
  constructor(private readonly states: ReadonlyMap<string, boolean>) {}

  /** Whether a gate is on; asking for a gate that does not exist is a fault of the agent. */
  enabled(name: string): boolean {
    const state = this.states.get(name);
    if (state === undefined) throw new KubeletError("Internal", `feature gate ${name} is not known`);
    return state;
  }

  /** Every gate, sorted by name. */
  all(): [name: string, on: boolean, stage: GateStage][] {
    return [...this.states].map(([name, on]) => [name, on, knownGates[name]?.stage ?? "ALPHA"]);
  }
}

/** What setting gates gave: the gates and what was wrong or worth a warning. */
export interface ResolvedGates {
  readonly gates: FeatureGates;
  readonly problems: readonly string[];
  readonly warnings: readonly string[];
}

/**
 * Applies settings over the defaults (features.md section 10): unknown gates, changes of locked ones and unmet
 * dependencies are problems; AllAlpha and AllBeta set what is not set by name.
 */
export function resolveGates(settings: Readonly<Record<string, boolean>>): ResolvedGates {
  const problems: string[] = [];
  const warnings: string[] = [];
  const states = new Map(Object.entries(knownGates).map(([name, spec]) => [name, spec.on]));
  const set = new Map<string, boolean>();
  for (const [name, on] of Object.entries(settings)) {
    const spec = Object.hasOwn(knownGates, name) ? knownGates[name] : undefined;
    if (spec === undefined) {
      problems.push(
        `featureGates (--feature-gates): unknown gate ${JSON.stringify(name.slice(0, 80))}` +
          `${didYouMean(name, Object.keys(knownGates), { before: problems.length })}; remove it or correct its name`,
      );
      continue;
    }
    if (spec.locked && spec.on !== on) {
      problems.push(
        `featureGates (--feature-gates): ${name}=${on} is not possible, the gate is locked to ${spec.on}; remove it`,
      );
      continue;
    }
    if (spec.stage === "GA" || spec.stage === "DEPRECATED") {
      warnings.push(`feature gate ${name} is ${spec.stage === "GA" ? "GA" : "deprecated"}; a later release removes it`);
    }
    set.set(name, on);
  }
  for (const [group, stage] of [["AllAlpha", "ALPHA"], ["AllBeta", "BETA"]] as const) {
    const on = set.get(group);
    if (on === undefined) continue;
    for (const [name, spec] of Object.entries(knownGates)) {
      if (spec.stage === stage && !spec.locked && name !== "AllAlpha" && name !== "AllBeta") states.set(name, on);
    }
  }
  for (const [name, on] of set) states.set(name, on);
  for (const [name, needs] of Object.entries(gateDependencies)) {
    if (!states.get(name)) continue;
    const off = needs.filter((need) => states.get(need) !== true);
    if (off.length > 0) {
      problems.push(
        `featureGates (--feature-gates): ${name} is on but needs ${off.join(", ")}; turn ${
          off.length > 1 ? "them" : "it"
        } on or set ${name}=false`,
      );
    }
  }
  return { gates: new FeatureGates(states), problems, warnings };
}
