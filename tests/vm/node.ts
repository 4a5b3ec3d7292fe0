import type { Pod, PodStatus } from "../../mod/kube/types.ts";
import type { Machine } from "./machine.ts";

export type Driver = "cgroupfs" | "systemd";

const manifests = "/etc/kubernetes/manifests";
const log = "/var/log/kubelet.log";

/** The agent's configuration inside, but for the cgroup driver. */
const configuration = {
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  kind: "KubeletConfiguration",
  containerRuntimeEndpoint: "unix:///run/containerd/containerd.sock",
  staticPodPath: manifests,
  fileCheckFrequency: "1s",
  enableServer: false,
  readOnlyPort: 0,
  podPidsLimit: 300,
  systemReserved: { cpu: "200m", memory: "256Mi" },
  kubeReserved: { cpu: "100m", memory: "128Mi" },
  runtimeRequestTimeout: "10m",
  authentication: { anonymous: { enabled: false }, webhook: { enabled: false } },
  authorization: { mode: "AlwaysAllow" },
  evictionHard: { "memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%" },
  logging: { format: "json", verbosity: 4 },
};

/** A line of the agent's log. */
export type LogLine = Readonly<Record<string, unknown>>;

/** The node inside the machine: its containerd, the agent as a service, and what they show. */
export class VmNode {
  #records: LogLine[] = [];
  #read = 0;
  #rest = "";

  constructor(readonly machine: Machine) {}

  /** Installs the agent as packaging/kubelet.service wants it, and the images. */
  async install(): Promise<void> {
    await this.machine.sh(`
      cp -a /host/repo /opt/denolet; cp -a /host/deno /usr/local/bin/deno
      mkdir -p /var/cache/denolet /var/lib/kubelet ${manifests}; cp -a /host/denodir /var/cache/denolet/deno
      cp /opt/denolet/packaging/kubelet.service /etc/systemd/system/
      mkdir -p /etc/systemd/system/kubelet.service.d
      printf '[Service]\\nStandardError=append:${log}\\nStandardOutput=append:${log}\\n' > /etc/systemd/system/kubelet.service.d/log.conf
      systemctl daemon-reload`);
    await this.importImages();
  }

  async importImages(): Promise<void> {
    await this.machine.sh("for i in /host/*.tar; do ctr -n k8s.io images import $i >/dev/null; done");
  }

  /** Makes containerd's runc use a driver; the node's groups of the other one, which the agent keeps, are removed. */
  async containerd(driver: Driver): Promise<void> {
    await this.machine.sh(`
      systemctl stop kubepods.slice 2>/dev/null || [ $? = 5 ] # not loaded
      [ ! -d /sys/fs/cgroup/kubepods ] || find /sys/fs/cgroup/kubepods -depth -type d -exec rmdir {} +
      sed -i 's/SystemdCgroup = .*/SystemdCgroup = ${driver === "systemd"}/' /etc/containerd/config.toml
      systemctl restart containerd`);
  }

  /** Puts containerd 2 (of /host/containerd2) in the place of Debian's. */
  async containerd2(driver: Driver): Promise<void> {
    await this.machine.write(
      "/etc/containerd/config.toml",
      `version = 3
[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "localhost/pause:1"
[plugins."io.containerd.cri.v1.runtime".cni]
  bin_dirs = ["/usr/lib/cni"]
  conf_dir = "/etc/cni/net.d"
[plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc]
  runtime_type = "io.containerd.runc.v2"
  [plugins."io.containerd.cri.v1.runtime".containerd.runtimes.runc.options]
    SystemdCgroup = ${driver === "systemd"}
`,
    );
    await this.machine.sh(`
      systemctl stop containerd; rm -rf /var/lib/containerd /run/containerd
      for p in containerd containerd-shim-runc-v2 ctr; do cp /host/containerd2/$p /usr/bin/$p; done
      systemctl start containerd`);
    await this.importImages();
  }

  /** Writes the agent's configuration. */
  async configure(driver: Driver): Promise<void> {
    await this.machine.write(
      "/var/lib/kubelet/config.yaml",
      JSON.stringify({ ...configuration, cgroupDriver: driver }),
    );
  }

  /** Starts the service with an empty log, and waits until the agent has met the runtime. */
  async start(): Promise<void> {
    await this.machine.sh(`rm -f ${log}; systemctl start kubelet`);
    this.#records = [];
    this.#read = 0;
    this.#rest = "";
    await this.logged("the container runtime answers", 0);
  }

  async stop(): Promise<void> {
    await this.machine.sh("systemctl stop kubelet");
  }

  async put(pod: Pod): Promise<void> {
    await this.machine.write(`${manifests}/.${pod.metadata?.name}`, JSON.stringify(pod));
    await this.machine.sh(`mv ${manifests}/.${pod.metadata?.name} ${manifests}/${pod.metadata?.name}.json`);
  }

  async remove(...names: string[]): Promise<void> {
    await this.machine.sh(names.map((name) => `rm ${manifests}/${name}.json`).join("\n"));
  }

  /** Every line of the agent's log until now. */
  async records(): Promise<readonly LogLine[]> {
    const size = Number(await this.machine.sh(`stat -c %s ${log}`));
    if (size > this.#read) {
      const text = await this.machine.sh(
        `tail -c +${this.#read + 1} ${log} | head -c ${size - this.#read}; echo; echo .`,
      );
      this.#read = size;
      const lines = (this.#rest + text.slice(0, -2)).split("\n");
      this.#rest = lines.pop() ?? "";
      for (const line of lines) if (line.startsWith("{")) this.#records.push(JSON.parse(line));
    }
    return this.#records;
  }

  /** Waits for a line of the log, behind the first `after`, whose message has the text. */
  async logged(text: string, after: number): Promise<LogLine> {
    try {
      return await this.machine.until(
        `the agent's log to say: ${text}`,
        async () => (await this.records()).slice(after).find((line) => String(line.msg).includes(text)),
      );
    } catch (thrown) {
      throw await this.#explained(thrown);
    }
  }

  /** Waits until the status of a pod that the agent told behind the first `after` lines is as `look` wants it. */
  async status(name: string, what: string, look: (status: PodStatus) => boolean, after = 0): Promise<PodStatus> {
    let last: PodStatus | undefined;
    try {
      return await this.machine.until(`${name} to be ${what}`, async () => {
        const own = (line: LogLine) => line.msg === "Pod status" && line.pod === `${name}-node-vm_default`;
        last = (await this.records()).slice(after).findLast(own)?.status as PodStatus | undefined;
        return last !== undefined && look(last) ? last : undefined;
      });
    } catch (thrown) {
      throw await this.#explained(thrown, `\nlast status: ${JSON.stringify(last)}`);
    }
  }

  async ready(name: string, after = 0): Promise<PodStatus> {
    const isReady = (status: PodStatus) =>
      status.conditions?.some((one) => one.type === "Ready" && one.status === "True") ?? false;
    return await this.status(name, "ready", isReady, after);
  }

  async #explained(thrown: unknown, more = ""): Promise<Error> {
    const lines = (await this.records()).filter((line) => line.msg !== "Pod status").slice(-12);
    const end = lines.map((line) => JSON.stringify(line).slice(0, 400)).join("\n");
    return new Error(`${thrown instanceof Error ? thrown.message : thrown}${more}\nend of the agent's log:\n${end}`, {
      cause: thrown,
    });
  }

  /** The newest UID of a pod. */
  async uid(name: string): Promise<string> {
    const added = (await this.records()).findLast((line) =>
      line.msg === "pod add" && line.pod === `${name}-node-vm_default`
    );
    if (typeof added?.podUid !== "string") throw new Error(`the agent's log has no UID of ${name}`);
    return added.podUid;
  }

  /** Every container and sandbox with its process, as containerd knows them: what must not change. */
  async tasks(): Promise<string[]> {
    return (await this.machine.sh("ctr -n k8s.io tasks ls"))
      .split("\n").slice(1).map((line) => line.trim().split(/\s+/).join(" ")).sort();
  }

  /** What is left of pods on the node, to be nothing once none is wanted. */
  async remains(): Promise<string[]> {
    const text = await this.machine.sh(`
      ctr -n k8s.io containers ls -q | sed 's/^/container /'
      for d in /var/lib/kubelet/pods /var/log/pods /var/log/containers /run/netns; do
        [ ! -d $d ] || find $d -mindepth 1 -maxdepth 1
      done
      grep -o ' /var/lib/kubelet/pods/[^ ]*' /proc/self/mountinfo || true
      grep -o ' /run/containerd/[^ ]*' /proc/self/mountinfo || true
      find /sys/fs/cgroup -type d \\( -name '*kubepods*pod[0-9a-f]*' -o -path '*/kubepods*/pod*' -o -name '*cri-containerd*' \\)
      systemctl list-units --all --plain --no-legend 'kubepods*pod*' 'cri-containerd*' | cut -d' ' -f1 | sed 's/^/unit /'`);
    return text.split("\n").map((line) => line.trim()).filter((line) => line !== "");
  }

  /** Waits until nothing is left of any pod. */
  async nothingLeft(): Promise<void> {
    await this.machine.until("nothing to be left of the pods", async () => {
      const left = await this.remains();
      if (left.length > 0) throw new Error(left.join("\n"));
      return true;
    });
  }
}
