import type { Container, Probe } from "../types.ts";
import { checkContainerRows, checkRows, container } from "./testing.ts";

Deno.test("names: labels, unique over all lists", () => {
  checkContainerRows([
    [{}],
    [{ name: "a-1" }],
    [{ name: "" }, "name"],
    [{ name: "A" }, "name"],
    [{ name: "-a" }, "name"],
    [{ name: "a.b" }, "name"],
    [{ name: "a".repeat(63) }],
    [{ name: "a".repeat(64) }, "name"],
    [{ name: "../x" }, "name"],
  ]);
  checkRows([
    [{ containers: [] }, "spec.containers"],
    [{ containers: [container(), container()] }, "spec.containers[1].name"],
    [{ containers: [container()], initContainers: [container()] }, "spec.initContainers[0].name"],
    [{ ephemeralContainers: [{ name: "e", image: "i" }] }, "spec.ephemeralContainers"],
  ]);
});

Deno.test("image, policies, ports", () => {
  const port = (extra: object) => ({ ports: [{ containerPort: 80, ...extra }] });
  checkContainerRows([
    [{ image: "" }, "image"],
    [{ image: " busybox" }, "image"],
    [{ imagePullPolicy: "Sometimes" }, "imagePullPolicy"],
    [{ terminationMessagePolicy: "x" }, "terminationMessagePolicy"],
    [port({})],
    [port({ containerPort: 0 }), "ports[0].containerPort"],
    [port({ containerPort: 65536 }), "ports[0].containerPort"],
    [port({ containerPort: -1 }), "ports[0].containerPort"],
    [port({ hostPort: 70000 }), "ports[0].hostPort"],
    [port({ protocol: "ICMP" }), "ports[0].protocol"],
    [port({ protocol: "SCTP" })],
    [port({ name: "web" })],
    [port({ name: "123" }), "ports[0].name"],
    [port({ name: "a--b" }), "ports[0].name"],
    [port({ name: "a-name-too-long-x" }), "ports[0].name"],
    [port({ hostIP: "localhost" }), "ports[0].hostIP"],
    [{ ports: [{ containerPort: 1, name: "a" }, { containerPort: 2, name: "a" }] }, "ports[1].name"],
    [{ ports: [{ containerPort: 1, hostPort: 9 }, { containerPort: 2, hostPort: 9 }] }, "ports[1].hostPort"],
    [{ ports: [{ containerPort: 1, hostPort: 9 }, { containerPort: 2, hostPort: 9, protocol: "UDP" }] }],
  ]);
  checkContainerRows([[port({})], [port({ hostPort: 81 }), "ports[0].hostPort"]], { hostNetwork: true });
  const host = (name: string) => container({ name, ports: [{ containerPort: 1, hostPort: 9 }] });
  checkRows([
    [{ containers: [host("a"), host("b")] }, "spec.containers[1].ports[0].hostPort"],
    [{ containers: [host("a")], initContainers: [host("b"), host("c")] }],
  ]);
});

Deno.test("environment", () => {
  const env = (valueFrom: NonNullable<Container["env"]>[number]["valueFrom"]): Partial<Container> => ({
    env: [{ name: "A", ...(valueFrom ? { valueFrom } : {}) }],
  });
  const field = (fieldPath: string) => env({ fieldRef: { fieldPath } });
  checkContainerRows([
    [{ env: [{ name: "1 odd/name" }] }],
    [{ env: [{ name: "" }] }, "env[0].name"],
    [{ env: [{ name: "A=B" }] }, "env[0].name"],
    [{ env: [{ name: "ä" }] }, "env[0].name"],
    [field("metadata.name")],
    [field("status.podIPs")],
    [field("spec.host")],
    [field("metadata.labels['a/b']")],
    [field("metadata.annotations['A.b/C']")],
    [field("metadata.labels"), "env[0].valueFrom.fieldRef.fieldPath"],
    [field("metadata.labels['']"), "env[0].valueFrom.fieldRef.fieldPath"],
    [field("metadata.name['a']"), "env[0].valueFrom.fieldRef.fieldPath"],
    [field("status.phase"), "env[0].valueFrom.fieldRef.fieldPath"],
    [field(""), "env[0].valueFrom.fieldRef.fieldPath"],
    [env({ fieldRef: { fieldPath: "metadata.name", apiVersion: "v2" } }), "env[0].valueFrom.fieldRef.apiVersion"],
    [env({ resourceFieldRef: { resource: "limits.cpu", divisor: "1m" } })],
    [env({ resourceFieldRef: { resource: "limits.hugepages-2Mi", divisor: "1Mi" } })],
    [
      env({ resourceFieldRef: { resource: "limits.cpu", divisor: "1Mi" } }),
      "env[0].valueFrom.resourceFieldRef.divisor",
    ],
    [env({ resourceFieldRef: { resource: "limits.gpu" } }), "env[0].valueFrom.resourceFieldRef.resource"],
    [env({}), "env[0].valueFrom"],
    [env({ fieldRef: { fieldPath: "metadata.name" }, secretKeyRef: { name: "s", key: "k" } }), "env[0].valueFrom"],
    [{ env: [{ name: "A", value: "x", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }] }, "env[0].valueFrom"],
    [
      env({ secretKeyRef: { name: "S", key: "../k" } }),
      "env[0].valueFrom.secretKeyRef.name",
      "env[0].valueFrom.secretKeyRef.key",
    ],
    [
      env({ configMapKeyRef: { key: "" } }),
      "env[0].valueFrom.configMapKeyRef.name",
      "env[0].valueFrom.configMapKeyRef.key",
    ],
    [
      env({ fileKeyRef: { volumeName: "v", path: "a/../b", key: "K" } }),
      "env[0].valueFrom.fileKeyRef.volumeName",
      "env[0].valueFrom.fileKeyRef.path",
    ],
    [{ envFrom: [{}] }, "envFrom[0]"],
    [{ envFrom: [{ prefix: "=", configMapRef: { name: "m" } }] }, "envFrom[0].prefix"],
    [{ envFrom: [{ secretRef: { name: "" } }] }, "envFrom[0].secretRef.name"],
  ]);
  const ref = [
    container({ env: [{ name: "A", valueFrom: { fileKeyRef: { volumeName: "v", path: "p", key: "K" } } }] }),
  ];
  checkRows([
    [{ containers: ref, volumes: [{ name: "v" }] }],
    [
      { containers: ref, volumes: [{ name: "v", hostPath: { path: "/x" } }] },
      "spec.containers[0].env[0].valueFrom.fileKeyRef.volumeName",
    ],
  ]);
});

Deno.test("probes and hooks", () => {
  const probe = (extra: Probe): Partial<Container> => ({ livenessProbe: extra });
  const exec = { exec: { command: ["true"] } };
  checkContainerRows([
    [probe(exec)],
    [probe({}), "livenessProbe"],
    [probe({ ...exec, tcpSocket: { port: 1 } }), "livenessProbe"],
    [probe({ exec: {} }), "livenessProbe.exec.command"],
    [probe({ httpGet: { port: 0 } }), "livenessProbe.httpGet.port"],
    [probe({ httpGet: { port: "web" } })],
    [probe({ httpGet: { port: "WEB" } }), "livenessProbe.httpGet.port"],
    [probe({ httpGet: { port: 1, scheme: "FTP" } }), "livenessProbe.httpGet.scheme"],
    [
      probe({ httpGet: { port: 1, httpHeaders: [{ name: "a b", value: "" }] } }),
      "livenessProbe.httpGet.httpHeaders[0].name",
    ],
    [probe({ grpc: { port: 99999 } }), "livenessProbe.grpc.port"],
    [probe({ ...exec, periodSeconds: -1 }), "livenessProbe.periodSeconds"],
    [probe({ ...exec, successThreshold: 2 }), "livenessProbe.successThreshold"],
    [{ startupProbe: { ...exec, successThreshold: 2 } }, "startupProbe.successThreshold"],
    [{ readinessProbe: { ...exec, successThreshold: 2 } }],
    [{ readinessProbe: { ...exec, terminationGracePeriodSeconds: 1 } }, "readinessProbe.terminationGracePeriodSeconds"],
    [probe({ ...exec, terminationGracePeriodSeconds: 0 }), "livenessProbe.terminationGracePeriodSeconds"],
    [{ lifecycle: { preStop: { sleep: { seconds: 30 } } } }],
    [{ lifecycle: { preStop: { sleep: { seconds: 31 } } } }, "lifecycle.preStop.sleep.seconds"],
    [{ lifecycle: { postStart: {} } }, "lifecycle.postStart"],
    [{ lifecycle: { stopSignal: "SIGTERM" } }, "lifecycle.stopSignal"],
  ]);
  checkContainerRows([
    [{ lifecycle: { stopSignal: "SIGRTMIN+15" } }],
    [{ lifecycle: { stopSignal: "SIGRTMAX-15" } }, "lifecycle.stopSignal"],
  ], { os: { name: "linux" } });
});

Deno.test("init containers: probes and hooks only for sidecars; restart rules", () => {
  const exec = { exec: { command: ["true"] } };
  const init = (extra: Partial<Container>) => ({ initContainers: [container({ name: "i", ...extra })] });
  const rule = { action: "Restart", exitCodes: { operator: "In", values: [1] } };
  const at = "spec.initContainers[0]";
  checkRows([
    [init({})],
    [init({ livenessProbe: exec, lifecycle: { preStop: exec } }), `${at}.livenessProbe`, `${at}.lifecycle`],
    [init({ restartPolicy: "Always", livenessProbe: exec, lifecycle: { preStop: exec } })],
    [init({ restartPolicy: "Always", livenessProbe: {} }), `${at}.livenessProbe`],
    [init({ restartPolicy: "Perhaps" }), `${at}.restartPolicy`],
    [init({ restartPolicy: "OnFailure" })],
    [
      init({ resizePolicy: [{ resourceName: "cpu", restartPolicy: "RestartContainer" }] }),
      `${at}.resizePolicy[0].restartPolicy`,
    ],
  ]);
  checkContainerRows([
    [{ restartPolicy: "Never", restartPolicyRules: [rule] }],
    [{ restartPolicyRules: [rule] }, "restartPolicy"],
    [
      { restartPolicy: "Never", restartPolicyRules: [{ action: "Jump" }] },
      "restartPolicyRules[0].action",
      "restartPolicyRules[0].exitCodes",
    ],
    [{ restartPolicy: "Never", restartPolicyRules: Array(21).fill(rule) }, "restartPolicyRules"],
    [
      {
        restartPolicy: "Never",
        restartPolicyRules: [{ ...rule, exitCodes: { operator: "Is", values: Array(256).fill(1) } }],
      },
      "restartPolicyRules[0].exitCodes.operator",
      "restartPolicyRules[0].exitCodes.values",
    ],
    [
      { resizePolicy: [{ resourceName: "gpu", restartPolicy: "x" }] },
      "resizePolicy[0].resourceName",
      "resizePolicy[0].restartPolicy",
    ],
  ]);
});
