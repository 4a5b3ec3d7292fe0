import type { Intended } from "./differences.ts";

/** Differences that shall be, each with its reason. */
export const intended: readonly Intended[] = [
  { at: "pages.configz.kubeletconfig.healthzPort", why: "each run takes a free one" },
];
