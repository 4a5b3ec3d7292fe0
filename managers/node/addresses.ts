/** One address of one interface, as the system lists them. */
export interface InterfaceAddress {
  readonly name: string;
  readonly address: string;
}

/** The interface of the default route in a /proc/net/route table; undefined when there is none. */
export function defaultRouteInterface(table: string): string | undefined {
  let best: { name: string; metric: number } | undefined;
  for (const line of table.split("\n").slice(1)) {
    const [name, destination, , flags, , , metric, mask] = line.trim().split(/\s+/);
    if (!name || destination !== "00000000" || mask !== "00000000") continue;
    // RTF_UP and RTF_GATEWAY
    if ((parseInt(flags ?? "0", 16) & 3) !== 3) continue;
    const cost = Number(metric ?? 0);
    if (!best || cost < best.metric) best = { name, metric: cost };
  }
  return best?.name;
}

function usable(address: string): boolean {
  if (address.includes(":")) return !/^(::1?$|fe[89ab]|ff)/i.test(address);
  return !/^(127\.|169\.254\.|0\.0\.0\.0$|22[4-9]\.|23\d\.)/.test(address);
}

/**
 * The node's addresses, primary first (runtime-contract.md section 19): those of --node-ip; else an address of the
 * default route's interface; else the first usable one of any interface. Loopback, link-local, multicast and
 * unspecified addresses are no node addresses. `0.0.0.0` and `::` in --node-ip choose the family only.
 */
export function nodeAddresses(input: {
  nodeIp: string;
  interfaces: readonly InterfaceAddress[];
  routes: string;
}): string[] {
  const given = input.nodeIp.split(",").map((ip) => ip.trim()).filter((ip) => ip !== "");
  if (given.length > 0 && given.every((ip) => ip !== "0.0.0.0" && ip !== "::")) return given;
  const v6 = given[0] === "::";
  const family = (a: InterfaceAddress) => a.address.includes(":") === v6 && usable(a.address);
  const route = defaultRouteInterface(input.routes);
  const found = input.interfaces.find((a) => a.name === route && family(a)) ?? input.interfaces.find(family);
  return found ? [found.address] : [];
}
