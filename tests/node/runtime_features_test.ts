import assert from "@assert";
import { run } from "../../scripts/lib/command.ts";
import { namesIn } from "../../scripts/lib/files.ts";
import { Observer, pod, shell, untilEnded, withObserver } from "./support.ts";

/** Ends the pods through their manifests and waits until nothing of them is left. */
async function drained(seen: Observer): Promise<void> {
  await seen.node.agent.drain();
  await seen.nothingLeft();
}

const running = { command: untilEnded };

Deno.test("containerd 2: images as volumes, with sub paths; one that is not there keeps the container waiting", async () => {
  await withObserver({ name: "t-imgvol", containerd: "v2" }, async (seen) => {
    const image = (name: string, reference: string) => ({ name, image: { reference, pullPolicy: "IfNotPresent" } });
    await seen.node.agent.putManifest(
      "image.json",
      pod("image", {
        containers: [{
          ...shell("main", "", running),
          volumeMounts: [
            { name: "box", mountPath: "/box" },
            { name: "box", mountPath: "/bin2", subPath: "bin" },
          ],
        }],
        volumes: [image("box", "localhost/busybox:1")],
      }),
    );
    await seen.node.agent.putManifest(
      "missing.json",
      pod("missing", {
        containers: [{ ...shell("main", "", running), volumeMounts: [{ name: "no", mountPath: "/no" }] }],
        volumes: [{ name: "no", image: { reference: "localhost/no-such:1", pullPolicy: "Never" } }],
      }),
    );
    await seen.ready("image");
    assert.equal(await seen.out("image", "test -x /box/bin/busybox && test -x /bin2/busybox && echo yes"), "yes");
    assert.notEqual((await seen.exec("image", "touch /box/x")).code, 0);
    await seen.until("missing", "to wait for the image of its volume", (status) => {
      return Observer.of(status, "main").state?.waiting?.reason === "ErrImageNeverPull";
    });
    await drained(seen);
  });
});

Deno.test("emptyDir of huge pages is a hugetlbfs; without a request for any it is refused", async () => {
  await withObserver({ name: "t-huge" }, async (seen) => {
    const [size] = (await namesIn("/sys/kernel/mm/hugepages")).filter((name) => name === "hugepages-2048kB");
    if (size === undefined) return;
    const volumes = [{ name: "h", emptyDir: { medium: "HugePages" } }];
    const mounts = { volumeMounts: [{ name: "h", mountPath: "/h" }] };
    // None are set aside on this machine: a request of none asks for the size alone.
    const resources = { limits: { "hugepages-2Mi": "0", cpu: "1", memory: "64Mi" } };
    await seen.node.agent.putManifest(
      "huge.json",
      pod("huge", { containers: [{ ...shell("main", "", running), ...mounts, resources }], volumes }),
    );
    await seen.node.agent.putManifest(
      "none.json",
      pod("none", { containers: [{ ...shell("main", "", running), ...mounts }], volumes }),
    );
    await seen.node.agent.putManifest(
      "many.json",
      pod("many", {
        containers: [shell("main", "", {
          ...running,
          resources: { limits: { "hugepages-2Mi": "1024Gi", cpu: "1", memory: "64Mi" } },
        })],
      }),
    );
    await seen.ready("huge");
    assert.match(await seen.out("huge", "grep ' /h ' /proc/mounts"), /hugetlbfs .*pagesize=2M/);
    await seen.event("none", "FailedMount", /hugePages storage requested, but there is no resource request/);
    assert.match((await seen.phase("many", "Failed")).message ?? "", /hugepages-2Mi/);
    await drained(seen);
  });
});

Deno.test("containerd 1.6: an image volume and Strict groups are refused in words", async () => {
  await withObserver({ name: "t-oldfeat" }, async (seen) => {
    await seen.node.agent.putManifest(
      "image.json",
      pod("image", {
        containers: [{ ...shell("main", "", running), volumeMounts: [{ name: "box", mountPath: "/box" }] }],
        volumes: [{ name: "box", image: { reference: "localhost/busybox:1" } }],
      }),
    );
    await seen.node.agent.putManifest(
      "strict.json",
      pod("strict", {
        containers: [shell("main", "", running)],
        securityContext: { supplementalGroupsPolicy: "Strict" },
      }),
    );
    await seen.node.agent.putManifest(
      "recursive.json",
      pod("recursive", {
        containers: [{
          ...shell("main", "", running),
          volumeMounts: [{ name: "v", mountPath: "/v", readOnly: true, recursiveReadOnly: "Enabled" }],
        }],
        volumes: [{ name: "v", emptyDir: {} }],
      }),
    );
    const image = await seen.until("image", "to be refused", (status) => {
      return Observer.of(status, "main").state?.waiting?.reason === "CreateContainerConfigError";
    });
    assert.equal(
      Observer.of(image, "main").state?.waiting?.message,
      "the container runtime cannot mount images as volumes (box): containerd 2.1, or CRI-O 1.31, is needed",
    );
    const strict = await seen.phase("strict", "Failed");
    assert.equal(strict.reason, "SupplementalGroupsPolicyNotSupported");
    const recursive = await seen.until("recursive", "to be refused", (status) => {
      return Observer.of(status, "main").state?.waiting?.reason === "CreateContainerConfigError";
    });
    assert.match(
      Observer.of(recursive, "main").state?.waiting?.message ?? "",
      /requested recursive read-only mode, but it is not supported by the runtime/,
    );
    const unread = (await seen.records()).filter((one) => `${one.msg}`.startsWith("a fact of the node cannot be read"));
    assert.deepEqual(unread, [], "the agent may read sysfs under its scoped permissions");
    await drained(seen);
  });
});

Deno.test("containerd 2: recursive read-only mounts, Strict groups, an unmasked /proc in a user namespace", async () => {
  await withObserver({ name: "t-newfeat", containerd: "v2", newRunc: true }, async (seen) => {
    const directory = `${seen.node.agent.paths.root}/nested`;
    await Deno.mkdir(`${directory}/inner`, { recursive: true });
    await run(["mount", "-t", "tmpfs", "tmpfs", `${directory}/inner`]);
    try {
      const at = (name: string, recursiveReadOnly: string) => ({
        name: "v",
        mountPath: `/${name}`,
        readOnly: true,
        recursiveReadOnly,
      });
      await seen.node.agent.putManifest(
        "recursive.json",
        pod("recursive", {
          containers: [{
            ...shell("main", "", running),
            volumeMounts: [at("off", "Disabled"), at("on", "Enabled"), at("maybe", "IfPossible")],
          }],
          securityContext: {
            runAsUser: 0,
            runAsGroup: 1000,
            supplementalGroups: [3000],
            supplementalGroupsPolicy: "Strict",
          },
          volumes: [{ name: "v", hostPath: { path: directory } }],
        }),
      );
      const proc = (name: string, procMount: string) =>
        pod(name, {
          hostUsers: false,
          containers: [{ ...shell("main", "", running), securityContext: { procMount } }],
        });
      await seen.node.agent.putManifest("masked.json", proc("masked", "Default"));
      await seen.node.agent.putManifest("unmasked.json", proc("unmasked", "Unmasked"));
      await seen.ready("recursive");
      for (const [path, writable] of [["off", true], ["on", false], ["maybe", false]] as const) {
        const { code, out } = await seen.exec("recursive", `touch /${path}/inner/f`);
        assert.equal(code === 0, writable, `${path}: ${out}`);
      }
      assert.equal(await seen.out("recursive", "id -G"), "1000 3000");

      for (const [name, masked] of [["masked", true], ["unmasked", false]] as const) {
        await seen.ready(name);
        const { runtimeSpec } = (await seen.detail((await seen.running(name)).id)).info;
        assert.equal((runtimeSpec.linux.maskedPaths ?? []).includes("/proc/kcore"), masked, name);
        const mounts = await seen.out(name, "grep -c ' /proc/' /proc/mounts || true");
        assert.equal(Number(mounts) > 0, masked, `${name}: ${mounts} mounts below /proc`);
      }
      await drained(seen);
    } finally {
      await run(["umount", `${directory}/inner`]);
    }
  });
});
