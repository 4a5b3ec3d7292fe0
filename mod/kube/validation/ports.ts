import type { Container } from "../types.ts";
import { checkPortName, checkPortNumber, isIp } from "./names.ts";
import type { Problems } from "./problem.ts";

export const protocols = ["TCP", "UDP", "SCTP"];

/** Checks the ports of one container. */
export function checkPorts(p: Problems, path: string, ports: Container["ports"]): void {
  const names = new Set<string>();
  ports?.forEach((port, i) => {
    const at = `${path}[${i}]`;
    if (port.name) {
      checkPortName(p, `${at}.name`, port.name);
      if (names.has(port.name)) p.add(`${at}.name`, port.name, "is used twice", "give each port its own name");
      names.add(port.name);
    }
    if (!port.containerPort) p.required(`${at}.containerPort`, "use a number from 1 to 65535");
    else checkPortNumber(p, `${at}.containerPort`, port.containerPort);
    if (port.hostPort) checkPortNumber(p, `${at}.hostPort`, port.hostPort);
    p.oneOf(`${at}.protocol`, port.protocol, protocols);
    if (port.hostIP && !isIp(port.hostIP)) p.add(`${at}.hostIP`, port.hostIP, "is no IP address", "use an IP address");
  });
}

/** Checks that containers which run together want no host port twice. */
export function checkHostPorts(
  p: Problems,
  list: string,
  containers: readonly { at: number; spec: Container }[],
): void {
  const taken = new Set<string>();
  for (const { at, spec } of containers) {
    spec.ports?.forEach(({ hostPort, hostIP, protocol }, i) => {
      if (!hostPort) return;
      const key = `${protocol}/${hostIP ?? ""}/${hostPort}`;
      if (taken.has(key)) {
        p.add(`${list}[${at}].ports[${i}].hostPort`, key, "is used twice in the pod", "use another host port");
      }
      taken.add(key);
    });
  }
}

/** On the host's network a host port is the container's port. */
export function checkHostNetworkPorts(p: Problems, list: string, containers: readonly Container[]): void {
  containers.forEach(({ ports }, c) =>
    ports?.forEach(({ hostPort, containerPort }, i) => {
      if ((hostPort ?? 0) === containerPort) return;
      const remedy = "leave hostPort out, or make it the same as containerPort";
      p.add(`${list}[${c}].ports[${i}].hostPort`, hostPort, "differs from containerPort on the host's network", remedy);
    })
  );
}
