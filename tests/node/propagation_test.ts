import assert from "@assert";
import { mountsBelow } from "../../scripts/node/mounts.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { versions } from "./harness.ts";
import { patience, pod, shell, untilEnded, withObserver } from "./support.ts";

const running = { command: untilEnded };

for (const containerd of versions) {
  Deno.test(`mount propagation on containerd ${containerd}: both ways as asked for, nothing left after the pod`, async () => {
    await withObserver({ name: `t-prop-${containerd}`, containerd }, async (seen) => {
      const { kubelet } = seen.node.agent.paths;
      const mount = (mountPropagation?: string) => ({
        volumeMounts: [{ name: "v", mountPath: "/v", ...(mountPropagation ? { mountPropagation } : {}) }],
      });
      await seen.node.agent.putManifest(
        "prop.json",
        pod("prop", {
          containers: [
            {
              ...shell("main", "", running),
              ...mount("Bidirectional"),
              securityContext: { privileged: true },
            },
            { ...shell("slave", "", running), ...mount("HostToContainer") },
            { ...shell("private", "", running), ...mount() },
          ],
          volumes: [{ name: "v", emptyDir: {} }],
        }),
      );
      await seen.ready("prop");
      const uid = await seen.uid("prop");
      const volume = `${kubelet}/pods/${uid}/volumes/kubernetes.io~empty-dir/v`;
      await seen.out("prop", "mkdir /v/in && mount -t tmpfs tmpfs /v/in && echo x >/v/in/f");
      assert.equal(await Deno.readTextFile(`${volume}/in/f`), "x\n", "the node sees the container's mount");
      assert.equal(await seen.out("prop", "cat /v/in/f", "slave"), "x");
      assert.notEqual((await seen.exec("prop", "cat /v/in/f", "private")).code, 0);
      await seen.node.agent.drain();
      await seen.nothingLeft();
      await waitFor("the container's mount to be gone", async () => {
        const left = mountsBelow(await Deno.readTextFile("/proc/self/mountinfo"), `${kubelet}/pods`);
        return left.length === 0;
      }, { within: patience });
    });
  });
}
