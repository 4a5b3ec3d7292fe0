import assert from "@assert";
import type { BoundPod, Service, ServiceSpec } from "../../kube/types.ts";
import { serviceEnv } from "./service_env.ts";

const pod = (namespace: string, enableServiceLinks?: boolean): BoundPod => ({
  metadata: { name: "p", namespace, uid: "u" },
  spec: { containers: [], ...(enableServiceLinks === undefined ? {} : { enableServiceLinks }) },
});
const service = (namespace: string, name: string, spec: ServiceSpec): Service => ({
  metadata: { namespace, name },
  spec,
});
const master = service("default", "kubernetes", { clusterIP: "10.0.0.1", ports: [{ name: "https", port: 443 }] });
const hosts = (env: ReadonlyMap<string, string>) => [...env].filter(([name]) => name.endsWith("_SERVICE_HOST"));

Deno.test("a service's variables: names and values of the contract", () => {
  const redis = service("ns", "redis-primary", {
    clusterIP: "10.0.0.11",
    ports: [{ name: "main-port", protocol: "TCP", port: 6379 }, { name: "stats", protocol: "UDP", port: 81 }],
  });
  assert.deepEqual([...serviceEnv(pod("ns", true), [redis])], [
    ["REDIS_PRIMARY_SERVICE_HOST", "10.0.0.11"],
    ["REDIS_PRIMARY_SERVICE_PORT", "6379"],
    ["REDIS_PRIMARY_SERVICE_PORT_MAIN_PORT", "6379"],
    ["REDIS_PRIMARY_SERVICE_PORT_STATS", "81"],
    ["REDIS_PRIMARY_PORT", "tcp://10.0.0.11:6379"],
    ["REDIS_PRIMARY_PORT_6379_TCP", "tcp://10.0.0.11:6379"],
    ["REDIS_PRIMARY_PORT_6379_TCP_PROTO", "tcp"],
    ["REDIS_PRIMARY_PORT_6379_TCP_PORT", "6379"],
    ["REDIS_PRIMARY_PORT_6379_TCP_ADDR", "10.0.0.11"],
    ["REDIS_PRIMARY_PORT_81_UDP", "udp://10.0.0.11:81"],
    ["REDIS_PRIMARY_PORT_81_UDP_PROTO", "udp"],
    ["REDIS_PRIMARY_PORT_81_UDP_PORT", "81"],
    ["REDIS_PRIMARY_PORT_81_UDP_ADDR", "10.0.0.11"],
  ]);
});

Deno.test("an IPv6 address stands in brackets where a port follows; an unnamed port is TCP", () => {
  const env = serviceEnv(pod("ns", true), [service("ns", "six", { clusterIP: "fd00::1", ports: [{ port: 80 }] })]);
  assert.equal(env.get("SIX_SERVICE_HOST"), "fd00::1");
  assert.equal(env.get("SIX_PORT"), "tcp://[fd00::1]:80");
  assert.equal(env.get("SIX_PORT_80_TCP_ADDR"), "fd00::1");
});

Deno.test("which services a pod is told of", () => {
  const services = [
    service("ns", "b", { clusterIP: "10.0.0.3", ports: [{ port: 1 }] }),
    service("ns", "a", { clusterIP: "10.0.0.2", ports: [{ port: 1 }] }),
    service("other", "c", { clusterIP: "10.0.0.4", ports: [{ port: 1 }] }),
    service("default", "d", { clusterIP: "10.0.0.5", ports: [{ port: 1 }] }),
    service("ns", "headless", { clusterIP: "None", ports: [{ port: 1 }] }),
    service("ns", "external", { ports: [] }),
    service("ns", "unset", { clusterIP: "", ports: [] }),
    master,
  ];
  const k = ["KUBERNETES_SERVICE_HOST", "10.0.0.1"];
  const cases: [BoundPod, string[][]][] = [
    [pod("ns", true), [["A_SERVICE_HOST", "10.0.0.2"], ["B_SERVICE_HOST", "10.0.0.3"], k]],
    [pod("ns", false), [k]],
    [pod("ns"), [k]],
    [pod("default", true), [["D_SERVICE_HOST", "10.0.0.5"], k]],
    [pod("default", false), [k]],
  ];
  for (const [given, expected] of cases) {
    assert.deepEqual(hosts(serviceEnv(given, services)), expected);
  }
});

Deno.test("a pod's own service named kubernetes wins over the cluster's, whatever their order", () => {
  const own = service("ns", "kubernetes", { clusterIP: "10.9.9.9", ports: [{ port: 1 }] });
  for (const services of [[own, master], [master, own]]) {
    assert.equal(serviceEnv(pod("ns", true), services).get("KUBERNETES_SERVICE_HOST"), "10.9.9.9");
    assert.equal(serviceEnv(pod("ns", false), services).get("KUBERNETES_SERVICE_HOST"), "10.0.0.1");
  }
});
