import type { ActedOn } from "./field_spec.ts";

/**
 * The fields that this agent acts on; every other one is read, checked and shown at /configz but changes nothing yet.
 * Keep it true: at start the agent warns about each field that was set and is not in this list.
 */
export const actedOn: Readonly<Record<string, Exclude<ActedOn, false>>> = {
  "logging.format": true,
  "logging.flushFrequency": true,
  "logging.verbosity": true,
  "logging.vmodule": true,
  featureGates: "partly",
};
