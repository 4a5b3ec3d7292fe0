import assert from "@assert";
import type { Pod } from "../../mod/kube/types.ts";
import { exists } from "../../scripts/lib/files.ts";
import { type Observer, pod, shell, untilEnded, withObserver } from "./support.ts";

const idMap = (map: string) => map.trim().split(/\s+/).map(Number);

/** A pod with ids of its own, that mounts one volume of each kind which an agent without an API server can give. */
function mapped(name: string): Pod {
  const volumeMounts = ["empty", "memory", "facts", "all"].map((volume) => ({
    name: volume,
    mountPath: `/v/${volume}`,
  }));
  return pod(name, {
    hostUsers: false,
    containers: [{
      ...shell("main", ""),
      command: untilEnded,
      volumeMounts,
      securityContext: { runAsUser: 1000, runAsGroup: 1000 },
    }],
    securityContext: { fsGroup: 2000 },
    volumes: [
      { name: "empty", emptyDir: {} },
      { name: "memory", emptyDir: { medium: "Memory" } },
      { name: "facts", downwardAPI: { items: [{ path: "name", fieldRef: { fieldPath: "metadata.name" } }] } },
      {
        name: "all",
        projected: {
          sources: [{ downwardAPI: { items: [{ path: "uid", fieldRef: { fieldPath: "metadata.uid" } }] } }],
        },
      },
    ],
  });
}

/** The range in a pod's record. */
async function record(seen: Observer, uid: string): Promise<{ hostId: number; length: number }> {
  const path = `${seen.node.agent.paths.kubelet}/pods/${uid}/userns`;
  const { uidMappings, gidMappings } = JSON.parse(await Deno.readTextFile(path));
  assert.deepEqual(uidMappings, gidMappings);
  assert.equal(uidMappings.length, 1);
  assert.equal(uidMappings[0].containerId, 0);
  return uidMappings[0];
}

Deno.test("containerd 2 with idmapped mounts: pods have ids of their own and work with their volumes", async () => {
  await withObserver({
    name: "t-userns",
    containerd: "v2",
    newRunc: true,
  }, async (seen) => {
    for (const name of ["one", "two"]) await seen.node.agent.putManifest(`${name}.json`, mapped(name));
    const [one, two] = [await seen.ready("one"), await seen.ready("two")];
    assert.ok(one && two);
    const uids = [await seen.uid("one"), await seen.uid("two")] as const;
    const ranges = [await record(seen, uids[0]), await record(seen, uids[1])] as const;
    assert.notEqual(ranges[0].hostId, ranges[1].hostId);
    for (const { hostId, length } of ranges) {
      assert.equal(length, 65_536);
      assert.ok(hostId >= 65_536 && hostId % 65_536 === 0);
    }
    for (const map of ["uid_map", "gid_map"]) {
      const found = idMap(await seen.out("one", `cat /proc/self/${map}`));
      assert.deepEqual(found, [0, ranges[0].hostId, 65_536]);
    }
    // Inside the ids are those of the spec, and files lie on the node with the same ones.
    assert.equal(await seen.out("one", "id -u; id -g; id -G"), "1000\n1000\n1000 2000");
    const { pid } = (await seen.detail((await seen.running("one")).id)).info;
    const status = await Deno.readTextFile(`/proc/${pid}/status`);
    assert.match(status, new RegExp(`^Uid:\\s+${ranges[0].hostId + 1000}\\s`, "m"));
    for (const volume of ["empty", "memory"]) {
      assert.equal(
        await seen.out("one", `cd /v/${volume} && echo x >f && stat -c '%u %g' . f`),
        "0 2000\n1000 2000",
        volume,
      );
      const file = await Deno.stat(
        `${seen.node.agent.paths.kubelet}/pods/${uids[0]}/volumes/kubernetes.io~empty-dir/${volume}/f`,
      );
      assert.deepEqual([file.uid, file.gid], [1000, 2000]);
    }
    assert.equal(await seen.out("one", "cat /v/facts/name"), "one-t-userns");
    assert.equal(await seen.out("one", "cat /v/all/uid"), uids[0]);
    assert.match(await seen.out("one", "cat /etc/hosts; stat -c %u:%g /etc/hosts"), /one-t-userns\n0:0$/);
    assert.equal(await seen.out("one", "echo bye >/dev/termination-log; cat /dev/termination-log"), "bye");

    // Over a restart of the agent the ids stay, for containers that start after it too.
    await seen.node.agent.kill();
    seen.node.agent.start();
    await seen.node.agent.healthy();
    const before = await seen.running("two");
    const { pid: first } = (await seen.detail(before.id)).info;
    Deno.kill(first, "SIGKILL");
    await seen.until("two", "to be restarted", (s) => {
      const [container] = s.containerStatuses ?? [];
      return container?.restartCount === 1 && container.ready;
    });
    assert.deepEqual(idMap(await seen.out("two", "cat /proc/self/uid_map")), [0, ranges[1].hostId, 65_536]);
    assert.deepEqual(await record(seen, uids[1]), ranges[1]);

    await seen.node.agent.drain();
    await seen.nothingLeft();
    assert.equal(await exists(`${seen.node.agent.paths.kubelet}/pods/${uids[0]}`), false);
  });
});

for (const containerd of ["debian", "v2"] as const) {
  Deno.test(`containerd ${containerd} with a runc that cannot map ids: the pod is refused, others run`, async () => {
    await withObserver({
      name: `t-nouserns-${containerd}`,
      containerd,
    }, async (seen) => {
      await seen.node.agent.putManifest("mapped.json", mapped("mapped"));
      await seen.node.agent.putManifest(
        "plain.json",
        pod("plain", { containers: [shell("main", "", { command: untilEnded })] }),
      );
      const name = "mapped";
      await seen.ready("plain");
      const { message } = await seen.event(name, "FailedCreatePodSandBox");
      assert.equal(
        message,
        "Failed to create pod sandbox: can't set `spec.hostUsers: false`, runtime does not support user namespaces",
      );
      assert.deepEqual(await seen.sandboxes(name), []);
      assert.equal((await seen.status(name))?.phase, "Pending");
      await seen.node.agent.drain();
      await seen.nothingLeft();
    });
  });
}
