import assert from "@assert";
import type { BoundPod, PodSpec } from "../../kube/types.ts";
import { checkResolvConf, parseResolvConf, podDns, type PodDnsInput } from "./dns.ts";

function dns(spec: Partial<PodSpec>, input: Partial<PodDnsInput> = {}): ReturnType<typeof podDns> {
  const pod: BoundPod = { metadata: { name: "p", namespace: "ns", uid: "u" }, spec: { containers: [], ...spec } };
  return podDns({
    pod,
    resolvConf: { servers: ["8.8.8.8"], searches: ["corp", "svc.cluster.local"], options: ["timeout:2"] },
    clusterDNS: ["10.0.0.10"],
    clusterDomain: "cluster.local",
    nodeIPs: ["192.0.2.1"],
    ...input,
  });
}

Deno.test("resolv.conf is read as resolvers read it", () => {
  const cases: [string, ReturnType<typeof parseResolvConf>][] = [
    ["", { servers: [], searches: [], options: [] }],
    ["# nameserver 1\n \n;x\nnameserver 1.2.3.4\n\tnameserver  fe80::1%eth0 more\n", {
      servers: ["1.2.3.4", "fe80::1%eth0"],
      searches: [],
      options: [],
    }],
    ["search a b\nsearch c. . d", { servers: [], searches: ["c", "d"], options: [] }],
    ["search a\nsearch", { servers: [], searches: [], options: [] }],
    ["options ndots:1 rotate\noptions ndots:2 attempts:3\r\n", {
      servers: [],
      searches: [],
      options: ["ndots:2", "rotate", "attempts:3"],
    }],
    ["domain x\nnameserverx 1", { servers: [], searches: [], options: [] }],
  ];
  for (const [text, want] of cases) assert.deepEqual(parseResolvConf(text), want, text);
  assert.throws(() => parseResolvConf("a\nnameserver"), { code: "BadConfig", message: /line 2/ });
});

Deno.test("each policy has its servers", () => {
  const node = { servers: ["8.8.8.8"], searches: ["corp", "svc.cluster.local"], options: ["timeout:2"] };
  const cluster = {
    servers: ["10.0.0.10"],
    searches: ["ns.svc.cluster.local", "svc.cluster.local", "cluster.local", "corp"],
    options: ["ndots:5"],
  };
  const none = { servers: [], searches: [], options: [] };
  const cases: [string, Partial<PodSpec>, Partial<PodDnsInput>, unknown][] = [
    ["default", { dnsPolicy: "Default" }, {}, node],
    ["none", { dnsPolicy: "None" }, {}, none],
    ["cluster", { dnsPolicy: "ClusterFirst" }, {}, cluster],
    ["cluster on the host's network", { dnsPolicy: "ClusterFirst", hostNetwork: true }, {}, node],
    ["cluster all the same", { dnsPolicy: "ClusterFirstWithHostNet", hostNetwork: true }, {}, cluster],
    ["unknown", { dnsPolicy: "Odd", hostNetwork: true }, {}, cluster],
    ["no domain", { dnsPolicy: "ClusterFirst" }, { clusterDomain: "" }, {
      ...cluster,
      searches: ["corp", "svc.cluster.local"],
    }],
    ["no node file", { dnsPolicy: "Default" }, { resolvConf: undefined, nodeIPs: ["192.0.2.1", "fd00::1"] }, {
      servers: ["127.0.0.1", "::1"],
      searches: ["."],
      options: [],
    }],
    ["no node file, no address", { dnsPolicy: "Default" }, { resolvConf: undefined, nodeIPs: [] }, {
      servers: ["127.0.0.1"],
      searches: ["."],
      options: [],
    }],
    ["cluster, no node file", { dnsPolicy: "ClusterFirst" }, { resolvConf: undefined }, {
      ...cluster,
      searches: cluster.searches.slice(0, 3),
    }],
  ];
  for (const [what, spec, input, want] of cases) {
    assert.deepEqual(dns(spec, input), { config: want, events: [] }, what);
  }
});

Deno.test("without a cluster DNS the node's serves, and both are told", () => {
  const { config, events } = dns({ dnsPolicy: "ClusterFirst" }, { clusterDNS: [] });
  assert.deepEqual(config.servers, ["8.8.8.8"]);
  const text = 'kubelet does not have ClusterDNS IP configured and cannot create Pod using "ClusterFirst" policy. ' +
    'Falling back to "Default" policy.';
  assert.deepEqual(events.map((e) => [e.about, e.reason, e.message]), [
    ["node", "MissingClusterDNS", text],
    ["pod", "MissingClusterDNS", `pod: "p_ns(u)". ${text}`],
  ]);
});

Deno.test("the pod's own settings are added", () => {
  const dnsConfig = {
    nameservers: ["1.1.1.1", "8.8.8.8"],
    searches: ["corp", "own"],
    options: [{ name: "timeout", value: "9" }, { name: "rotate" }, { name: "__proto__", value: "1" }],
  };
  assert.deepEqual(dns({ dnsPolicy: "Default", dnsConfig }).config, {
    servers: ["8.8.8.8", "1.1.1.1"],
    searches: ["corp", "svc.cluster.local", "own"],
    options: ["timeout:9", "rotate", "__proto__:1"],
  });
});

Deno.test("what resolvers can't take is cut, with an event", () => {
  const servers = ["1", "2", "3", "4"];
  const many = dns({ dnsPolicy: "None", dnsConfig: { nameservers: servers } });
  assert.deepEqual(many.config.servers, ["1", "2", "3"]);
  assert.match(many.events[0]?.message ?? "", /^Nameserver limits were exceeded.* nameserver line is: 1 2 3$/);
  const searches = (list: string[]) => dns({ dnsPolicy: "None", dnsConfig: { searches: list } });
  const short = Array.from({ length: 33 }, (_, i) => `s${i}`);
  assert.equal(searches(short).config.searches.length, 32);
  assert.match(searches(short).events[0]?.message ?? "", /^Search Line limits were exceeded.*line is: s0 s1 .* s31$/);
  assert.deepEqual(searches(["a", "b".repeat(254), "c"]).config.searches, ["a", "c"]);
  const long = Array.from({ length: 11 }, (_, i) => String.fromCharCode(97 + i).repeat(200));
  const cutLong = searches(long);
  assert.equal(cutLong.config.searches.length, 10, "10 × 200 + 9 spaces fit in 2048");
  assert.equal(cutLong.events.length, 1);
  assert.equal(searches(["a".repeat(253)]).events.length, 0);
});

Deno.test("the node's file is checked once for all pods", () => {
  const of = (searches: string[], domain = "cluster.local") =>
    checkResolvConf({ servers: [], searches, options: [] }, "/r", domain)?.message;
  const list = (n: number, length = 1) => Array.from({ length: n }, () => "x".repeat(length));
  assert.equal(of(list(29)), undefined);
  assert.equal(of(list(30)), "Resolv.conf file '/r' contains search line consisting of more than 29 domains!");
  assert.equal(of(list(32), ""), undefined);
  assert.match(of(list(1, 254)) ?? "", /search path which length is more than allowed 253 chars/);
  assert.match(of(list(9, 250)) ?? "", /search line which length is more than allowed 2048 chars/);
});
