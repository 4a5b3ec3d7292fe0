import assert from "@assert";
import { type AddressInput, badNodeAddress, hostIPs, needsResolver, statusAddresses } from "./status_addresses.ts";

const routes = "Iface\tDestination\tGateway\tFlags\tRefCnt\tUse\tMetric\tMask\tMTU\tWindow\tIRTT\n" +
  "eth1\t00000000\t0101A8C0\t0003\t0\t0\t0\t00000000\t0\t0\t0\n";
const base: AddressInput = {
  nodeIPs: [],
  hostname: "n1",
  externalCloud: false,
  interfaces: [
    { name: "lo", address: "127.0.0.1" },
    { name: "eth0", address: "10.1.0.5" },
    { name: "eth1", address: "10.2.0.5" },
    { name: "eth1", address: "2001:db8::5" },
    { name: "eth1", address: "fe80::1" },
  ],
  routes,
  resolved: [],
};
const internal = (...ips: string[]) => ips.map((address) => ({ type: "InternalIP", address }));

const cases: [string, Partial<AddressInput>, string[]][] = [
  ["status addresses: one of --node-ip", { nodeIPs: ["10.1.0.5"] }, ["10.1.0.5"]],
  ["status addresses: a dual-stack pair, in its order", { nodeIPs: ["2001:db8::5", "10.1.0.5"] }, [
    "2001:db8::5",
    "10.1.0.5",
  ]],
  ["status addresses: another text of an address is that address", { nodeIPs: ["2001:0db8:0::5"] }, ["2001:db8::5"]],
  ["status addresses: what the resolver tells, if it is the machine's", { resolved: ["192.0.2.1", "10.1.0.5"] }, [
    "10.1.0.5",
  ]],
  ["status addresses: of the resolver's answers the preferred family", { resolved: ["2001:db8::5", "10.1.0.5"] }, [
    "10.1.0.5",
  ]],
  ["status addresses: the other family when the resolver knows only that", { resolved: ["2001:db8::5"] }, [
    "2001:db8::5",
  ]],
  ["status addresses: :: prefers IPv6", { nodeIPs: ["::"], resolved: ["10.1.0.5", "2001:db8::5"] }, ["2001:db8::5"]],
  ["status addresses: loopback is no answer", { resolved: ["127.0.0.1"] }, ["10.2.0.5"]],
  ["status addresses: the default route's", {}, ["10.2.0.5"]],
  ["status addresses: 0.0.0.0: the default route's of IPv4", { nodeIPs: ["0.0.0.0"] }, ["10.2.0.5"]],
  ["status addresses: ::, the default route's of IPv6", { nodeIPs: ["::"] }, ["2001:db8::5"]],
  ["status addresses: external cloud with --node-ip", { externalCloud: true, nodeIPs: ["10.1.0.5"] }, ["10.1.0.5"]],
  ["status addresses: external cloud without: the name alone", { externalCloud: true }, []],
  ["status addresses: external cloud, family only", { externalCloud: true, nodeIPs: ["0.0.0.0"] }, ["10.2.0.5"]],
];
for (const [name, input, want] of cases) {
  Deno.test(name, () => {
    const addresses = [...internal(...want), { type: "Hostname", address: "n1" }];
    assert.deepEqual(statusAddresses({ ...base, ...input }), { addresses });
  });
}

Deno.test("status addresses: a name that is an address", () => {
  assert.deepEqual(statusAddresses({ ...base, hostname: "10.9.9.9" }), {
    addresses: [...internal("10.9.9.9"), { type: "Hostname", address: "10.9.9.9" }],
  });
});

Deno.test("status addresses: what cannot be is told", () => {
  const error = (input: Partial<AddressInput>) => {
    const result = statusAddresses({ ...base, ...input });
    return "error" in result ? result.error : "none";
  };
  assert.equal(
    error({ nodeIPs: ["192.0.2.7"] }),
    `failed to validate nodeIP: node IP: "192.0.2.7" not found in the host's network interfaces`,
  );
  assert.match(error({ nodeIPs: ["10.1.0.5", "fe80::1"] }), /^failed to validate secondaryNodeIP: .*link-local/);
  assert.match(error({ interfaces: [], routes: "" }), /can't get ip address of node n1: .*--node-ip/);
});

Deno.test("addresses that no node can have", () => {
  const bad = (ip: string) => badNodeAddress(ip, base.interfaces);
  assert.match(bad("nonsense") ?? "", /valid IP/);
  for (const ip of ["127.0.0.1", "::1", "0:0:0:0:0:0:0:1"]) assert.match(bad(ip) ?? "", /loopback/);
  for (const ip of ["224.0.0.1", "ff02::1"]) assert.match(bad(ip) ?? "", /multicast/);
  for (const ip of ["169.254.1.1", "fe80::1"]) assert.match(bad(ip) ?? "", /link-local/);
  for (const ip of ["0.0.0.0", "::", "0::0"]) assert.match(bad(ip) ?? "", /all zeros/);
  assert.equal(bad("10.1.0.5"), undefined);
});

Deno.test("the resolver is asked only when its answer matters", () => {
  assert(needsResolver({ nodeIPs: [], hostname: "n1", externalCloud: false }));
  assert(needsResolver({ nodeIPs: ["::"], hostname: "n1", externalCloud: true }));
  assert(!needsResolver({ nodeIPs: ["10.1.0.5"], hostname: "n1", externalCloud: false }));
  assert(!needsResolver({ nodeIPs: [], hostname: "10.0.0.1", externalCloud: false }));
  assert(!needsResolver({ nodeIPs: [], hostname: "n1", externalCloud: true }));
});

Deno.test("pods' host addresses: internal before external, one of each family", () => {
  const addresses = [
    { type: "ExternalIP", address: "203.0.113.1" },
    { type: "ExternalIP", address: "2001:db8::9" },
    { type: "InternalIP", address: "10.1.0.5" },
    { type: "InternalIP", address: "10.1.0.6" },
    { type: "Hostname", address: "n1" },
  ];
  assert.deepEqual(hostIPs(addresses), ["10.1.0.5", "2001:db8::9"]);
  assert.deepEqual(hostIPs([{ type: "Hostname", address: "n1" }]), []);
});
