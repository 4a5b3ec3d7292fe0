import assert from "@assert";
import { run } from "../../scripts/lib/command.ts";
import { remove, repository } from "../../scripts/lib/files.ts";
import { print } from "../../scripts/lib/print.ts";
import { ensureContainerd2 } from "../../scripts/node/containerd2.ts";
import { buildImages } from "../../scripts/node/images.ts";
import { groupPaths, limitFiles, weight } from "./cgroups.ts";
import { Machine } from "./machine.ts";
import { type Driver, VmNode } from "./node.ts";
import { bestEffort, burstable, guaranteed, pod } from "./pods.ts";

const Mi = 2 ** 20;

const names = ["guaranteed", "burstable", "best-effort"];

/** What goes into the machine: this repository as it is now, Deno with its npm packages, images, containerd 2. */
async function parcel(): Promise<{ directory: string; paths: string[] }> {
  const directory = await Deno.makeTempDir({ prefix: "denolet-vm-" });
  const info = JSON.parse(await run([Deno.execPath(), "info", "--json"]));
  const images = await buildImages();
  const containerd2 = await ensureContainerd2({ log: print });
  await run([
    "bash",
    "-c",
    'mkdir "$1/repo" "$1/denodir" "$1/containerd2" && cd "$2" && ' +
    'cp -a main.ts deno.json deno.lock cri managers mod scripts packaging "$1/repo/" && ' +
    'cp -aL "$3/npm" "$1/denodir/" && cp -L "$4" "$1/deno" && ' +
    'cp "$5"/containerd "$5"/containerd-shim-runc-v2 "$5"/ctr "$1/containerd2/"',
    "bash",
    directory,
    repository,
    String(info.denoDir),
    Deno.execPath(),
    containerd2,
  ]);
  const own = ["repo", "denodir", "containerd2", "deno"].map((name) => `${directory}/${name}`);
  return { directory, paths: [...own, ...images.map((one) => one.path)] };
}

/** The lines of a driver's part, each a step of its own. */
async function proveDriver(t: Deno.TestContext, node: VmNode, driver: Driver): Promise<void> {
  const { machine } = node;
  const paths = groupPaths[driver];
  const uids: Record<string, string> = {};
  const groupOf: Readonly<Record<string, (uid: string) => string>> = {
    guaranteed: paths.guaranteedPod,
    burstable: paths.burstablePod,
    "best-effort": paths.bestEffortPod,
  };
  const podGroup = (name: string) => {
    const [group, uid] = [groupOf[name], uids[name]];
    if (!group || uid === undefined) throw new Error(`the pod ${name} has no UID yet`);
    return group(uid);
  };
  const unchanged = async (what: () => Promise<void>) => {
    const before = await node.tasks();
    assert.equal(before.length, 2 * names.length, before.join("\n"));
    const seen = (await node.records()).length;
    await what();
    for (const name of names) {
      const status = await node.ready(name, seen);
      assert.deepEqual(status.containerStatuses?.map((one) => one.restartCount), [0]);
      assert.equal(await node.uid(name), uids[name]);
    }
    assert.deepEqual(await node.tasks(), before);
  };

  await t.step("a pod of each QoS class becomes ready with its probes", async () => {
    await node.configure(driver);
    for (const one of [guaranteed, burstable(), bestEffort]) await node.put(one);
    await node.start();
    for (const name of names) {
      await node.ready(name);
      uids[name] = await node.uid(name);
    }
  });

  await t.step("the agent is a process called kubelet with the OOM score -999", async () => {
    const pid = await machine.sh("systemctl show -P MainPID kubelet");
    const facts = await machine.texts({ name: `/proc/${pid}/comm`, score: `/proc/${pid}/oom_score_adj` });
    assert.deepEqual(facts, { name: "kubelet", score: "-999" });
  });

  await t.step("the node's group has what is allocatable, and no quota", async () => {
    const { total, pidMax, threadsMax } = await machine.texts({
      total: "/proc/meminfo",
      pidMax: "/proc/sys/kernel/pid_max",
      threadsMax: "/proc/sys/kernel/threads-max",
    });
    const memory = Number(/^MemTotal: +(\d+) kB/.exec(total ?? "")?.[1]) * 1024 - 384 * Mi;
    assert.deepEqual(await machine.texts(limitFiles(paths.kubepods)), {
      weight: weight(2000 - 300),
      cpu: "max 100000",
      memory: String(memory),
      pids: String(Math.min(Number(pidMax), Number(threadsMax))),
      cpus: "0-1",
    });
  });

  await t.step("the QoS classes' groups have the shares of their pods", async () => {
    await machine.until(
      "the shares of the Burstable pods",
      async () => (await machine.texts(limitFiles(paths.burstable))).weight === weight(250),
      90,
    );
    const rest = { cpu: "max 100000", memory: "max", pids: "max", cpus: "" };
    assert.deepEqual(await machine.texts(limitFiles(paths.burstable)), { weight: weight(250), ...rest });
    assert.deepEqual(await machine.texts(limitFiles(paths.bestEffort)), { weight: "1", ...rest });
  });

  await t.step("the pods' groups have the pods' limits", async () => {
    const rest = { pids: "300", cpus: "" };
    const table = {
      guaranteed: { weight: weight(200), cpu: "20000 100000", memory: String(64 * Mi), ...rest },
      burstable: { weight: weight(250), cpu: "max 100000", memory: String(48 * Mi), ...rest },
      "best-effort": { weight: "1", cpu: "max 100000", memory: "max", ...rest },
    };
    for (const [name, limits] of Object.entries(table)) {
      assert.deepEqual(await machine.texts(limitFiles(podGroup(name))), limits, name);
    }
  });

  await t.step("containers run inside their pod's group, killed as a whole, without swap", async () => {
    const table = {
      guaranteed: { memory: String(64 * Mi), score: "-997" },
      burstable: { memory: String(48 * Mi), score: undefined },
      "best-effort": { memory: "max", score: "1000" },
    };
    for (const [name, { memory, score }] of Object.entries(table)) {
      const status = await node.ready(name);
      const id = String(status.containerStatuses?.[0]?.containerID).replace("containerd://", "");
      const pid = await machine.sh(`ctr -n k8s.io tasks ls | sed -n 's/^${id} *\\([0-9]*\\) .*/\\1/p'`);
      const own = (await machine.sh(`cat /proc/${pid}/cgroup`)).replace("0::", "");
      const leaf = driver === "systemd" ? `cri-containerd-${id}.scope` : id;
      assert.equal(own, `${podGroup(name)}/${leaf}`);
      const at = `/sys/fs/cgroup${own}`;
      const facts = await machine.texts({
        group: `${at}/memory.oom.group`,
        swap: `${at}/memory.swap.max`,
        memory: `${at}/memory.max`,
        score: `/proc/${pid}/oom_score_adj`,
      });
      assert.deepEqual({ ...facts, ...(score === undefined ? { score } : {}) }, {
        group: "1",
        swap: "0",
        memory,
        score,
      });
    }
  });

  await t.step("systemd knows the groups of the systemd driver as slices with the limits, and no others", async () => {
    const list = await machine.sh("systemctl list-units --plain --no-legend 'kubepods*' | cut -d' ' -f1");
    if (driver === "cgroupfs") return assert.equal(list, "");
    const unitOf = (path: string) => path.slice(path.lastIndexOf("/") + 1);
    const units = [paths.kubepods, paths.burstable, paths.bestEffort, ...names.map(podGroup)].map(unitOf);
    assert.deepEqual(list.split("\n").sort(), [...units].sort());
    const wanted = "ActiveState,CPUWeight,CPUQuotaPerSecUSec,MemoryMax,TasksMax";
    const shown = await machine.sh(`systemctl show -p ${wanted} ${unitOf(podGroup("guaranteed"))} | sort`);
    assert.deepEqual(shown.split("\n"), [
      "ActiveState=active",
      "CPUQuotaPerSecUSec=200ms",
      `CPUWeight=${weight(200)}`,
      `MemoryMax=${64 * Mi}`,
      "TasksMax=300",
    ]);
  });

  await t.step("systemd reads its units again: no limit is lost, no container ends", async () => {
    const groups = () =>
      machine.sh(
        `cd /sys/fs/cgroup && grep -r . ${
          names.map((name) =>
            `.${podGroup(name)}/cpu.max .${podGroup(name)}/memory.max .${podGroup(name)}/cgroup.controllers`
          )
            .join(" ")
        }`,
      );
    const before = await groups();
    const tasks = await node.tasks();
    await machine.sh("systemctl daemon-reload");
    assert.equal(await groups(), before);
    assert.deepEqual(await node.tasks(), tasks);
  });

  await t.step("systemctl restart changes no container", async () => {
    await unchanged(() => machine.sh("systemctl restart kubelet").then(() => {}));
  });

  await t.step("kill -9 changes no container; systemd starts the agent again", async () => {
    await unchanged(async () => {
      const pid = await machine.sh("systemctl show -P MainPID kubelet; systemctl kill -s KILL kubelet");
      await machine.until("another agent", async () => {
        const now = await machine.sh("systemctl show -P MainPID kubelet");
        return now !== "0" && now !== pid;
      });
    });
  });

  await t.step("a container over its memory limit is killed, and its status says so", async () => {
    await node.put(pod("greedy", {
      image: "localhost/busybox:1",
      command: ["sh", "-c", "tail /dev/zero & wait $!; sleep 600"],
      resources: { limits: { memory: "24Mi" } },
    }, { restartPolicy: "Never" }));
    const status = await node.status("greedy", "Failed", (one) => one.phase === "Failed");
    const ended = status.containerStatuses?.[0]?.state?.terminated;
    assert.deepEqual([ended?.reason, ended?.exitCode], ["OOMKilled", 137]);
    await node.remove("greedy");
  });

  await t.step("an edited manifest: nothing is left of the old pod, and the others go on", async () => {
    const old = { uid: uids.burstable ?? "", group: podGroup("burstable") };
    const tasks = await node.tasks();
    await node.put(burstable({ env: [{ name: "EDITED", value: "yes" }] }));
    await machine.until("another burstable pod", async () => await node.uid("burstable") !== old.uid);
    const seen = (await node.records()).length;
    uids.burstable = await node.uid("burstable");
    await node.ready("burstable", Math.max(0, seen - 1));
    await machine.until("the old pod to be gone", async () => {
      const left = (await node.remains()).filter((one) => one.includes(old.uid) || one.includes(old.group));
      if (left.length > 0) throw new Error(left.join("\n"));
      return true;
    });
    const now = new Set(await node.tasks());
    assert.equal(tasks.filter((one) => now.has(one)).length, 4, "the two other pods' containers and sandboxes");
  });

  await t.step("manifests removed: no slice, group, mount, sandbox, container, directory or log is left", async () => {
    await node.remove(...names);
    await node.nothingLeft();
    await node.stop();
  });
}

/** A start of the agent whose configuration names another driver than the runtime uses: what it says. */
async function mismatch(node: VmNode, configured: Driver, text: string): Promise<void> {
  await node.configure(configured);
  await node.start();
  try {
    await node.logged(text, 0);
  } finally {
    await node.stop();
  }
}

Deno.test("a node with cgroup v2 and systemd, in a virtual machine", async (t) => {
  const { directory, paths } = await parcel();
  try {
    await using machine = await Machine.up(paths, print);
    await remove(directory);
    const node = new VmNode(machine);
    await t.step("the agent installs as a service that starts with the machine", async () => {
      await node.install();
      await machine.sh(
        "systemctl enable kubelet; systemctl is-enabled kubelet; systemd-analyze verify kubelet.service",
      );
    });
    for (const driver of ["systemd", "cgroupfs"] as const) {
      await t.step(`driver ${driver}`, async (t) => {
        await node.containerd(driver);
        await proveDriver(t, node, driver);
      });
    }
    await t.step("containerd 1: the configuration names another driver than containerd's own", async () => {
      await mismatch(
        node,
        "systemd",
        "cgroupDriver is systemd, but containerd's configuration makes runc use cgroupfs",
      );
    });
    await t.step("containerd 2: the runtime's driver is used, and a configuration that differs is told", async () => {
      await node.containerd2("systemd");
      await mismatch(node, "cgroupfs", "cgroupDriver is cgroupfs, but the runtime uses systemd, which is used");
      await machine.sh("systemctl is-active kubepods.slice kubepods-burstable.slice");
    });
  } finally {
    await remove(directory);
  }
});
