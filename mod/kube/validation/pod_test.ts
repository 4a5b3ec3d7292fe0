import assert from "@assert";
import type { PodSpec, ResourceRequirements } from "../types.ts";
import { validatePod } from "./pod.ts";
import { formatProblems } from "./problem.ts";
import { checkContainerRows, checkRows, pod } from "./testing.ts";

Deno.test("metadata", () => {
  const cases: [Parameters<typeof pod>[1], ...string[]][] = [
    [{ name: "a.b-c" }],
    [{ name: "A" }, "metadata.name"],
    [{ name: "a".repeat(254) }, "metadata.name"],
    [{ namespace: "a.b" }, "metadata.namespace"],
    [{ labels: { "a/b": "c" } }],
    [{ labels: { "a/b/c": "-" } }, "metadata.labels", "metadata.labels[a/b/c]"],
    [{ annotations: { "Any.Case/Is-Fine": "x y z" } }],
    [{ annotations: { "a b": "" } }, "metadata.annotations"],
    [{ annotations: { a: "x".repeat(256 * 1024) } }, "metadata.annotations"],
    [
      { annotations: { "container.apparmor.security.beta.kubernetes.io/nobody": "odd" } },
      ...Array(2).fill("metadata.annotations[container.apparmor.security.beta.kubernetes.io/nobody]"),
    ],
    [{ annotations: { "container.apparmor.security.beta.kubernetes.io/c": "localhost/p" } }],
  ];
  for (const [metadata, ...paths] of cases) {
    assert.deepEqual(
      validatePod(pod({}, metadata)).map(({ path }) => path),
      paths,
      JSON.stringify(metadata).slice(0, 200),
    );
  }
});

Deno.test("a problem is told with path, value and remedy", () => {
  assert.equal(
    formatProblems(validatePod(pod({ restartPolicy: "Sometimes", activeDeadlineSeconds: 0 }))),
    'spec.restartPolicy: "Sometimes" is not known; use one of "Always", "OnFailure", "Never"; ' +
      "spec.activeDeadlineSeconds: 0 is out of range; use a number from 1 to 2147483647",
  );
});

Deno.test("times, policies and names of the pod", () => {
  checkRows([
    [{ terminationGracePeriodSeconds: 0 }],
    [{ terminationGracePeriodSeconds: -1 }, "spec.terminationGracePeriodSeconds"],
    [{ activeDeadlineSeconds: 1 }],
    [{ activeDeadlineSeconds: 2 ** 31 }, "spec.activeDeadlineSeconds"],
    [{ runtimeClassName: "" }, "spec.runtimeClassName"],
    [{ runtimeClassName: "kata" }],
    [{ os: { name: "plan9" } }, "spec.os.name"],
    [{ nodeName: "N", priorityClassName: "a b" }, "spec.nodeName", "spec.priorityClassName"],
    [{ preemptionPolicy: "x" }, "spec.preemptionPolicy"],
    [{ resourceClaims: [{ name: "A" }] }, "spec.resourceClaims[0].name", "spec.resourceClaims[0]"],
    [{ schedulingGates: [{ name: "a" }], nodeName: "n" }, "spec.schedulingGates"],
  ]);
});

Deno.test("resources of containers", () => {
  const rows: [ResourceRequirements, ...string[]][] = [
    [{ limits: { cpu: "1", memory: "64Mi" }, requests: { cpu: "500m" } }],
    [{ limits: { cpu: "1" }, requests: { cpu: "2" } }, "requests[cpu]"],
    [{ requests: { memory: "-1" } }, "requests[memory]"],
    [{ limits: { gpu: "1" } }, "limits[gpu]", "requests[gpu]"],
    [{ limits: { "example.org/gpu": "1" } }],
    [{ limits: { "example.org/gpu": "1500m" } }, "limits[example.org/gpu]", "requests[example.org/gpu]"],
    [{ requests: { "example.org/gpu": "1" } }, "limits[example.org/gpu]"],
    [{ limits: { "example.org/gpu": "2" }, requests: { "example.org/gpu": "1" } }, "requests[example.org/gpu]"],
    [{ limits: { "hugepages-2Mi": "4Mi" } }, ""],
    [{ limits: { "hugepages-2Mi": "4Mi", memory: "1Mi" } }],
    [{ limits: { "hugepages-2Mi": "3Mi", memory: "1Mi" } }, "limits[hugepages-2Mi]", "requests[hugepages-2Mi]"],
    [{ limits: { "hugepages-0": "3Mi", memory: "1Mi" } }, "limits[hugepages-0]", "requests[hugepages-0]"],
    [{ claims: [{ name: "x" }] }, "claims[0]"],
    [{ limits: { pods: "1" } }, "limits[pods]", "requests[pods]"],
  ];
  checkContainerRows(rows.map(([resources, ...paths]) => [
    { resources },
    ...paths.map((path) => path === "" ? "resources" : `resources.${path}`),
  ]));
});

Deno.test("resources of the pod", () => {
  const spec = (resources: ResourceRequirements, own: ResourceRequirements = {}): Partial<PodSpec> => ({
    containers: [{ name: "c", image: "i", resources: own }],
    resources,
  });
  checkRows([
    [spec({ limits: { cpu: "1" }, requests: { cpu: "500m" } }, { requests: { cpu: "500m" } })],
    [spec({ requests: { cpu: "1" } }, { requests: { cpu: "2" } }), "spec.resources.requests[cpu]"],
    [
      spec({ limits: { cpu: "1" } }, { requests: { cpu: "1" }, limits: { cpu: "2" } }),
      "spec.containers[0].resources.limits[cpu]",
    ],
    [spec({ limits: { "ephemeral-storage": "1" } }), "spec.resources.limits[ephemeral-storage]"],
    [spec({ claims: [{ name: "x" }] }), "spec.resources.claims"],
    [{ overhead: { cpu: "-1" } }, "spec.overhead[cpu]"],
    [{ overhead: { cpu: "100m" } }],
  ]);
});

Deno.test("security contexts", () => {
  checkContainerRows([
    [{ securityContext: { runAsUser: 0, runAsGroup: 2 ** 31 - 1 } }],
    [
      { securityContext: { runAsUser: -1, runAsGroup: 2 ** 31 } },
      "securityContext.runAsUser",
      "securityContext.runAsGroup",
    ],
    [{ securityContext: { procMount: "Unmasked" } }, "securityContext.procMount"],
    [{ securityContext: { procMount: "x" } }, "securityContext.procMount"],
    [
      { securityContext: { allowPrivilegeEscalation: false, privileged: true } },
      "securityContext.allowPrivilegeEscalation",
    ],
    [
      { securityContext: { allowPrivilegeEscalation: false, capabilities: { add: ["CAP_SYS_ADMIN"] } } },
      "securityContext.allowPrivilegeEscalation",
    ],
    [{ securityContext: { seccompProfile: { type: "Localhost" } } }, "securityContext.seccompProfile.localhostProfile"],
    [
      { securityContext: { seccompProfile: { type: "Localhost", localhostProfile: "../p" } } },
      "securityContext.seccompProfile.localhostProfile",
    ],
    [
      { securityContext: { seccompProfile: { type: "RuntimeDefault", localhostProfile: "p" } } },
      "securityContext.seccompProfile.localhostProfile",
    ],
    [{ securityContext: { seccompProfile: { type: "None" } } }, "securityContext.seccompProfile.type"],
    [
      { securityContext: { appArmorProfile: { type: "Localhost", localhostProfile: " p" } } },
      "securityContext.appArmorProfile.localhostProfile",
    ],
  ]);
  checkContainerRows([[{ securityContext: { procMount: "Unmasked" } }]], { hostUsers: false });
  const at = "spec.securityContext";
  const sysctl = (name: string, rest: Partial<PodSpec> = {}) => ({
    securityContext: { sysctls: [{ name, value: "1" }] },
    ...rest,
  });
  checkRows([
    [{ securityContext: { fsGroup: -1, supplementalGroups: [1, -1] } }, `${at}.fsGroup`, `${at}.supplementalGroups[1]`],
    [
      { securityContext: { fsGroupChangePolicy: "x", supplementalGroupsPolicy: "y" } },
      `${at}.fsGroupChangePolicy`,
      `${at}.supplementalGroupsPolicy`,
    ],
    [sysctl("net.ipv4.ip_local_port_range")],
    [sysctl("net/ipv4/conf/eth0.1/forwarding")],
    [sysctl("Net.x"), `${at}.sysctls[0].name`],
    [sysctl("net..x"), `${at}.sysctls[0].name`],
    [sysctl("net.core.somaxconn", { hostNetwork: true }), `${at}.sysctls[0].name`],
    [sysctl("net/core/somaxconn", { hostNetwork: true }), `${at}.sysctls[0].name`],
    [sysctl("kernel.shm_rmid_forced", { hostIPC: true }), `${at}.sysctls[0].name`],
    [sysctl("kernel.shm_rmid_forced", { hostNetwork: true })],
    [
      { securityContext: { sysctls: [{ name: "a.b", value: "" }, { name: "a.b", value: "" }] } },
      `${at}.sysctls[1].name`,
    ],
    [{ hostPID: true, shareProcessNamespace: true }, "spec.shareProcessNamespace"],
    [{ hostPID: true, hostIPC: true, hostNetwork: true }],
    [
      { hostUsers: false, hostPID: true, hostIPC: true, hostNetwork: true },
      "spec.hostPID",
      "spec.hostIPC",
      "spec.hostNetwork",
    ],
  ]);
});

Deno.test("network settings", () => {
  const servers = (count: number) => Array.from({ length: count }, (_, i) => `10.0.0.${i + 1}`);
  const dns = "spec.dnsConfig";
  checkRows([
    [{ dnsPolicy: "Whatever" }, "spec.dnsPolicy"],
    [{ dnsPolicy: "None" }, `${dns}.nameservers`],
    [{ dnsPolicy: "None", dnsConfig: { nameservers: servers(3) } }],
    [{ dnsConfig: { nameservers: servers(4) } }, `${dns}.nameservers`],
    [{ dnsConfig: { nameservers: ["::1", "fe80::1", "1.2.3.256"] } }, `${dns}.nameservers[2]`],
    [
      { dnsConfig: { nameservers: ["1.2.3", "dns", ":"] } },
      `${dns}.nameservers[0]`,
      `${dns}.nameservers[1]`,
      `${dns}.nameservers[2]`,
    ],
    [{ dnsConfig: { searches: [".", "a_b.c.", "_tcp.d"] } }],
    [{ dnsConfig: { searches: ["A"] } }, `${dns}.searches[0]`],
    [{ dnsConfig: { searches: Array(33).fill("a") } }, `${dns}.searches`],
    [{ dnsConfig: { searches: Array(20).fill("a".repeat(110)) } }, `${dns}.searches`],
    [{ dnsConfig: { options: [{}] } }, `${dns}.options[0].name`],
    [{ hostAliases: [{ ip: "1.2.3.4", hostnames: ["a.b"] }] }],
    [{ hostAliases: [{ ip: "x", hostnames: ["A"] }] }, "spec.hostAliases[0].ip", "spec.hostAliases[0].hostnames[0]"],
    [{ hostname: "a.b", subdomain: "C" }, "spec.hostname", "spec.subdomain"],
    [{ hostnameOverride: "a.b" }],
    [{ hostnameOverride: `${"a".repeat(60)}.bcde` }, "spec.hostnameOverride"],
    [{ hostnameOverride: "a", setHostnameAsFQDN: true }, "spec.hostnameOverride"],
  ]);
});

Deno.test("tolerations, node selectors and affinity", () => {
  const at = "spec.tolerations[0]";
  const toleration = (
    t: NonNullable<PodSpec["tolerations"]>[number],
    ...paths: string[]
  ): [Partial<PodSpec>, ...string[]] => [
    { tolerations: [t] },
    ...paths.map((path) => `${at}.${path}`),
  ];
  const terms = "spec.affinity.nodeAffinity.requiredDuringSchedulingIgnoredDuringExecution.nodeSelectorTerms";
  const affinity = (...nodeSelectorTerms: object[]): Partial<PodSpec> => ({
    affinity: { nodeAffinity: { requiredDuringSchedulingIgnoredDuringExecution: { nodeSelectorTerms } } },
  });
  checkRows([
    toleration({ operator: "Exists" }),
    toleration({ key: "a/b", value: "c", effect: "NoExecute", tolerationSeconds: -1 }),
    toleration({}, "operator"),
    toleration({ key: "a", operator: "Exists", value: "x" }, "value"),
    toleration({ key: "a", operator: "Gt", value: "1" }, "operator"),
    toleration({ key: "a", effect: "Sometimes" }, "effect"),
    toleration({ key: "a", effect: "NoSchedule", tolerationSeconds: 1 }, "effect"),
    toleration({ key: "a b", value: "c d" }, "key", "value"),
    [{ nodeSelector: { "a b": "c" } }, "spec.nodeSelector"],
    [affinity(), terms],
    [affinity({ matchExpressions: [{ key: "a", operator: "In", values: ["b"] }] })],
    [affinity({ matchExpressions: [{ key: "a", operator: "In" }] }), `${terms}[0].matchExpressions[0].values`],
    [
      affinity({ matchExpressions: [{ key: "a", operator: "Exists", values: ["b"] }] }),
      `${terms}[0].matchExpressions[0].values`,
    ],
    [affinity({ matchFields: [{ key: "spec.x", operator: "In", values: ["n"] }] }), `${terms}[0].matchFields[0].key`],
    [{ readinessGates: [{ conditionType: "a b" }] }, "spec.readinessGates[0].conditionType"],
  ]);
});
