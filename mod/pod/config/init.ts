/** Plain forms of CRI messages: what our functions return, without the marks that decoded messages carry. */
import type { DescMessage, Message, MessageInitShape } from "@bufbuild/protobuf";
import type * as pb from "../../../cri/gen/runtime_pb.ts";

type Plain<Schema extends DescMessage> = Exclude<MessageInitShape<Schema>, Message>;

export type MountInit = Plain<typeof pb.MountSchema>;
export type DeviceInit = Plain<typeof pb.DeviceSchema>;
export type PortMappingInit = Plain<typeof pb.PortMappingSchema>;
export type ProfileInit = Plain<typeof pb.SecurityProfileSchema>;
export type NamespacesInit = Plain<typeof pb.NamespaceOptionSchema>;
export type UserNamespaceInit = Plain<typeof pb.UserNamespaceSchema>;
export type ContainerSecurityInit = Plain<typeof pb.LinuxContainerSecurityContextSchema>;
export type SandboxSecurityInit = Plain<typeof pb.LinuxSandboxSecurityContextSchema>;
export type LinuxResourcesInit = Plain<typeof pb.LinuxContainerResourcesSchema>;
export type PlainSandboxConfig = Plain<typeof pb.PodSandboxConfigSchema>;
export type PlainContainerConfig = Plain<typeof pb.ContainerConfigSchema>;
