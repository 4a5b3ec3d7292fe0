import assert from "@assert";
import { defaultRouteInterface, nodeAddresses } from "./addresses.ts";

const header = "Iface\tDestination\tGateway \tFlags\tRefCnt\tUse\tMetric\tMask\t\tMTU\tWindow\tIRTT\n";
const route = (name: string, destination: string, flags: string, metric: number, mask: string) =>
  `${name}\t${destination}\t0101A8C0\t${flags}\t0\t0\t${metric}\t${mask}\t0\t0\t0\n`;
const routes = header + route("eth0", "0001A8C0", "0001", 0, "00FFFFFF") +
  route("eth1", "00000000", "0003", 200, "00000000") +
  route("eth2", "00000000", "0003", 100, "00000000");
const interfaces = [
  { name: "lo", address: "127.0.0.1" },
  { name: "eth0", address: "192.168.1.5" },
  { name: "eth0", address: "fe80::1" },
  { name: "eth1", address: "10.1.0.5" },
  { name: "eth2", address: "10.2.0.5" },
  { name: "eth2", address: "2001:db8::5" },
];

Deno.test("the default route with the least metric that is up decides", () => {
  assert.equal(defaultRouteInterface(routes), "eth2");
  assert.equal(defaultRouteInterface(header + route("eth9", "00000000", "0002", 0, "00000000")), undefined);
  assert.equal(defaultRouteInterface(""), undefined);
});

const cases: [string, Parameters<typeof nodeAddresses>[0], string[]][] = [
  ["the flag wins", { nodeIp: "10.9.9.9", interfaces, routes }, ["10.9.9.9"]],
  ["a dual-stack pair", { nodeIp: "10.9.9.9,2001:db8::9", interfaces, routes }, ["10.9.9.9", "2001:db8::9"]],
  ["the default route's address", { nodeIp: "", interfaces, routes }, ["10.2.0.5"]],
  ["the family asked for", { nodeIp: "::", interfaces, routes }, ["2001:db8::5"]],
  ["no default route: the first usable address", { nodeIp: "", interfaces, routes: header }, ["192.168.1.5"]],
  ["nothing usable", { nodeIp: "", interfaces: [{ name: "lo", address: "127.0.0.1" }], routes: "" }, []],
];
for (const [name, input, want] of cases) {
  Deno.test(`node addresses: ${name}`, () => assert.deepEqual(nodeAddresses(input), want));
}
