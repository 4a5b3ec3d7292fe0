import assert from "@assert";
import { resources } from "../../mod/kube/api/resources.ts";
import { isApiNotFound } from "../../mod/kube/api/types.ts";
import type { Pod } from "../../mod/kube/types.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { TestCa } from "../../scripts/cluster/pki.ts";
import type { SeenPod } from "../../scripts/node/pods.ts";
import { box, pod } from "../node/support.ts";
import { type ClusterNode, withClusterNode } from "./harness.ts";
import { ClusterView, patience } from "./support.ts";

const { signal } = new AbortController();
const taint = { key: "test", value: "1", effect: "PreferNoSchedule" };
const config = { nodeStatusUpdateFrequency: "2s", nodeLeaseDurationSeconds: 8, registerWithTaints: [taint] };
const flags = ["--node-labels=mine=1"];

Deno.test("a node whose API server, object or credentials are away: its pods go on, and it comes back", async (t) => {
  await withClusterNode({ name: "node-faults", config, flags, start: false }, async (member) => {
    const { plane, admin, agent, nodeName } = member;
    const view = new ClusterView(member);
    const steady = new Steady(member, "api");
    const lives = (name: string) => agent.until(`${name} to run`, (pods) => running(pods, name), patience);
    /** Whether the node's object is as the agent was told to make it. */
    const registered = async (): Promise<string | undefined> => {
      const { metadata, spec } = await view.nodeCondition("Ready", "True");
      assert.equal(metadata?.labels?.mine, "1");
      assert(spec?.taints?.some(({ key, value, effect }) => `${key}=${value}:${effect}` === "test=1:PreferNoSchedule"));
      return metadata?.uid;
    };

    await t.step("the API server is not there at the start: static pods run, and are told when it comes", async () => {
      // Controllers that are cut off in the middle of their own start take minutes.
      await waitFor("the default service account", async () => {
        const { items } = await admin.list(resources.serviceAccounts, { namespace: "default", signal });
        return items.length > 0;
      }, { within: patience });
      await plane.stopComponent("kube-apiserver", "SIGKILL");
      await agent.putManifest("first.json", pod("first", { containers: [box("main")] }));
      agent.start();
      await agent.healthy(patience);
      await lives(`first-${nodeName}`);
      await plane.startComponent("kube-apiserver");
      await registered();
      await view.ready(`first-${nodeName}`);
    });

    await t.step("it is not there when the agent starts anew: pods of before go on under their objects", async () => {
      await view.createPod("api", { nodeName, containers: [box("main")] });
      await view.createPod("leaves", { nodeName, containers: [box("main")] });
      await view.ready("leaves");
      await steady.remember();
      await plane.stopComponent("kube-apiserver", "SIGKILL");
      await agent.kill("SIGKILL");
      agent.start();
      await agent.healthy(patience);
      await agent.putManifest("second.json", pod("second", { containers: [box("main")] }));
      await lives(`second-${nodeName}`);
      await steady.goesOn();
      await lives("leaves");
      await plane.startComponent("kube-apiserver");
      await view.deletePod("leaves");
      await view.gone("leaves");
      await view.ready(`second-${nodeName}`);
      await steady.sameObject();
    });

    await t.step("the node's object is deleted: pods go on; anew after a restart, with labels and taints", async () => {
      const before = await registered();
      await steady.remember();
      await admin.delete(resources.nodes, { name: nodeName }, { signal });
      await logged(member, /restart the agent to register anew/);
      await agent.putManifest("third.json", pod("third", { containers: [box("main")] }));
      await lives(`third-${nodeName}`);
      await steady.goesOn();
      await assert.rejects(admin.get(resources.nodes, { name: nodeName }, { signal }), isApiNotFound);
      await agent.kill();
      agent.start();
      await agent.healthy(patience);
      assert.notEqual(await registered(), before);
      await view.ready(`third-${nodeName}`);
      await steady.sameObject();
    });

    const foreign = await TestCa.create("foreign");
    const node = { name: `system:node:${nodeName}`, groups: ["system:nodes"] };
    const wrong = {
      "has expired": [await plane.ca.issue({ ...node, lifetimeMs: -60_000 }), /certificate has expired/],
      "nobody vouches for": [await foreign.issue(node), /Unauthorized/],
      "is another node's": [
        await plane.ca.issue({ ...node, name: "system:node:other" }),
        /system:node:other/,
      ],
    } as const;
    for (const [what, [pair, words]] of Object.entries(wrong)) {
      await t.step(`a certificate that ${what}: told; pods go on; all is well with a good one`, async () => {
        await steady.remember();
        const from = (await Deno.readTextFile(agent.paths.log)).length;
        await Deno.writeTextFile(`${plane.dir}/node-${nodeName}.key`, pair.key);
        await Deno.writeTextFile(`${plane.dir}/node-${nodeName}.crt`, pair.cert);
        await logged(member, words, from);
        await agent.putManifest("fourth.json", pod("fourth", { containers: [box("main")] }));
        await lives(`fourth-${nodeName}`);
        await view.createPod("waits", { nodeName, containers: [box("main")] });
        await steady.goesOn();
        await plane.nodeKubeconfig(nodeName);
        await view.ready("waits");
        await view.ready(`fourth-${nodeName}`);
        await registered();
        await steady.sameObject();
        await agent.removeManifest("fourth.json");
        await view.deletePod("waits");
        for (const name of ["waits", `fourth-${nodeName}`]) await view.gone(name);
      });
    }
  });
});

/** A pod that nothing is to happen to. */
class Steady {
  readonly #member: ClusterNode;
  readonly #view: ClusterView;
  #here: SeenPod | undefined;
  #there: Pod | undefined;

  constructor(member: ClusterNode, readonly name: string) {
    this.#member = member;
    this.#view = new ClusterView(member);
  }

  async remember(): Promise<void> {
    this.#there = await this.#view.ready(this.name);
    this.#here = (await this.#member.agent.pods()).find(({ name }) => name === this.name);
    assert(this.#here);
  }

  /** The sandbox and the containers are those of before. */
  async goesOn(): Promise<void> {
    assert.deepEqual((await this.#member.agent.pods()).find(({ name }) => name === this.name), this.#here);
  }

  /** And the object is the one of before and tells so. */
  async sameObject(): Promise<void> {
    await this.goesOn();
    const { metadata, status } = await this.#view.ready(this.name);
    assert.equal(metadata?.uid, this.#there?.metadata?.uid);
    assert.deepEqual(status?.containerStatuses, this.#there?.status?.containerStatuses);
  }
}

function running(pods: readonly SeenPod[], name: string): boolean {
  return pods.some((one) => one.name === name && one.containers.some(({ state }) => state === "running"));
}

/** Waits until the agent's log says something, after so many characters of it. */
async function logged({ agent }: ClusterNode, words: RegExp, from = 0): Promise<void> {
  await waitFor(`the log to say ${words}`, async () => {
    return words.test((await Deno.readTextFile(agent.paths.log)).slice(from));
  }, { within: patience });
}
