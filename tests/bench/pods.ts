import type { ContainerConfigInit, SandboxConfigInit } from "../../cri/api.ts";
import { NamespaceMode } from "../../cri/gen/runtime_pb.ts";
import { AgentPodBuilder } from "../../managers/runtime/builder.ts";
import { createDenoHost } from "../../mod/base/deno_host.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import { podContainers } from "../../mod/kube/pod.ts";
import type { BoundPod, Container } from "../../mod/kube/types.ts";
import { containerLogDir } from "../../mod/pod/config/paths.ts";
import { noObjects } from "../../mod/pod/config/env.ts";
import { readPod } from "../../mod/sources/manifest.ts";

/** Where the containers of a bench tell that they run and that they have ended. */
export interface Marks {
  /** Directory on the host that every pod mounts. */
  readonly directory: string;
}

/**
 * A pod of one small container that makes a file when it runs, and another when it is told to end: the files' times say
 * when, more exactly than any look at the runtime could.
 */
export function manifest(
  name: string,
  marks: Marks,
  /** More fields of the container, or others. */
  container: Partial<Container> = {},
): Record<string, unknown> {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default" },
    spec: {
      terminationGracePeriodSeconds: 1,
      containers: [{
        name: "main",
        image: "localhost/busybox:1",
        imagePullPolicy: "IfNotPresent",
        command: [
          "sh",
          "-c",
          `trap ': >/marks/${name}.ended; exit 0' TERM; : >/marks/${name}.runs; sleep 100000 & wait`,
        ],
        resources: { requests: { cpu: "1m", memory: "4Mi" }, limits: { cpu: "500m", memory: "32Mi" } },
        volumeMounts: [{ name: "marks", mountPath: "/marks" }],
        ...container,
      }],
      volumes: [{ name: "marks", hostPath: { path: marks.directory, type: "Directory" } }],
    },
  };
}

/** What the bare calls for a pod are made with. */
export interface FloorPod {
  readonly name: string;
  readonly sandbox: SandboxConfigInit;
  readonly container: ContainerConfigInit;
}

/** Makes the configurations that the agent itself would make, below a root directory of their own. */
export class FloorPods {
  readonly #builder: AgentPodBuilder;

  constructor(
    private readonly options: {
      marks: Marks;
      root: string;
      cgroup: string;
      cgroupVersion: 1 | 2;
    },
  ) {
    const { root, cgroup, cgroupVersion } = options;
    this.#builder = new AgentPodBuilder({
      host: createDenoHost(),
      random: Math.random,
      events: new RecordingEvents(),
      policy: {
        rootDir: root,
        seccompDefault: false,
        selinuxEnabled: false,
        stopSignals: false,
        cpuCfsQuota: true,
        cpuPeriodUs: 100_000,
        cgroupVersion,
        memorySwap: "NoSwap",
        swapAvailable: false,
        nodeMemory: 2 ** 33,
        nodeSwap: 0,
        hugePageSizes: [],
      },
      podLogsDir: `${root}/logs`,
      resolvConf: "/etc/resolv.conf",
      clusterDNS: [],
      clusterDomain: "",
      nodeIPs: ["127.0.0.1"],
      allocatable: { cpu: "2", memory: "8Gi" },
      cgroupParent: (pod) => `${cgroup}/pod${pod.metadata.uid}`,
      environment: { read: () => Promise.resolve({ objects: noObjects, services: new Map() }) },
      handlers: () => [],
      userns: { of: () => Promise.resolve({ mode: NamespaceMode.NODE }) },
      imageVolumes: false,
      subPath: () => Promise.reject(new Error("no sub paths here")),
    });
  }

  /** Builds a pod's configurations and the files and directories they name. */
  async make(name: string): Promise<FloorPod> {
    const { marks, root } = this.options;
    const text = JSON.stringify(manifest(name, marks));
    const [pod] = readPod(text, { origin: { source: "file", path: `/floor/${name}` }, nodeName: "floor" }).pods;
    const [container] = pod ? podContainers(pod) : [];
    if (!pod || !container) throw new Error("the bench's own manifest gave no pod");
    await Deno.mkdir(containerLogDir(`${root}/logs`, pod, "main"), { recursive: true });
    await Deno.mkdir(`${root}/pods/${pod.metadata.uid}`, { recursive: true });
    const config = await this.#builder.sandbox(pod, 0, "");
    const made = await this.#builder.container({
      pod,
      container,
      restartCount: 0,
      image: { imageRef: "localhost/busybox:1", uid: 0 },
      imageVolumes: new Map(),
      situation: {
        volumes: new Map([["marks", {
          name: "marks",
          hostPath: marks.directory,
          readOnly: false,
          selinuxRelabel: false,
        }]]),
        podIPs: ["127.0.0.1"],
        status: undefined,
      },
      handler: "",
      targetContainerId: undefined,
      signal: new AbortController().signal,
    });
    return { name, sandbox: unowned(config), container: unowned(made) };
  }
}

/** Without the label by which an agent knows a pod: the one under test would remove it as an orphan. */
function unowned<T extends { labels?: BoundPod["metadata"]["labels"] }>(config: T): T {
  const { "io.kubernetes.pod.uid": _, ...labels } = config.labels ?? {};
  return { ...config, labels };
}
