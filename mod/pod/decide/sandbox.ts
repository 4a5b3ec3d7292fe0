import type { BoundPod } from "../../kube/types.ts";
import type { Why } from "../actions.ts";
import type { ObservedPod } from "../observed.ts";

/** The text of the `SandboxChanged` event (runtime-contract.md section 16). */
export const sandboxChangedText = "Pod sandbox changed, it will be killed and re-created.";

/** What section 4 says of the pod's sandbox. */
export type SandboxVerdict =
  | { readonly needed: false; readonly sandboxId: string }
  | {
    readonly needed: true;
    readonly attempt: number;
    readonly why: Why;
    /** The sandbox that the new one stands in for; unset for the first one and when the network mode changed. */
    readonly replaces?: string;
  };

/** Whether the pod needs a new sandbox, and why (runtime-contract.md section 4, last rule). */
export function sandboxVerdict(pod: BoundPod, observed: ObservedPod): SandboxVerdict {
  const current = observed.sandboxes[0];
  if (!current) {
    return { needed: true, attempt: 0, why: { reason: "NoSandbox", message: "the pod has no sandbox yet" } };
  }
  const anew = (reason: string, message: string): SandboxVerdict => ({
    needed: true,
    attempt: current.attempt + 1,
    why: { reason, message },
    ...(reason === "NetworkModeChanged" ? {} : { replaces: current.id }),
  });
  const ready = observed.sandboxes.filter((s) => s.ready).length;
  if (ready > 1) return anew("SeveralSandboxes", `${ready} sandboxes are ready, the pod may have one`);
  if (!current.ready) return anew("SandboxNotReady", `sandbox ${current.id} is not ready`);
  const hostNetwork = pod.spec.hostNetwork === true;
  if (current.hostNetwork !== hostNetwork) {
    const wanted = hostNetwork ? "the node's network" : "a network of its own";
    return anew("NetworkModeChanged", `the pod asks for ${wanted}, sandbox ${current.id} has the other kind`);
  }
  if (!hostNetwork && current.hasNetwork && !current.ips.some((ip) => ip !== "")) {
    return anew("SandboxWithoutIP", `sandbox ${current.id} has no IP address`);
  }
  return { needed: false, sandboxId: current.id };
}
