import assert from "@assert";
import { systemClock } from "../../mod/base/clock.ts";
import { createDenoHost } from "../../mod/base/deno_host.ts";
import { silent } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import { emptyDirPlugin } from "./empty_dir.ts";
import { createVolumeManager } from "./manager.ts";
import { downwardApiPlugin } from "./projected.ts";

Deno.test({
  name: "real machine: tmpfs, downwardAPI, sub paths and tear-down after a restart",
  ignore: Deno.uid() !== 0,
  async fn() {
    const host = createDenoHost();
    const base = await Deno.realPath(await Deno.makeTempDir({ prefix: "denolet-volumes-" }));
    // The root directory may be reached through a link.
    await host.mkdir(`${base}/real`);
    await host.symlink("real", `${base}/root`);
    const rootDir = `${base}/root`;
    await using scope = new Scope("volumes");
    const make = () =>
      createVolumeManager({
        host,
        clock: systemClock,
        log: silent,
        scope,
        rootDir,
        plugins: [emptyDirPlugin(), downwardApiPlugin({ allocatable: () => ({}) })],
      });
    const pod: BoundPod = {
      metadata: { name: "p", namespace: "ns", uid: "u1", labels: { a: "1" } },
      spec: {
        securityContext: { fsGroup: 4321 },
        containers: [{ name: "c", volumeMounts: ["m", "d", "i"].map((name) => ({ name, mountPath: `/${name}` })) }],
        volumes: [
          { name: "m", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
          { name: "d", emptyDir: {} },
          { name: "i", downwardAPI: { items: [{ path: "l", fieldRef: { fieldPath: "metadata.labels" } }] } },
        ],
      },
    };
    const signal = new AbortController().signal;
    try {
      const manager = make();
      const mounted = await manager.mountPod(pod, signal);
      const path = (name: string) => mounted.get(name)?.hostPath ?? assert.fail(name);
      const memory = await host.stat(path("m"));
      assert.deepEqual([memory?.mode, memory?.gid], [0o3777, 4321]);
      await assert.rejects(host.write(`${path("m")}/big`, new Uint8Array(2 << 20)), /no space/);
      assert.equal(await host.readText(`${path("i")}/l`), 'a="1"');
      assert.deepEqual([(await host.stat(`${path("i")}/l`))?.gid, (await host.stat(`${path("i")}/l`))?.mode], [
        4321,
        0o644,
      ]);
      pod.metadata.labels = { a: "2" };
      await make().mountPod(pod, signal);
      assert.equal(await host.readText(`${path("i")}/l`), 'a="2"');
      const below = (await host.mounts()).filter((m) => m.target.startsWith(base));
      assert.equal(below.length, 2, "a second set-up mounts nothing anew");
      // A container's tricks: links out of the volume.
      await host.write(`${base}/outside`, "keep");
      await host.symlink(base, `${path("d")}/out`);
      await host.write(`${path("d")}/f`, "inside");
      const volume = mounted.get("d") ?? assert.fail("d");
      const at = await manager.prepareSubPath({ pod, container: "c", index: 0, volume, subPath: "f", signal });
      assert.equal(await host.readText(at), "inside");
      const inMemory = mounted.get("m") ?? assert.fail("m");
      const made = await manager.prepareSubPath({
        ...{ pod, container: "c", signal },
        index: 2,
        volume: inMemory,
        subPath: "n",
      });
      assert.deepEqual([(await host.stat(made))?.mode, (await host.stat(made))?.gid], [0o3777, 4321]);
      await assert.rejects(
        manager.prepareSubPath({ pod, container: "c", index: 1, volume, subPath: "out/outside", signal }),
        /leads outside the volume/,
      );
      // Another life of the agent knows nothing but the disk.
      const next = make();
      assert.deepEqual(await next.podsOnDisk(), ["u1"]);
      await next.unmountPod("u1", signal);
      assert.equal(await next.hasVolumes("u1"), false);
      assert.deepEqual((await host.readDir(`${rootDir}/pods/u1`)).map((e) => e.name), []);
      assert.equal(await host.readText(`${base}/outside`), "keep");
    } finally {
      const left = (await host.mounts()).filter((m) => m.target.startsWith(`${base}/`));
      for (const { target } of left.reverse()) await host.unmount(target);
      await host.removeTree(base);
    }
  },
});
