import type { PodStatus } from "../../kube/types.ts";
import type { StatusInput } from "./input.ts";

const isV6 = (ip: string) => ip.includes(":");

/** The first address of the node's own family, then the first of the other one. */
function sorted(ips: readonly string[], primaryIsV6: boolean): string[] {
  const of = (v6: boolean) => ips.filter((ip) => ip !== "" && isV6(ip) === v6).slice(0, 1);
  return [...of(primaryIsV6), ...of(!primaryIsV6)];
}

/**
 * `podIP` and `podIPs`: the newest sandbox's while it is ready; when no sandbox is ready any more the last ones are
 * kept, so that a pod that has ended still tells where it was. Host network pods have the node's addresses, which stay
 * as first reported but for a second family that the node gets later.
 */
export function podIPs(input: StatusInput, previous: PodStatus): Pick<PodStatus, "podIP" | "podIPs"> {
  const { pod, observed, hostIPs } = input;
  const before = (previous.podIPs ?? []).flatMap(({ ip }) => ip === undefined ? [] : [ip]);
  const primaryIsV6 = isV6(hostIPs[0] ?? "");
  let ips: string[];
  if (pod.spec.hostNetwork) {
    ips = before.length > 0 ? before : hostIPs.slice(0, 1);
    const [first] = ips;
    const second = hostIPs[1];
    if (ips.length === 1 && first !== undefined && second !== undefined && isV6(first) !== isV6(second)) {
      ips = [first, second];
    }
  } else {
    const current = observed.sandboxes[0];
    ips = current?.ready ? sorted(current.ips, primaryIsV6) : [];
    if (ips.length === 0 && !observed.sandboxes.some((s) => s.ready)) ips = before;
  }
  const [first] = ips;
  return first === undefined ? {} : { podIP: first, podIPs: ips.map((ip) => ({ ip })) };
}
