import assert from "@assert";
import { freePort } from "../../scripts/node/agent_node.ts";
import { versions } from "./harness.ts";
import { box, Observer, pod, withObserver } from "./support.ts";

for (const version of versions) {
  Deno.test(`images on containerd ${version}`, async (t) => {
    await withObserver({ name: `im-${version}`, containerd: version }, async (seen) => {
      const { agent } = seen.node;
      // a registry that refuses the connection: nothing leaves the machine
      const nowhere = `127.0.0.1:${freePort()}`;
      const missing = `${nowhere}/missing:1`;
      const all = [
        pod("there", { containers: [box("main"), box("never", { imagePullPolicy: "Never" })] }),
        pod("never", { containers: [box("main", { image: missing, imagePullPolicy: "Never" }), box("other")] }),
        pod("refused", {
          containers: [box("main", { image: missing, imagePullPolicy: "IfNotPresent" }), box("other")],
        }),
        pod("always", { containers: [box("main", { image: `${nowhere}/busybox:1`, imagePullPolicy: "Always" })] }),
        pod("invalid", { containers: [box("main", { image: "localhost/UPPER:1" })] }),
        pod("init", { initContainers: [box("init", { image: missing })], containers: [box("main")] }),
      ];
      for (const one of all) await agent.putManifest(`${one.metadata?.name}.yaml`, one);
      const waits = async (name: string, reason: string, container = "main") => {
        const status = await seen.until(name, `to wait with ${reason}`, (one) => {
          return Observer.of(one, container).state?.waiting?.reason === reason;
        });
        return Observer.of(status, container);
      };

      await t.step("an image that is there is used, and its reference is told", async () => {
        const status = await seen.ready("there");
        const { message } = await seen.event("there", "Pulled");
        assert.equal(
          message,
          'Container image "localhost/busybox:1" already present on machine and can be accessed by the pod',
        );
        for (const one of status.containerStatuses ?? []) {
          assert.equal(one.image, "localhost/busybox:1");
          assert.match(one.imageID ?? "", /sha256:[0-9a-f]{64}$/);
        }
      });

      await t.step("policy Never without the image", async () => {
        const one = await waits("never", "ErrImageNeverPull");
        assert.equal(
          one.state?.waiting?.message,
          `Container image "${missing}" is not present with pull policy of Never`,
        );
        await seen.event("never", "ErrImageNeverPull", /not present with pull policy of Never/);
        await seen.event("never", "Failed", /^Error: ErrImageNeverPull$/);
        await seen.until("never", "its other container to run", (status) => Observer.of(status, "other").ready);
      });

      await t.step("a registry that refuses: the error, then back-off, the pod's other containers run", async () => {
        await seen.event("refused", "Pulling", new RegExp(`^Pulling image "${missing}"$`));
        await seen.event("refused", "Failed", /^Failed to pull image .*connection refused/);
        await seen.event("refused", "Failed", /^Error: ErrImagePull$/);
        const one = await waits("refused", "ImagePullBackOff");
        assert.match(
          one.state?.waiting?.message ?? "",
          new RegExp(`^Back-off pulling image "${missing}": ErrImagePull: .*connection refused`),
        );
        await seen.event("refused", "BackOff", new RegExp(`^Back-off pulling image "${missing}"`));
        await seen.event("refused", "Failed", /^Error: ImagePullBackOff$/);
        const status = await seen.until("refused", "its other container", (one) => Observer.of(one, "other").ready);
        assert.equal(status.phase, "Pending");
        assert.equal(Observer.of(status, "main").restartCount, 0);
      });

      await t.step("policy Always asks the registry", async () => {
        await seen.event("always", "Pulling");
        await waits("always", "ImagePullBackOff");
      });

      await t.step("a name that is none", async () => {
        const one = await waits("invalid", "InvalidImageName");
        assert.match(one.state?.waiting?.message ?? "", /UPPER/);
        await seen.event("invalid", "InspectFailed");
        assert.ok(!(await seen.events("invalid")).some((event) => event.reason === "Pulling"));
      });

      await t.step("an init container's image holds up the pod", async () => {
        await waits("init", "ImagePullBackOff", "init");
        const status = await seen.phase("init", "Pending");
        assert.equal(Observer.of(status, "main").state?.waiting?.reason, "PodInitializing");
        assert.equal((await seen.containers("init")).length, 0);
      });

      await t.step("at the end nothing is left", async () => {
        assert.ok(await agent.drain());
        await seen.nothingLeft();
      });
    });
  });
}
