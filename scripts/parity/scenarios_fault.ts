import { all, box, ended, event, once, phase, pod, ready, type Scenario, shell, told, waiting } from "./scenario.ts";

/** Pods that cannot do what they are made for. */
export const faultScenarios: readonly Scenario[] = [
  {
    name: "image-unreachable",
    pod: pod("image-unreachable", { containers: [box("main", { image: "127.0.0.1:9/none:1" }), box("second")] }),
    steps: once("backing off", all(waiting("main", "ImagePullBackOff"), event("BackOff"))),
  },
  {
    name: "image-name",
    pod: pod("image-name", { containers: [box("main", { image: "Not_An:Image:Name" })] }),
    steps: once("refused", all(waiting("main", "InvalidImageName"), event("InspectFailed"))),
  },
  {
    name: "image-never",
    pod: pod("image-never", { containers: [box("main", { image: "localhost/none:1", imagePullPolicy: "Never" })] }),
    steps: once("refused", all(waiting("main", "ErrImageNeverPull"), event("ErrImageNeverPull"))),
  },
  {
    name: "no-configmap",
    pod: pod("no-configmap", {
      containers: [box("main", { env: [{ name: "X", valueFrom: { configMapKeyRef: { name: "absent", key: "x" } } }] })],
    }),
    steps: once("refused", all(waiting("main", "CreateContainerConfigError"), event("Failed"))),
  },
  {
    name: "no-secret-key",
    pod: pod("no-secret-key", {
      containers: [box("main", { env: [{ name: "X", valueFrom: { secretKeyRef: { name: "parity", key: "none" } } }] })],
    }),
    steps: once("refused", all(waiting("main", "CreateContainerConfigError"), event("Failed"))),
  },
  {
    name: "root-forbidden",
    pod: pod("root-forbidden", { securityContext: { runAsNonRoot: true }, containers: [box("main")] }),
    steps: once("refused", all(waiting("main", "CreateContainerConfigError"), event("Failed"))),
  },
  {
    name: "no-volume",
    pod: pod("no-volume", {
      volumes: [{ name: "v", secret: { secretName: "absent" } }, { name: "w", configMap: { name: "absent" } }],
      containers: [box("main", { volumeMounts: [{ name: "v", mountPath: "/v" }, { name: "w", mountPath: "/w" }] })],
    }),
    steps: once("waiting", all(told, event("FailedMount", 3))),
  },
  {
    name: "no-host-path",
    pod: pod("no-host-path", {
      volumes: [{ name: "v", hostPath: { path: "/nonexistent-parity", type: "Directory" } }],
      containers: [box("main", { volumeMounts: [{ name: "v", mountPath: "/v" }] })],
    }),
    steps: once("waiting", all(told, event("FailedMount", 2))),
  },
  {
    name: "no-subpath",
    pod: pod("no-subpath", {
      volumes: [{ name: "v", emptyDir: {} }],
      containers: [box("main", { volumeMounts: [{ name: "v", mountPath: "/v", subPathExpr: "$(NONE)/x" }] })],
    }),
    steps: once("refused", all(waiting("main", "CreateContainerConfigError"), event("Failed"))),
  },
  {
    name: "no-command",
    pod: pod("no-command", { containers: [box("main", { command: ["/nonexistent"] })] }),
    steps: once("backing off", all(waiting("main", "CrashLoopBackOff", 1), event("BackOff"))),
  },
  {
    name: "no-command-once",
    pod: pod("no-command-once", { restartPolicy: "Never", containers: [box("main", { command: ["/nonexistent"] })] }),
    steps: once("failed", ended("Failed")),
  },
  {
    name: "too-much-memory",
    pod: pod("too-much-memory", {
      restartPolicy: "Never",
      containers: [shell("main", "tail /dev/zero", { resources: { limits: { memory: "20Mi" } } })],
    }),
    steps: once("failed", ended("Failed")),
  },
  {
    name: "too-much-cpu",
    pod: pod("too-much-cpu", { containers: [box("main", { resources: { requests: { cpu: "1000" } } })] }),
    steps: once("rejected", phase("Failed")),
  },
  {
    name: "unknown-resource",
    pod: pod("unknown-resource", {
      containers: [box("main", { resources: { limits: { "example.com/thing": "1" } } })],
    }),
    steps: once("runs", ready),
  },
  {
    name: "other-node",
    pod: pod("other-node", { nodeSelector: { color: "blue" }, containers: [box("main")] }),
    steps: once("rejected", phase("Failed")),
  },
  {
    name: "forbidden-sysctl",
    pod: pod("forbidden-sysctl", {
      securityContext: { sysctls: [{ name: "net.core.somaxconn", value: "1024" }] },
      containers: [box("main")],
    }),
    steps: once("rejected", phase("Failed")),
  },
  {
    name: "port-taken",
    pod: pod("port-taken", {
      hostNetwork: true,
      containers: [box("main", { ports: [{ containerPort: 34567 }] })],
    }),
    steps: once("rejected", phase("Failed")),
  },
];
