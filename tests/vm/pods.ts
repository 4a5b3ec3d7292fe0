import type { Container, Pod, PodSpec } from "../../mod/kube/types.ts";

/** A pod of one container. */
export function pod(name: string, container: Partial<Container>, spec: Partial<PodSpec> = {}): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default" },
    spec: {
      terminationGracePeriodSeconds: 2,
      containers: [{ name: "main", image: "localhost/web:1", imagePullPolicy: "Never", ...container }],
      ...spec,
    },
  };
}

/** Emulated: a program that takes 10 ms elsewhere may take seconds. */
const patient = { periodSeconds: 10, timeoutSeconds: 60, failureThreshold: 10 };
const amounts = { cpu: "200m", memory: "64Mi" };

export const guaranteed = pod("guaranteed", {
  resources: { requests: amounts, limits: amounts },
  readinessProbe: { httpGet: { path: "/healthz", port: 80 }, ...patient },
  livenessProbe: { httpGet: { path: "/", port: 80 }, ...patient },
});

export const burstable = (args: Partial<Container> = {}): Pod =>
  pod("burstable", {
    resources: { requests: { cpu: "250m", memory: "16Mi" }, limits: { memory: "48Mi" } },
    readinessProbe: { tcpSocket: { port: 80 }, ...patient },
    volumeMounts: [{ name: "scratch", mountPath: "/scratch" }],
    ...args,
  }, { volumes: [{ name: "scratch", emptyDir: { medium: "Memory", sizeLimit: "4Mi" } }] });

export const bestEffort = pod("best-effort", {
  readinessProbe: { exec: { command: ["test", "-d", "/www"] }, ...patient },
});
