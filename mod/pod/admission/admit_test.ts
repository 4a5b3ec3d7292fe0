import assert from "@assert";
import fc from "fast-check";
import type { BoundPod, Container, NodeSelectorRequirement, PodSpec } from "../../kube/types.ts";
import { admit } from "./admit.ts";
import { requestOf } from "./predicates.ts";
import { badSysctlPatterns, dottedSysctl } from "./sysctls.ts";
import type { Admission, AdmissionInput, NodeFacts } from "./types.ts";

const node: NodeFacts = {
  name: "node1",
  allocatable: { cpu: "2", memory: "1Gi", pods: "3", "ephemeral-storage": "10Gi", "ex.io/gpu": "1" },
  labels: { "kubernetes.io/os": "linux", "kubernetes.io/arch": "amd64", disk: "ssd", size: "12" },
  os: "linux",
  arch: "amd64",
  kernelVersion: "6.8.0-45-generic",
  features: {},
};
let serial = 0;
interface Made {
  readonly requests?: Record<string, string>;
  readonly limits?: Record<string, string>;
  readonly container?: Partial<Container>;
  readonly spec?: Partial<PodSpec>;
  readonly metadata?: Partial<BoundPod["metadata"]>;
  readonly priority?: number;
  readonly static?: boolean;
}
function podOf(made: Made = {}): BoundPod {
  const name = `p${serial++}`;
  const resources = {
    ...(made.requests ? { requests: made.requests } : {}),
    ...(made.limits ? { limits: made.limits } : {}),
  };
  return {
    metadata: {
      name,
      namespace: "ns",
      uid: name,
      ...(made.static ? { annotations: { "kubernetes.io/config.source": "file" } } : {}),
      ...made.metadata,
    },
    spec: {
      containers: [{ name: "c", resources, ...made.container }],
      ...(made.priority === undefined ? {} : { priority: made.priority }),
      ...made.spec,
    },
  };
}
const ok: Admission = { admit: true, victims: [] };
const no = (reason: string, message: string): Admission => ({ admit: false, reason, message });
const check = (pod: BoundPod, over: Partial<AdmissionInput> = {}) => admit({ pod, node, active: [], ...over });

Deno.test("resources: the first that is short, with its figures", () => {
  const text = (r: string, a: number, b: number, c: number) =>
    no(`OutOf${r}`, `Node didn't have enough resource: ${r}, requested: ${a}, used: ${b}, capacity: ${c}`);
  const some = podOf({ requests: { cpu: "500m", memory: "512Mi", "ex.io/gpu": "1" } });
  type Row = [Made, BoundPod[], Admission];
  const rows: Row[] = [
    [{}, [], ok],
    [{ requests: { cpu: "2", memory: "1Gi" } }, [], ok],
    [{ requests: { cpu: "1501m" } }, [some], text("cpu", 1501, 500, 2000)],
    [{ requests: { cpu: "3", memory: "2Gi" } }, [], text("cpu", 3000, 0, 2000)],
    [{ requests: { memory: "513Mi" } }, [some], text("memory", 513 << 20, 512 << 20, 1 << 30)],
    [{ requests: { "ephemeral-storage": "11Gi" } }, [], text("ephemeral-storage", 11 * 2 ** 30, 0, 10 * 2 ** 30)],
    [{ requests: { "ex.io/gpu": "1" } }, [some], text("ex.io/gpu", 1, 1, 1)],
    [{ requests: { "ex.io/unknown": "5" } }, [], ok],
    [{ requests: { "hugepages-2Mi": "2Mi" } }, [], text("hugepages-2Mi", 2 << 20, 0, 0)],
    [{ requests: JSON.parse(`{"cpu": "0", "__proto__": "1", "constructor": "1"}`) }, [], ok],
    [{ requests: { cpu: "9" } }, [podOf(), podOf(), podOf()], text("pods", 1, 3, 3)],
    [{ requests: { cpu: "1" }, spec: { overhead: { cpu: "1500m" } } }, [], text("cpu", 2500, 0, 2000)],
  ];
  for (const [made, active, want] of rows) assert.deepEqual(check(podOf(made), { active }), want, JSON.stringify(made));
  assert.deepEqual(
    check(podOf(), { node: { ...node, allocatable: {} } }),
    no("InvalidNodeInfo", "Kubelet cannot get node info."),
  );
});

Deno.test("the pod itself, and an older pod of its static name, take nothing away", () => {
  const old = podOf({ static: true, requests: { cpu: "2" }, metadata: { name: "same", uid: "old" } });
  const pod = podOf({ static: true, requests: { cpu: "2" }, metadata: { name: "same", uid: "new" } });
  assert.deepEqual(check(pod, { active: [old, pod] }), ok);
  const other = podOf({ static: true, requests: { cpu: "2" } });
  assert.equal(check(pod, { active: [other] }).admit, false);
});

Deno.test("sysctls: safe ones, allowed ones, and none of a namespace shared with the host", () => {
  const notListed = (name: string) => no("SysctlForbidden", `forbidden sysctl: "${name}" not allowlisted`);
  const shared = (name: string, ns: string) =>
    no("SysctlForbidden", `forbidden sysctl: "${name}" not allowed with host ${ns} enabled`);
  type Row = [name: string, allowed: string[], spec: Partial<PodSpec>, want: Admission];
  const rows: Row[] = [
    ["net.ipv4.tcp_syncookies", [], {}, ok],
    ["net/ipv4/tcp_syncookies", [], {}, ok],
    ["net.ipv4.tcp_rmem", [], {}, ok],
    ["net.ipv4.tcp_syncookies", [], { hostNetwork: true }, shared("net.ipv4.tcp_syncookies", "Net")],
    ["kernel.shm_rmid_forced", [], { hostIPC: true }, shared("kernel.shm_rmid_forced", "IPC")],
    ["kernel.shm_rmid_forced", [], { hostNetwork: true }, ok],
    ["kernel.msgmax", [], {}, notListed("kernel.msgmax")],
    ["kernel.msgmax", ["kernel.msg*"], {}, ok],
    ["kernel.msgmax", ["kernel/msg*"], {}, ok],
    ["kernel.msgmax", ["kernel.msg*"], { hostIPC: true }, shared("kernel.msgmax", "IPC")],
    ["net.core.somaxconn", ["net.core.somaxconn"], {}, ok],
    ["net.core.somaxconn2", ["net.core.somaxconn"], {}, notListed("net.core.somaxconn2")],
    ["vm.swappiness", ["vm.*"], {}, notListed("vm.swappiness")],
  ];
  for (const [name, allowedUnsafeSysctls, spec, want] of rows) {
    const pod = podOf({ spec: { ...spec, securityContext: { sysctls: [{ name, value: "1" }] } } });
    assert.deepEqual(check(pod, { policy: { allowedUnsafeSysctls } }), want, name);
  }
  const rmem = podOf({ spec: { securityContext: { sysctls: [{ name: "net.ipv4.tcp_rmem", value: "1" }] } } });
  for (const kernelVersion of ["4.14.9", "3.20", "odd"]) {
    assert.deepEqual(check(rmem, { node: { ...node, kernelVersion } }), notListed("net.ipv4.tcp_rmem"));
  }
  assert.deepEqual(badSysctlPatterns(["net.*", "vm.*", "kernel.sem", "kernel.semx", "fs.mqueue.*"]), [
    "vm.*",
    "kernel.semx",
  ]);
  assert.equal(dottedSysctl("net/ipv4/conf/eth0.1/x"), "net.ipv4.conf.eth0/1.x");
  assert.equal(dottedSysctl("net.ipv4.conf.eth0/1.x"), "net.ipv4.conf.eth0/1.x");
});

Deno.test("platform: OS label, OS field, supplemental groups", () => {
  assert.deepEqual(
    check(podOf({ metadata: { labels: { "kubernetes.io/os": "windows" } } })),
    no(
      "PodOSSelectorNodeLabelDoesNotMatch",
      "Failed to admit pod as the `kubernetes.io/os` label doesn't match node label",
    ),
  );
  assert.deepEqual(check(podOf({ metadata: { labels: { "kubernetes.io/os": "linux" } } })), ok);
  assert.deepEqual(
    check(podOf({ spec: { os: { name: "windows" } } })),
    no("PodOSNotSupported", "Failed to admit pod as the OS field doesn't match node OS"),
  );
  const strict = podOf({ spec: { securityContext: { supplementalGroupsPolicy: "Strict" } } });
  assert.deepEqual(
    check(strict),
    no("SupplementalGroupsPolicyNotSupported", "SupplementalGroupsPolicy=Strict is not supported in this node"),
  );
  assert.deepEqual(check(strict, { node: { ...node, features: { supplementalGroupsPolicy: true } } }), ok);
});

Deno.test("node selector, affinity and name", () => {
  const misfit = no("NodeAffinity", "Predicate NodeAffinity failed: node(s) didn't match Pod's node affinity/selector");
  const needs = (...matchExpressions: NodeSelectorRequirement[]): Partial<PodSpec> => ({
    affinity: {
      nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms: [{ matchExpressions }] } },
    },
  });
  const term = (key: string, operator: string, ...values: string[]) => needs({ key, operator, values });
  const fields = (value: string): Partial<PodSpec> => ({
    affinity: {
      nodeAffinity: {
        requiredDuringSchedulingIgnoredDuringExecution: {
          nodeSelectorTerms: [
            { matchExpressions: [{ key: "no", operator: "Exists" }] },
            { matchFields: [{ key: "metadata.name", operator: "In", values: [value] }] },
          ],
        },
      },
    },
  });
  const rows: [Partial<PodSpec>, boolean][] = [
    [{ nodeSelector: { disk: "ssd" } }, true],
    [{ nodeSelector: { disk: "hdd" } }, false],
    [{ nodeSelector: { constructor: "x" } }, false],
    [term("disk", "In", "hdd", "ssd"), true],
    [term("disk", "In", "hdd"), false],
    [term("none", "In", "x"), false],
    [term("disk", "NotIn", "ssd"), false],
    [term("none", "NotIn", "x"), true],
    [term("disk", "Exists"), true],
    [term("toString", "Exists"), false],
    [term("none", "DoesNotExist"), true],
    [term("disk", "DoesNotExist"), false],
    [term("size", "Gt", "11"), true],
    [term("size", "Gt", "12"), false],
    [term("size", "Lt", "13"), true],
    [term("disk", "Gt", "1"), false],
    [term("size", "Gt", "x"), false],
    [term("size", "About", "12"), false],
    [needs(), false],
    [needs({ key: "disk", operator: "Exists" }, { key: "none", operator: "Exists" }), false],
    [fields("node1"), true],
    [fields("node2"), false],
  ];
  for (const [spec, fits] of rows) assert.deepEqual(check(podOf({ spec })), fits ? ok : misfit, JSON.stringify(spec));
  assert.deepEqual(check(podOf({ spec: { nodeName: "node1" } })), ok);
  assert.deepEqual(
    check(podOf({ spec: { nodeName: "node2" } })),
    no("NodeName", "Predicate NodeName failed: node(s) didn't match the requested node name"),
  );
});

Deno.test("host ports conflict by protocol, port and address", () => {
  const text = "Predicate NodePorts failed: node(s) didn't have free ports for the requested pod ports";
  const with_ = (hostPort: number, hostIP?: string, protocol?: string): BoundPod =>
    podOf({
      container: {
        ports: [{ containerPort: 80, hostPort, ...(hostIP ? { hostIP } : {}), ...(protocol ? { protocol } : {}) }],
      },
    });
  const rows: [BoundPod, BoundPod, boolean][] = [
    [with_(80), with_(80), true],
    [with_(80), with_(81), false],
    [with_(80), with_(80, "", "UDP"), false],
    [with_(80, "10.0.0.1"), with_(80, "10.0.0.2"), false],
    [with_(80, "10.0.0.1"), with_(80, "10.0.0.1"), true],
    [with_(80, "10.0.0.1"), with_(80), true],
    [podOf({ spec: { hostNetwork: true }, container: { ports: [{ containerPort: 80 }] } }), with_(80), true],
    [podOf({ container: { ports: [{ containerPort: 80 }] } }), with_(80), false],
  ];
  for (const [pod, other, conflict] of rows) {
    assert.deepEqual(check(pod, { active: [other] }), conflict ? no("NodePorts", text) : ok);
  }
  const sidecar = podOf({
    spec: { initContainers: [{ name: "s", restartPolicy: "Always", ports: [{ containerPort: 1, hostPort: 80 }] }] },
  });
  const plain = podOf({ spec: { initContainers: [{ name: "s", ports: [{ containerPort: 1, hostPort: 80 }] }] } });
  assert.equal(check(with_(80), { active: [sidecar] }).admit, false);
  assert.equal(check(with_(80), { active: [plain] }).admit, true);
});

Deno.test("only NoExecute taints count, and never for static pods", () => {
  const tainted = (effect: string) => ({ ...node, taints: [{ key: "k", value: "v", effect }] });
  const refused = no(
    "TaintToleration",
    "Predicate TaintToleration failed: node(s) had taints that the pod didn't tolerate",
  );
  assert.deepEqual(check(podOf(), { node: tainted("NoSchedule") }), ok);
  assert.deepEqual(check(podOf(), { node: tainted("NoExecute") }), refused);
  assert.deepEqual(check(podOf({ static: true }), { node: tainted("NoExecute") }), ok);
  const rows: [NonNullable<PodSpec["tolerations"]>[number], boolean][] = [
    [{ operator: "Exists" }, true],
    [{ operator: "Exists", effect: "NoExecute" }, true],
    [{ operator: "Exists", effect: "NoSchedule" }, false],
    [{ key: "k", value: "v" }, true],
    [{ key: "k", operator: "Equal", value: "w" }, false],
    [{ key: "other", operator: "Exists" }, false],
  ];
  for (const [toleration, fits] of rows) {
    const pod = podOf({ spec: { tolerations: [toleration] } });
    assert.deepEqual(check(pod, { node: tainted("NoExecute") }), fits ? ok : refused, JSON.stringify(toleration));
  }
});

Deno.test("AppArmor, pod-level resources, pressure and shutdown", () => {
  const profile = (type: string, localhostProfile?: string) =>
    podOf({
      container: {
        securityContext: { appArmorProfile: { type, ...(localhostProfile === undefined ? {} : { localhostProfile }) } },
      },
    });
  const off = no("AppArmor", "Cannot enforce AppArmor: AppArmor is not enabled on the host");
  const withAppArmor = { node: { ...node, features: { appArmor: true } } };
  assert.deepEqual(check(profile("RuntimeDefault")), off);
  assert.deepEqual(check(profile("Unconfined")), ok);
  assert.deepEqual(check({ ...profile("RuntimeDefault"), status: { phase: "Running" } }), ok);
  assert.deepEqual(check(profile("RuntimeDefault"), withAppArmor), ok);
  assert.equal(check(profile("Localhost", " "), withAppArmor).admit, false);
  const annotation = "container.apparmor.security.beta.kubernetes.io/c";
  assert.deepEqual(check(podOf({ metadata: { annotations: { [annotation]: "runtime/default" } } })), off);
  assert.deepEqual(check(podOf({ metadata: { annotations: { [annotation]: "unconfined" } } })), ok);

  const level = podOf({ spec: { resources: { requests: { cpu: "1" } } } });
  assert.deepEqual(check(level), ok);
  assert.deepEqual(
    check(level, { node: { ...node, features: { podLevelResources: false } } }),
    no("PodLevelResourcesNotSupported", "PodLevelResources feature gate is disabled"),
  );

  const under = (...pressure: string[]) => ({ node: { ...node, pressure } });
  assert.deepEqual(
    check(podOf(), under("MemoryPressure")),
    no("Evicted", "The node had condition: [MemoryPressure]. "),
  );
  assert.deepEqual(check(podOf({ requests: { cpu: "1" } }), under("MemoryPressure")), ok);
  const bears = podOf({ spec: { tolerations: [{ key: "node.kubernetes.io/memory-pressure", operator: "Exists" }] } });
  assert.deepEqual(check(bears, under("MemoryPressure")), ok);
  assert.deepEqual(
    check(podOf({ requests: { cpu: "1" } }), under("MemoryPressure", "DiskPressure")),
    no("Evicted", "The node had condition: [MemoryPressure DiskPressure]. "),
  );
  assert.deepEqual(check(podOf({ static: true }), under("DiskPressure")), ok);
  const evictable = { ...under("DiskPressure"), policy: { staticPodsEvictable: true } };
  assert.equal(check(podOf({ static: true }), evictable).admit, false, "where static pods are to be like others");
  assert.deepEqual(check(podOf({ static: true, spec: { priority: 2_000_000_000 } }), evictable), ok);
  assert.deepEqual(check(podOf({ spec: { priority: 2_000_000_000 } }), evictable), ok);
  assert.deepEqual(
    check(podOf(), { policy: { shuttingDown: true } }),
    no("NodeShutdown", "Pod was rejected as the node is shutting down."),
  );
});

Deno.test("a critical pod has pods of lower rank killed: fewest Guaranteed, Burstable, BestEffort, the nearest first", () => {
  const guaranteed = (cpu: string) => podOf({ requests: { cpu, memory: "1Mi" }, limits: { cpu, memory: "1Mi" } });
  const burstable = (cpu: string) => podOf({ requests: { cpu } });
  const critical = podOf({ static: true, requests: { cpu: "1" } });
  const wide = { ...node, allocatable: { ...node.allocatable, pods: "100" } };
  const victims = (active: BoundPod[], pod = critical, on: NodeFacts = wide) => {
    const answer = admit({ pod, node: on, active });
    return answer.admit ? answer.victims.map((v) => v.metadata.name) : answer.reason;
  };
  const [g, b500, b900, b1000] = [guaranteed("1"), burstable("500m"), burstable("900m"), burstable("1")];
  assert.deepEqual(victims([]), []);
  assert.deepEqual(victims([g, b1000]), [b1000.metadata.name], "a Burstable one before a Guaranteed one");
  assert.deepEqual(victims([g, b500]), [b500.metadata.name]);
  assert.deepEqual(victims([podOf({ requests: { cpu: "2" } })]).length, 1);
  const small = burstable("100m");
  assert.deepEqual(victims([b900, b1000, small]), [b1000.metadata.name], "one that meets the need, not two");
  const full = { ...node, allocatable: { ...node.allocatable, pods: "2" } };
  const [idle, other] = [podOf(), podOf({ requests: { cpu: "100m" } })];
  assert.deepEqual(victims([other, idle], critical, full), [idle.metadata.name], "a BestEffort one for its place");

  assert.deepEqual(
    admit({ pod: critical, node: wide, active: [podOf({ static: true, requests: { cpu: "1500m" } })] }),
    no(
      "UnexpectedAdmissionError",
      "Unexpected error while attempting to recover from admission failure: preemption: error finding a set of pods " +
        "to preempt: no set of running pods found to reclaim resources: [(res: cpu, q: 500), ]",
    ),
  );
  const low = podOf({ static: true, requests: { cpu: "1500m" }, priority: 1 });
  const high = podOf({ static: true, requests: { cpu: "1" }, priority: 2 });
  assert.deepEqual(victims([low], high), [low.metadata.name]);
  assert.equal(
    victims([high, podOf({ static: true, requests: { cpu: "1" }, priority: 2 })], low),
    "UnexpectedAdmissionError",
  );
  const misplaced = podOf({ static: true, requests: { cpu: "1" }, spec: { nodeName: "elsewhere" } });
  assert.equal(victims([b1000, b900], misplaced), "NodeName", "nobody is killed for a pod that doesn't fit anyway");
});

Deno.test("victims are of lower rank, make room, and an ordinary pod never has any", () => {
  const made = fc.record({ cpu: fc.nat(900), critical: fc.boolean(), capped: fc.boolean() });
  fc.assert(
    fc.property(fc.array(made, { maxLength: 8 }), fc.nat(2000), fc.boolean(), (list, cpu, critical) => {
      const active = list.map((m) => {
        const requests = { cpu: `${m.cpu}m`, memory: "1Mi" };
        return podOf({ static: m.critical, requests, ...(m.capped ? { limits: requests } : {}) });
      });
      const pod = podOf({ static: critical, requests: { cpu: `${cpu}m` } });
      const answer = admit({ pod, node: { ...node, allocatable: { ...node.allocatable, pods: "6" } }, active });
      if (!answer.admit) return;
      if (!critical) assert.deepEqual(answer.victims, []);
      assert.ok(
        answer.victims.every((v) => v.metadata.annotations === undefined),
        "no static pod is killed for another",
      );
      const left = active.filter((p) => !answer.victims.includes(p));
      const used = left.reduce((sum, p) => sum + requestOf(p, "cpu"), 0n);
      assert.ok(left.length + 1 <= 6);
      assert.ok(cpu === 0 || used + BigInt(cpu) <= 2000n, "it fits once they are gone");
    }),
  );
});
