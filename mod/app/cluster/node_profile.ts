import { machineIds } from "../../../managers/node/machine_ids.ts";
import type { NodeProfile } from "../../../managers/node/types.ts";
import { kubernetesVersion } from "../version.ts";
import type { ClusterContext } from "./types.ts";

/** Where the reference keeps what device plugins gave; without it the node counts as made anew (features.md F28). */
const deviceState = "device-plugins/kubelet_internal_checkpoint";

/** Features that a node declares by the name of their gate, of those that this agent has. */
const declarable = [
  "ExtendWebSocketsToKubelet",
  "InPlacePodLevelResourcesVerticalScaling",
  "InPlacePodVerticalScalingInitContainers",
  "RestartAllContainersOnContainerExits",
] as const;

/** What this node is. Reads what identifies the machine. */
export async function nodeProfile(context: ClusterContext): Promise<NodeProfile> {
  const { host, config, flags, facts, nodeName, gates } = context;
  const [ids, devices] = await Promise.all([machineIds(host), host.stat(`${flags.rootDir}/${deviceState}`)]);
  const { machineID, systemUUID, bootID, osImage } = ids;
  const on = (gate: string) => gates?.enabled(gate) ?? true;
  return {
    name: nodeName,
    arch: facts.arch,
    labels: flags.nodeLabels,
    taints: config.registerWithTaints,
    providerID: config.providerID,
    controllerAttachDetach: config.enableControllerAttachDetach,
    externalCloud: flags.cloudProvider === "external",
    nodeIPs: flags.nodeIP.split(",").map((ip) => ip.trim()).filter((ip) => ip !== ""),
    capacity: facts.capacity,
    allocatable: facts.allocatable,
    required: ["cpu", "memory", "pods", ...(config.localStorageCapacityIsolation ? ["ephemeral-storage"] : [])],
    info: {
      machineID,
      systemUUID,
      bootID,
      kernelVersion: facts.kernelVersion,
      osImage,
      kubeletVersion: kubernetesVersion,
      // Deprecated: cleared where it was set (gate DisableNodeKubeProxyVersion, locked on).
      kubeProxyVersion: "",
      operatingSystem: "linux",
      architecture: facts.arch,
      ...(facts.swap > 0 ? { swap: { capacity: facts.swap } } : {}),
    },
    port: config.port,
    declaredFeatures: on("NodeDeclaredFeatures") ? declarable.filter((gate) => on(gate)) : undefined,
    resetExtendedResources: devices === undefined,
  };
}
