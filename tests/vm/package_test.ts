import assert from "@assert";
import type { Pod, PodStatus } from "../../mod/kube/types.ts";
import { run } from "../../scripts/lib/command.ts";
import { remove } from "../../scripts/lib/files.ts";
import { print } from "../../scripts/lib/print.ts";
import { buildImages } from "../../scripts/node/images.ts";
import { makePackage } from "../../scripts/package.ts";
import { groupPaths } from "./cgroups.ts";
import { Machine } from "./machine.ts";
import { bestEffort, burstable, guaranteed } from "./pods.ts";

const Mi = 2 ** 20;
const manifests = "/etc/kubernetes/manifests";

/** What an administrator makes of the package's configuration. */
const configuration = {
  apiVersion: "kubelet.config.k8s.io/v1beta1",
  kind: "KubeletConfiguration",
  containerRuntimeEndpoint: "unix:///run/containerd/containerd.sock",
  cgroupDriver: "systemd",
  staticPodPath: manifests,
  enableServer: true,
  readOnlyPort: 0,
  authentication: { anonymous: { enabled: true }, webhook: { enabled: false } },
  authorization: { mode: "AlwaysAllow" },
  enableSystemLogHandler: true,
  enableSystemLogQuery: true,
  runtimeRequestTimeout: "10m",
  evictionHard: { "memory.available": "50Mi", "nodefs.available": "1%", "imagefs.available": "1%" },
  featureGates: { MemoryQoS: true },
  memoryReservationPolicy: "TieredReservation",
  memoryThrottlingFactor: 0.9,
  logging: { format: "json", verbosity: 2 },
};

/** The node with the installed package, as its administrator sees it: systemctl, journalctl, and the commands. */
class PackagedNode {
  constructor(readonly machine: Machine) {}

  async put(one: Pod): Promise<void> {
    const name = one.metadata?.name;
    await this.machine.write(`${manifests}/.${name}`, JSON.stringify(one));
    await this.machine.sh(`mv ${manifests}/.${name} ${manifests}/${name}.json`);
  }

  /** The pods as `kubelet ps` tells them, by their names in the manifests. */
  async pods(): Promise<Map<string, { uid: string; status: PodStatus | undefined }>> {
    const { items } = JSON.parse(await this.machine.sh("kubelet ps -o json"));
    return new Map(items.map(({ metadata, status }: Pod) => [
      String(metadata?.name).replace(/-node-vm$/, ""),
      { uid: String(metadata?.uid), status },
    ]));
  }

  async ready(...names: string[]): Promise<Map<string, { uid: string; status: PodStatus | undefined }>> {
    return await this.machine.until(`${names.join(", ")} to be ready`, async () => {
      const pods = await this.pods();
      const ready = (name: string) =>
        pods.get(name)?.status?.conditions?.some((one) => one.type === "Ready" && one.status === "True");
      return names.every(ready) && pods;
    });
  }

  /** Every container and sandbox with its process. */
  async tasks(): Promise<string[]> {
    return (await this.machine.sh("ctr -n k8s.io tasks ls")).split("\n").slice(1)
      .map((line) => line.trim().split(/\s+/).join(" ")).sort();
  }

  /** Asks the agent's server from outside, as a client does. */
  async ask(path: string): Promise<string> {
    return await run(["curl", "-sSk", "-m", "300", "-w", "\n%{http_code}", `${this.machine.api}${path}`]);
  }

  async explained<T>(work: Promise<T>): Promise<T> {
    try {
      return await work;
    } catch (thrown) {
      const end = await this.machine.sh("journalctl -u kubelet --no-pager -n 25 -o cat | cut -c1-400");
      throw new Error(`${thrown instanceof Error ? thrown.message : thrown}\nend of the journal:\n${end}`, {
        cause: thrown,
      });
    }
  }
}

const names = ["guaranteed", "burstable", "best-effort"];

Deno.test("the Debian package on a node with cgroup v2 and systemd, in a virtual machine", async (t) => {
  const directory = await Deno.makeTempDir({ prefix: "denolet-vm-deb-" });
  try {
    const images = await buildImages();
    // unpacking what is compressed takes minutes where it is emulated
    const deb = await makePackage({ compress: false, into: directory });
    const inside = `/host/${deb.slice(deb.lastIndexOf("/") + 1)}`;
    await using machine = await Machine.up([deb, ...images.map((one) => one.path)], print);
    await remove(directory);
    const node = new PackagedNode(machine);
    const step = (name: string, work: () => Promise<void>) => t.step(name, () => node.explained(work()));
    const shown = (property: string) => machine.sh(`systemctl show -P ${property} kubelet`);

    await step("it installs with what it needs there, and waits for its configuration", async () => {
      await machine.sh(
        `for i in /host/*.tar; do ctr -n k8s.io images import $i >/dev/null; done; dpkg -i ${inside} >/dev/null`,
      );
      assert.equal(await machine.sh("dpkg-query -W -f '${Status}' denolet"), "install ok installed");
      // a slim machine takes no documentation
      assert.equal(await machine.sh("dpkg --verify denolet | grep -v ' /usr/share/' || true"), "");
      assert.deepEqual([await shown("ActiveState"), await shown("Type")], ["inactive", "notify"]);
    });

    await step("the unit is ready when the agent says so; static pods of each QoS class come up", async () => {
      await machine.write("/etc/kubernetes/kubelet.yaml", JSON.stringify(configuration));
      for (const one of [guaranteed, burstable(), bestEffort]) await node.put(one);
      // a minute without a word is long for a machine, but not for one that is emulated beside others
      await machine.sh(`mkdir -p /etc/systemd/system/kubelet.service.d
        printf '[Service]\\nWatchdogSec=20min\\n' > /etc/systemd/system/kubelet.service.d/emulated.conf
        systemctl daemon-reload; systemctl enable --now --quiet kubelet`);
      assert.deepEqual([await shown("ActiveState"), await shown("SubState")], ["active", "running"]);
      const pid = await shown("MainPID");
      const facts = await machine.texts({ name: `/proc/${pid}/comm`, score: `/proc/${pid}/oom_score_adj` });
      assert.deepEqual(facts, { name: "kubelet", score: "-999" });
      await node.ready(...names);
    });

    await step("slices of the systemd driver; memory is kept and slowed down as MemoryQoS says", async () => {
      const pods = await node.pods();
      const uid = (name: string) => pods.get(name)?.uid ?? "";
      const at = (group: string) => `/sys/fs/cgroup${group}`;
      const { kubepods, burstable: qos, guaranteedPod, burstablePod } = groupPaths.systemd;
      const id = String(pods.get("burstable")?.status?.containerStatuses?.[0]?.containerID).replace(/^.*\/\//, "");
      const container = `${at(burstablePod(uid("burstable")))}/cri-containerd-${id}.scope`;
      assert.deepEqual(
        await machine.texts({
          node: `${at(kubepods)}/memory.min`,
          class: `${at(qos)}/memory.low`,
          guaranteed: `${at(guaranteedPod(uid("guaranteed")))}/memory.min`,
          burstable: `${at(burstablePod(uid("burstable")))}/memory.low`,
          high: `${container}/memory.high`,
          max: `${container}/memory.max`,
        }),
        {
          node: String(80 * Mi),
          class: String(16 * Mi),
          guaranteed: String(64 * Mi),
          burstable: String(16 * Mi),
          high: String(Math.floor((16 + 32 * 0.9) * Mi / 4096) * 4096),
          max: String(48 * Mi),
        },
      );
    });

    await step("kubelet ps, explain, logs and check answer", async () => {
      const table = await machine.sh("kubelet ps");
      for (const name of names) assert.match(table, new RegExp(`default +${name}-node-vm +1/1 +Running +\\d+ `));
      const why = await machine.sh("kubelet explain burstable-node-vm");
      assert.match(why, /burstable-node-vm/);
      assert.match(why, /container|started/i);
      await machine.sh("kubelet logs guaranteed-node-vm >/dev/null");
      const checked = (await machine.sh("kubelet check --config /etc/kubernetes/kubelet.yaml || true")).split("\n");
      assert.deepEqual(checked.filter((line) => line.startsWith("fail")), []);
      for (const line of [/^ok +agent +runs/, /^ok +runtime +containerd/, /^ok +cgroups +version 2/]) {
        assert.ok(checked.some((one) => line.test(one)), checked.join("\n"));
      }
    });

    await step("the server: pressure of pods, and the logs of services by journalctl", async () => {
      const summary = JSON.parse((await node.ask("/stats/summary")).replace(/\n\d+$/, ""));
      const found = summary.pods.find((one: { podRef: { name: string } }) => one.podRef.name === "guaranteed-node-vm");
      for (const kind of ["cpu", "memory", "io"]) {
        assert.equal(typeof found?.[kind]?.psi?.some?.total, "number", `${kind}: ${JSON.stringify(found?.[kind])}`);
      }
      const own = await node.ask("/logs/?query=kubelet&tailLines=500");
      assert.match(own, /kubelet\[\d+\]: .*"msg"/);
      assert.match(own, /\n200$/);
      const few = await node.ask("/logs/?query=containerd&tailLines=2");
      assert.equal(few.split("\n").filter((line) => /containerd\[\d+\]:/.test(line)).length, 2, few);
      const some = await node.ask("/logs/?query=kubelet&pattern=denolet-no-such-word");
      assert.doesNotMatch(some, /"msg"/);
      assert.match(await node.ask("/logs/?query=no-such-service"), /log not found for no-such-service/);
      assert.match(await node.ask("/logs/?query=kubelet;id"), /\n4\d\d$/);
    });

    const unchanged = async (what: () => Promise<unknown>) => {
      const [before, pid] = [await node.tasks(), await shown("MainPID")];
      assert.equal(before.length, 2 * names.length, before.join("\n"));
      const pods = await node.pods();
      await what();
      assert.notEqual(await shown("MainPID"), pid);
      const after = await node.ready(...names);
      for (const name of names) {
        assert.equal(after.get(name)?.uid, pods.get(name)?.uid);
        // a runtime that is emulated beside others may fail to start a container at the first try
        const restarts = (of: typeof pods) => of.get(name)?.status?.containerStatuses?.map((one) => one.restartCount);
        assert.deepEqual(restarts(after), restarts(pods), name);
      }
      assert.deepEqual(await node.tasks(), before);
    };
    await step("systemctl restart changes no container; memory that runs short is told", async () => {
      // every container is critical, as static pods are: none goes
      await machine.write(
        "/etc/default/kubelet",
        "KUBELET_EXTRA_ARGS=--eviction-soft=memory.available<99% --eviction-soft-grace-period=memory.available=1s\n",
      );
      await unchanged(() => machine.sh("systemctl restart kubelet"));
      await machine.until("the agent to tell of it", async () => {
        const said = await machine.sh("journalctl -u kubelet --no-pager -o cat -n 400");
        return /under pressure.*MemoryPressure/.test(said) && /no pod may be evicted/.test(said);
      });
      assert.equal((await node.tasks()).length, 2 * names.length);
    });
    await step("the package is installed again: the agent starts anew, no container does", async () => {
      await unchanged(() => machine.sh(`dpkg -i ${inside} >/dev/null`));
    });

    await step("the package is purged: its files go, the containers stay", async () => {
      const before = await node.tasks();
      await machine.sh("dpkg -P denolet >/dev/null 2>&1");
      assert.deepEqual(await node.tasks(), before);
      const left = "for f in /usr/bin/kubelet /etc/kubernetes/kubelet.yaml /var/cache/denolet " +
        "/lib/systemd/system/kubelet.service; do [ ! -e $f ] || echo $f; done; pgrep -x kubelet || true";
      assert.equal(await machine.sh(left), "");
    });
  } finally {
    await remove(directory);
  }
});
