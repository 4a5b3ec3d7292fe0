// How a strategic merge patch reads the fields of the types beside this file: its strategy, and the field that tells
// members of a list apart (empty for plain values). Fields that are not here are replaced whole, or merged as maps.
// Written by scripts/gen; do not edit.

export const patchFields: Record<string, Record<string, { strategy: string; key: string }>> = {
  CSINodeSpec: {
    drivers: { strategy: "merge", key: "name" },
  },
  Container: {
    ports: { strategy: "merge", key: "containerPort" },
    env: { strategy: "merge", key: "name" },
    volumeMounts: { strategy: "merge", key: "mountPath" },
    volumeDevices: { strategy: "merge", key: "devicePath" },
  },
  ContainerStatus: {
    volumeMounts: { strategy: "merge", key: "mountPath" },
    allocatedResourcesStatus: { strategy: "merge", key: "name" },
  },
  EphemeralContainer: {
    ports: { strategy: "merge", key: "containerPort" },
    env: { strategy: "merge", key: "name" },
    volumeMounts: { strategy: "merge", key: "mountPath" },
    volumeDevices: { strategy: "merge", key: "devicePath" },
  },
  NamespaceStatus: {
    conditions: { strategy: "merge", key: "type" },
  },
  NodeSpec: {
    podCIDRs: { strategy: "merge", key: "" },
  },
  NodeStatus: {
    conditions: { strategy: "merge", key: "type" },
    addresses: { strategy: "merge", key: "type" },
  },
  ObjectMeta: {
    ownerReferences: { strategy: "merge", key: "uid" },
    finalizers: { strategy: "merge", key: "" },
  },
  PersistentVolumeClaimStatus: {
    conditions: { strategy: "merge", key: "type" },
  },
  PodSpec: {
    volumes: { strategy: "merge,retainKeys", key: "name" },
    initContainers: { strategy: "merge", key: "name" },
    containers: { strategy: "merge", key: "name" },
    ephemeralContainers: { strategy: "merge", key: "name" },
    imagePullSecrets: { strategy: "merge", key: "name" },
    hostAliases: { strategy: "merge", key: "ip" },
    topologySpreadConstraints: { strategy: "merge", key: "topologyKey" },
    schedulingGates: { strategy: "merge", key: "name" },
    resourceClaims: { strategy: "merge,retainKeys", key: "name" },
  },
  PodStatus: {
    conditions: { strategy: "merge", key: "type" },
    hostIPs: { strategy: "merge", key: "ip" },
    podIPs: { strategy: "merge", key: "ip" },
    resourceClaimStatuses: { strategy: "merge,retainKeys", key: "name" },
  },
  ServiceAccount: {
    secrets: { strategy: "merge", key: "name" },
  },
  ServiceSpec: {
    ports: { strategy: "merge", key: "port" },
  },
  ServiceStatus: {
    conditions: { strategy: "merge", key: "type" },
  },
};
