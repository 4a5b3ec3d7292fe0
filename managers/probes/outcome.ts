/**
 * What a probe found out. A prober that could not find out anything (a bad port name, a runtime that failed) throws
 * instead; such a try is repeated and then discarded (runtime-contract.md section 18).
 */
export interface ProbeOutcome {
  readonly result: "success" | "warning" | "failure";
  /** For people: the reason of a failure or warning. */
  readonly output: string;
}
