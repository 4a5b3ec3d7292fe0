import type {
  ContainerImage,
  Node,
  NodeAddress,
  NodeRuntimeHandler,
  NodeSystemInfo,
  Taint,
} from "../../mod/kube/types.ts";

/** Quantities by resource, in the API's text. */
export type Resources = Readonly<Record<string, string>>;

/** The node's conditions of pressure, in the order in which its status shows them. */
export const pressureTypes = ["MemoryPressure", "DiskPressure", "PIDPressure"] as const;
export type PressureType = (typeof pressureTypes)[number];

/** What this node is by its machine, flags and configuration; it does not change while the agent runs. */
export interface NodeProfile {
  /** Lower-cased and trimmed; name of the object, and value of the label `kubernetes.io/hostname`. */
  readonly name: string;
  /** In Go's words, such as `amd64`. */
  readonly arch: string;
  /** Of --node-labels; they win over the labels that every node has. */
  readonly labels: Readonly<Record<string, string>>;
  /** Of registerWithTaints; given at creation only. */
  readonly taints: readonly Taint[];
  /** Empty: none. */
  readonly providerID: string;
  /** enableControllerAttachDetach. */
  readonly controllerAttachDetach: boolean;
  /** --cloud-provider=external. */
  readonly externalCloud: boolean;
  /** Of --node-ip, in its order; `0.0.0.0` and `::` choose the family only. */
  readonly nodeIPs: readonly string[];
  readonly capacity: Resources;
  /** Of the same resources. */
  readonly allocatable: Resources;
  /** Resources without which the node is not ready. */
  readonly required: readonly string[];
  readonly info: Omit<NodeSystemInfo, "containerRuntimeVersion">;
  /** Port of the node's HTTPS API. */
  readonly port: number;
  /** Names of the features that the node declares; undefined when it declares none at all (the gate is off). */
  readonly declaredFeatures: readonly string[] | undefined;
  /** True when extended resources that the API server has must count as gone until a plugin brings them (F28). */
  readonly resetExtendedResources: boolean;
}

/** Resources of device plugins. */
export interface DeviceResources {
  readonly capacity: Resources;
  readonly allocatable: Resources;
  /** Resources whose plugin is gone; they stay, with nothing in them. */
  readonly removed: readonly string[];
}

/** What is true of the node now. */
export interface NodeSituation {
  /** What keeps the node from being ready, in the contract's order: runtime, network, storage, shutdown. */
  readonly troubles: readonly string[];
  /** Requirements that are not met, but keep nothing from working. */
  readonly warning?: string | undefined;
  readonly pressure: ReadonlySet<PressureType>;
  readonly handlers: readonly NodeRuntimeHandler[];
  /** Whether supplementalGroupsPolicy is obeyed; undefined when the runtime does not tell. */
  readonly supplementalGroupsPolicy: boolean | undefined;
  /** Such as `containerd://2.1.4`; undefined while the runtime does not tell. */
  readonly runtimeVersion: string | undefined;
  /** Undefined while the runtime does not tell: those that the object has stay. */
  readonly images: readonly ContainerImage[] | undefined;
  /** Undefined when none could be found out: those that the object has stay. */
  readonly addresses: readonly NodeAddress[] | undefined;
  /** Names of volumes that are attached and in use; undefined while that is not known: those of the object stay. */
  readonly volumesInUse?: readonly string[] | undefined;
  readonly devices?: DeviceResources | undefined;
}

/** The part of the situation whose change is reported at once. */
export type NodeUrgency = Pick<NodeSituation, "troubles" | "pressure">;

/** An event about the node. */
export interface NodeEvent {
  readonly type: "Normal" | "Warning";
  readonly reason: string;
  readonly message: string;
}

/** A node's object that has what every one has. */
export type NamedNode = Node & { metadata: { name: string } };

/** The node's own object as the API server has it, as far as that is known here. */
export interface NodeView {
  /** Undefined before it was read, and when it is not there. */
  readonly node: Node | undefined;
  /** True once the API server has answered, whether or not there is an object. */
  readonly synced: boolean;
  /** Resolves when the object can be read; rejects with Aborted. */
  whenKnown(signal: AbortSignal): Promise<Node>;
  /** Calls back at each change, also at a deletion, until disposed. */
  onChange(told: (node: Node | undefined) => void): Disposable;
}
