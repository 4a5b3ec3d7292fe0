import assert from "@assert";
import { resources } from "../../mod/kube/api/resources.ts";
import type { Node, Pod } from "../../mod/kube/types.ts";
import { systemClock } from "../../mod/base/clock.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import type { SeenPod } from "../../scripts/node/pods.ts";
import { box, pod, shell } from "../node/support.ts";
import { type ClusterNode, withClusterNode } from "./harness.ts";
import { ClusterView, hasCondition, patience } from "./support.ts";
import { type Interruption, TcpProxy } from "./tcp_proxy.ts";

const { signal } = new AbortController();

/** The controllers give a node up soon, so that a test need not wait for a minute. */
const controllerFlags = ["--node-monitor-grace-period=6s", "--node-monitor-period=1s"];
const config = { nodeStatusUpdateFrequency: "1s", nodeLeaseDurationSeconds: 4 };
const unreachable = "node.kubernetes.io/unreachable";

Deno.test("a node that the API server cannot be reached from: its pods go on, and all is made up for", async (t) => {
  await withClusterNode({ name: "partition", config, controllerFlags, start: false }, async (member) => {
    using proxy = new TcpProxy(member.plane.server);
    await member.plane.nodeKubeconfig(member.nodeName, proxy.server);
    member.agent.start();
    await member.agent.healthy(patience);
    const scene = new Scene(member);
    await scene.view.nodeCondition("Ready", "True");
    await scene.begin();
    const ways: readonly Interruption[] = ["lost", "late"];
    for (const how of ways) {
      await t.step(`what is sent meanwhile is ${how}`, async () => {
        await scene.prepare();
        const before = await scene.running();
        proxy.interrupt(how);
        await scene.meanwhile(before);
        proxy.heal();
        await scene.after(before);
      });
    }
  });
});

/** Pods on both sides of a partition. */
class Scene {
  readonly view: ClusterView;
  readonly #member: ClusterNode;
  readonly #objects = new Map<string, Pod>();

  constructor(member: ClusterNode) {
    this.#member = member;
    this.view = new ClusterView(member);
  }

  /** What is there all the time. */
  async begin(): Promise<void> {
    const { agent } = this.#member;
    const readinessProbe = { exec: { command: ["test", "-e", "/state/up"] }, periodSeconds: 1 };
    const volumes = [{ name: "state", emptyDir: {} }];
    const volumeMounts = [{ name: "state", mountPath: "/state" }];
    await this.view.createPod("steady", { containers: [box("main")] });
    await this.view.createPod("moody", {
      volumes,
      containers: [box("main", { volumeMounts, readinessProbe })],
    });
    await this.view.createPod("ends", {
      volumes,
      containers: [
        shell("main", "trap 'exit 0' TERM; until test -e /state/end; do sleep 0.2; done; rm /state/end; exit 3", {
          volumeMounts,
        }),
      ],
    });
    await agent.putManifest("stays.json", pod("stays", { containers: [box("main")] }));
    await this.view.ready(this.#static("stays"));
  }

  /** What one partition needs. */
  async prepare(): Promise<void> {
    const { agent } = this.#member;
    for (const name of ["leaves", "vanishes", "again"]) {
      await this.view.createPod(name, { containers: [box("main")] });
    }
    await agent.putManifest("goes.json", pod("goes", { containers: [box("main")] }));
    await this.#touch("moody", "up", true);
    const names = [
      "steady",
      "moody",
      "ends",
      "leaves",
      "vanishes",
      "again",
      ...["stays", "goes"].map((n) => this.#static(n)),
    ];
    for (const name of names) this.#objects.set(name, await this.view.ready(name));
  }

  /** The running containers, by their pods' names. */
  async running(): Promise<Map<string, SeenPod>> {
    const found = new Map<string, SeenPod>();
    for (const one of await this.#member.agent.pods()) {
      if (one.containers.every(({ state }) => state === "running")) found.set(one.name, one);
    }
    return found;
  }

  /** Things happen on both sides. */
  async meanwhile(before: ReadonlyMap<string, SeenPod>): Promise<void> {
    const { agent, nodeName } = this.#member;
    await this.view.nodeCondition("Ready", "Unknown");
    await this.view.podUntil("steady", "to be taken for not ready", hasCondition("Ready", "False"));
    // On the other side.
    await this.view.deletePod("leaves");
    await this.view.deletePod("vanishes", 0);
    await this.view.deletePod("again", 0);
    // The scheduler gives an unreachable node nothing more; somebody who names it does.
    await this.view.createPod("again", { nodeName, containers: [box("main")] });
    await this.view.createPod("comes", { nodeName, containers: [box("main")] });
    // On this side.
    await agent.removeManifest("goes.json");
    await agent.putManifest("new.json", pod("new", { containers: [box("main")] }));
    await this.#touch("moody", "up", false);
    await this.#touch("ends", "end", true);
    const seen = await agent.until("static pods to come and go, and a container to be restarted", (pods) => {
      const ready = (name: string) => pods.find((one) => one.name === name);
      const restarted = ready("ends")?.containers[0];
      const old = before.get("ends")?.containers[0];
      return ready(this.#static("new"))?.containers[0]?.state === "running" && !ready(this.#static("goes")) &&
        restarted?.state === "running" && restarted.restarts === (old?.restarts ?? 0) + 1 && pods;
    }, patience);
    for (const name of ["steady", "moody", "leaves", "vanishes", "again", this.#static("stays")]) {
      assert.deepEqual(unchanging(seen.find((one) => one.name === name)), unchanging(before.get(name)), name);
    }
    assert(!seen.some(({ name }) => name === "comes"));
  }

  /** All that happened is known on both sides, and nothing was done twice. */
  async after(before: ReadonlyMap<string, SeenPod>): Promise<void> {
    const { admin, agent, nodeName } = this.#member;
    const healed = systemClock.now();
    await this.view.nodeCondition("Ready", "True");
    await waitFor("the lease to be renewed", async () => {
      const lease = await admin.get(resources.leases, { namespace: "kube-node-lease", name: nodeName }, { signal });
      return Date.parse(lease.spec?.renewTime ?? "") > healed;
    }, { within: patience });
    await waitFor("the taint to go", async () => !isTainted(await this.view.node()), { within: patience });
    for (const name of ["leaves", this.#static("goes")]) await this.view.gone(name);
    for (const name of ["steady", "ends", "again", "comes", "stays", "new"]) {
      await this.view.ready(name === "stays" || name === "new" ? this.#static(name) : name);
    }
    await this.view.podUntil("moody", "not to be ready", hasCondition("ContainersReady", "False"));
    const expected = ["steady", "moody", "ends", "again", "comes", this.#static("stays"), this.#static("new")].sort();
    const seen = await agent.until("the pods that are wanted, each once, and no other", (pods) => {
      return pods.map(({ name }) => name).join() === expected.join() && pods;
    }, patience);
    for (const name of ["steady", "moody", this.#static("stays")]) {
      assert.deepEqual(unchanging(seen.find((one) => one.name === name)), unchanging(before.get(name)), name);
    }
    await waitFor("the statuses to be those of the node", async () => {
      for (const name of expected) {
        const object = await this.view.pod(name);
        const own = seen.find((one) => one.name === name);
        const status = object?.status?.containerStatuses?.[0];
        assert.deepEqual(
          { name, id: status?.containerID, restarts: status?.restartCount, ip: object?.status?.podIP },
          {
            name,
            id: `containerd://${own?.containers[0]?.id}`,
            restarts: own?.containers[0]?.restarts,
            ip: own?.ip,
          },
        );
      }
      return true;
    }, { within: patience });
    for (const name of ["steady", "moody", "ends", this.#static("stays")]) {
      assert.equal((await this.view.pod(name))?.metadata?.uid, this.#objects.get(name)?.metadata?.uid, name);
    }
    assert.notEqual((await this.view.pod("again"))?.metadata?.uid, this.#objects.get("again")?.metadata?.uid);
    await agent.removeManifest("new.json");
    for (const name of ["again", "comes"]) await this.view.deletePod(name);
    for (const name of ["again", "comes", this.#static("new")]) await this.view.gone(name);
  }

  #static(name: string): string {
    return `${name}-${this.#member.nodeName}`;
  }

  /** Makes a file in a pod's volume, or removes it. */
  async #touch(name: string, file: string, there: boolean): Promise<void> {
    const uid = (await this.view.pod(name))?.metadata?.uid;
    const path = `${this.#member.agent.paths.kubelet}/pods/${uid}/volumes/kubernetes.io~empty-dir/state/${file}`;
    await waitFor(`${path} to be ${there ? "made" : "removed"}`, async () => {
      await (there ? Deno.writeTextFile(path, "") : Deno.remove(path));
      return true;
    }, { within: patience });
  }
}

/** What of a pod must not change while it runs. */
function unchanging(pod: SeenPod | undefined): unknown {
  return pod && { uid: pod.uid, sandbox: pod.sandbox, ip: pod.ip, containers: pod.containers };
}

function isTainted(node: Node | undefined): boolean {
  return !node || (node.spec?.taints ?? []).some(({ key }) => key === unreachable);
}
