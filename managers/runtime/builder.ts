import type { ContainerConfigInit, SandboxConfigInit } from "../../cri/api.ts";
import type { RuntimeHandler } from "../../cri/gen/runtime_pb.ts";
import { KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Random } from "../../mod/base/random.ts";
import type { EventSink } from "../../mod/kube/events.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { containerConfig, type ContainerPolicy } from "../../mod/pod/config/container.ts";
import { type DnsEvent, parseResolvConf, podDns } from "../../mod/pod/config/dns.ts";
import { containerEnv, type EnvValue } from "../../mod/pod/config/env.ts";
import { hostnameAndDomain } from "../../mod/pod/config/hostname.ts";
import { hostNetworkHosts, managedHosts } from "../../mod/pod/config/hosts.ts";
import { type SubPathMount, subPathMounts } from "../../mod/pod/config/mounts.ts";
import { containerDir, etcHostsFile, terminationFile } from "../../mod/pod/config/paths.ts";
import { sandboxConfig } from "../../mod/pod/config/sandbox.ts";
import type { Devices } from "../devices/types.ts";
import type { UserNamespaces } from "../userns/types.ts";
import type { MountedVolume } from "../volumes/types.ts";
import type { EnvSource, PodBuilder } from "./types.ts";

export interface BuilderOptions {
  host: Pick<Host, "readText" | "write" | "mkdir" | "chmod">;
  random: Random;
  events: EventSink;
  policy: ContainerPolicy;
  podLogsDir: string;
  /** Path of the node's resolv.conf; empty turns the node's DNS off. */
  resolvConf: string;
  clusterDNS: readonly string[];
  clusterDomain: string;
  nodeIPs: readonly string[];
  /** The node's allocatable amounts, which stand for limits that are not set. */
  allocatable: Readonly<Record<string, string>>;
  cgroupParent: (pod: BoundPod) => string;
  environment: EnvSource;
  /** What device plugins give; absent: nothing. */
  devices?: Pick<Devices, "containerOptions"> | undefined;
  userns: UserNamespaces;
  /** The runtime's handlers, as it reports them. */
  handlers: () => readonly RuntimeHandler[];
  /** The handler that a RuntimeClass names; absent without an API server, which runtime classes are read from. */
  runtimeHandler?: (className: string, signal: AbortSignal) => Promise<string>;
  /** Whether the runtime can mount images; undefined when that is not known. */
  imageVolumes: boolean | undefined;
  /** Makes part of a volume safe to mount, and returns its path on the node. */
  subPath: (request: {
    pod: BoundPod;
    container: string;
    mount: SubPathMount;
    volume: MountedVolume;
    signal: AbortSignal;
  }) => Promise<string>;
}

/** Puts a pod's CRI configuration together from the node's settings, and writes the files that a container needs. */
export class AgentPodBuilder implements PodBuilder {
  readonly #o: BuilderOptions;
  /** DNS complaints already told, so that each restart does not repeat them. */
  readonly #told = new Set<string>();

  constructor(options: BuilderOptions) {
    this.#o = options;
  }

  async handlerOf(pod: BoundPod, signal: AbortSignal): Promise<string> {
    const { runtimeClassName } = pod.spec;
    if (!runtimeClassName) return "";
    if (this.#o.runtimeHandler) return await this.#o.runtimeHandler(runtimeClassName, signal);
    throw new KubeletError(
      "BadPod",
      `spec.runtimeClassName is ${runtimeClassName}: runtime classes are read from the API server, which this agent ` +
        "does not have; leave the field out",
    );
  }

  async sandbox(pod: BoundPod, attempt: number, handler: string): Promise<SandboxConfigInit> {
    const { clusterDomain, clusterDNS, nodeIPs, podLogsDir, policy } = this.#o;
    const resolvConf = this.#o.resolvConf === "" ? undefined : parseResolvConf(await this.#resolvConf());
    const dns = podDns({ pod, resolvConf, clusterDNS, clusterDomain, nodeIPs });
    for (const event of dns.events) this.#tell(pod, event);
    const cgroupParent = this.#o.cgroupParent(pod);
    const userns = await this.#o.userns.of(pod, handler);
    return sandboxConfig({
      pod,
      attempt,
      dns: dns.config,
      clusterDomain,
      podLogsDir,
      cgroupParent,
      policy,
      userns,
    });
  }

  async #resolvConf(): Promise<string> {
    try {
      return await this.#o.host.readText(this.#o.resolvConf);
    } catch (thrown) {
      throw new KubeletError(
        "BadConfig",
        `resolvConf ${this.#o.resolvConf} cannot be read (${messageOf(thrown)}); set it to a file, or to "" for none`,
        { cause: thrown },
      );
    }
  }

  #tell(pod: BoundPod, event: DnsEvent): void {
    const key = `${pod.metadata.uid} ${event.about} ${event.reason}`;
    if (this.#told.has(key)) return;
    if (this.#told.size > 1000) this.#told.clear();
    this.#told.add(key);
    const { about, type, reason, message } = event;
    if (about === "pod") this.#o.events.pod({ pod, type, reason, message });
    else this.#o.events.node({ type, reason, message });
  }

  async container(request: Parameters<PodBuilder["container"]>[0]): Promise<ContainerConfigInit> {
    const { pod, container: { spec: container }, image, situation, handler } = request;
    const { nodeIPs, allocatable, environment, policy } = this.#o;
    if (this.#o.imageVolumes === false && request.imageVolumes.size > 0) {
      const names = [...request.imageVolumes.keys()].join(", ");
      throw new KubeletError(
        "BadPod",
        `the container runtime cannot mount images as volumes (${names}): containerd 2.1, or CRI-O 1.31, is needed`,
      );
    }
    const { volumes } = situation;
    const envs = containerEnv({
      pod,
      container,
      ...await environment.read({ pod, container, volumes, signal: request.signal }),
      fields: { podIPs: situation.podIPs, hostIPs: nodeIPs },
      allocatable,
    });
    const [subPaths, userns] = await Promise.all([
      this.#subPaths(request, envs),
      this.#o.userns.of(pod, handler),
      this.#hostsFile(pod, situation.podIPs),
    ]);
    return containerConfig({
      pod,
      container,
      restartCount: request.restartCount,
      imageRef: image.imageRef,
      imageUser: { uid: image.uid, username: image.username },
      envs,
      volumes: situation.volumes,
      imageVolumes: request.imageVolumes,
      subPaths,
      podIPs: situation.podIPs,
      terminationFile: await this.#terminationFile(pod, container.name, container.terminationMessagePath),
      targetContainerId: request.targetContainerId,
      plugin: await this.#o.devices?.containerOptions(pod, container, request.signal),
      userns,
      recursiveReadOnlyMounts: this.#o.handlers().find((h) => h.name === handler)?.features?.recursiveReadOnlyMounts,
      policy,
    });
  }

  async #subPaths(
    { pod, container, situation, signal }: Parameters<AgentPodBuilder["container"]>[0],
    envs: readonly EnvValue[],
  ): Promise<Map<number, string>> {
    const paths = new Map<number, string>();
    for (const mount of subPathMounts(container.spec, envs, situation.volumes)) {
      const volume = situation.volumes.get(mount.volume);
      if (!volume) throw new KubeletError("Volume", `volume ${mount.volume} is mounted but not set up`);
      paths.set(mount.index, await this.#o.subPath({ pod, container: container.spec.name, mount, volume, signal }));
    }
    return paths;
  }

  /** The hosts file that the agent keeps for the pod (section 12); written anew before each start. */
  async #hostsFile(pod: BoundPod, podIPs: readonly string[]): Promise<void> {
    const { host, policy, clusterDomain } = this.#o;
    const aliases = pod.spec.hostAliases ?? [];
    let text: string;
    if (pod.spec.hostNetwork) text = hostNetworkHosts(await host.readText("/etc/hosts"), aliases);
    else {
      if (podIPs.length === 0) return;
      text = managedHosts({ podIPs, ...hostnameAndDomain(pod, clusterDomain), aliases });
    }
    await host.write(etcHostsFile(policy.rootDir, pod.metadata.uid), text, { mode: 0o644 });
  }

  /** A file of its own for each start, which any user of the container may write (section 3). */
  async #terminationFile(pod: BoundPod, container: string, path: string | undefined): Promise<string | undefined> {
    if (!path) return undefined;
    const { host, policy, random } = this.#o;
    await host.mkdir(containerDir(policy.rootDir, pod.metadata.uid, container), { mode: 0o750 });
    const file = terminationFile(policy.rootDir, pod.metadata.uid, container, Math.floor(random() * 2 ** 32));
    await host.write(file, "", { mode: 0o666 });
    return file;
  }
}
