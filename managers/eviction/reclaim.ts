import { signalFacts } from "./signals.ts";
import type { DiskLayout, NodeReclaim, Signal } from "./types.ts";

/**
 * What is given back before a pod is evicted, in order (runtime-contract.md section 20): with one disk dead containers
 * and unused images; with a disk for images and writable layers the same, but only when that one runs full; with one
 * for images alone the images there, and the containers here.
 */
export function reclaimFor(signal: Signal, layout: DiskLayout): readonly (keyof NodeReclaim)[] {
  if (signalFacts[signal].condition !== "DiskPressure") return [];
  const fs = signal.split(".")[0];
  switch (layout) {
    case "single":
      return ["containers", "images"];
    case "imagefs":
      return fs === "nodefs" ? [] : ["containers", "images"];
    case "split":
      return fs === "imagefs" ? ["images"] : ["containers"];
  }
}
