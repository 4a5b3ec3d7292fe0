import type { NodeProfile, NodeSituation } from "./types.ts";

/** A node for tests. */
export const testProfile: NodeProfile = {
  name: "n1",
  arch: "amd64",
  labels: {},
  taints: [],
  providerID: "",
  controllerAttachDetach: true,
  externalCloud: false,
  nodeIPs: [],
  capacity: { cpu: "4", memory: "8Gi", "ephemeral-storage": "100Gi", pods: "110" },
  allocatable: { cpu: "3500m", memory: "7Gi", "ephemeral-storage": "90Gi", pods: "110" },
  required: ["cpu", "memory", "pods", "ephemeral-storage"],
  info: {
    machineID: "m",
    systemUUID: "u",
    bootID: "b",
    kernelVersion: "6.1.0",
    osImage: "Test Linux",
    kubeletVersion: "v1.36.3",
    kubeProxyVersion: "",
    operatingSystem: "linux",
    architecture: "amd64",
  },
  port: 10250,
  declaredFeatures: undefined,
  resetExtendedResources: false,
};

/** All is well. */
export const testSituation: NodeSituation = {
  troubles: [],
  pressure: new Set(),
  handlers: [],
  supplementalGroupsPolicy: undefined,
  runtimeVersion: "containerd://2.1.4",
  images: [],
  addresses: [{ type: "InternalIP", address: "10.1.0.5" }, { type: "Hostname", address: "n1" }],
};
