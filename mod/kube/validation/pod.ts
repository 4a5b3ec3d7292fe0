import type { BoundPod } from "../types.ts";
import type { FieldProblem } from "./problem.ts";

export function validatePod(_pod: BoundPod): FieldProblem[] {
  return [];
}
