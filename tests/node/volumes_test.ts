import assert from "@assert";
import type { Pod, Volume, VolumeMount } from "../../mod/kube/types.ts";
import { exists, remove } from "../../scripts/lib/files.ts";
import { mountsBelow } from "../../scripts/node/mounts.ts";
import { versions } from "./harness.ts";
import { box, pod, withObserver } from "./support.ts";

const downwardItems = [
  { path: "labels", fieldRef: { fieldPath: "metadata.labels" } },
  { path: "deep/er/annotations", fieldRef: { fieldPath: "metadata.annotations" }, mode: 0o400 },
  { path: "name", fieldRef: { fieldPath: "metadata.name" } },
  { path: "cpu", resourceFieldRef: { containerName: "main", resource: "limits.cpu", divisor: "1m" } },
];

/** A pod with one container that mounts one volume at /v. */
function withVolume(name: string, volume: Omit<Volume, "name">, mount: Partial<VolumeMount> = {}): Pod {
  return pod(name, {
    containers: [box("main", { volumeMounts: [{ name: "v", mountPath: "/v", ...mount }] })],
    volumes: [{ name: "v", ...volume }],
  });
}

function manifests(host: string): Pod[] {
  const path = (name: string, type: string) => ({ hostPath: { path: `${host}/${name}`, type } });
  return [
    pod("scratch", {
      containers: [
        box("main", {
          volumeMounts: [{ name: "disk", mountPath: "/disk" }, { name: "memory", mountPath: "/memory" }],
          resources: { limits: { memory: "64Mi" } },
        }),
        box("other", { volumeMounts: [{ name: "disk", mountPath: "/disk", readOnly: true }] }),
      ],
      volumes: [
        { name: "disk", emptyDir: { sizeLimit: "8Mi" } },
        { name: "memory", emptyDir: { medium: "Memory", sizeLimit: "4Mi" } },
      ],
    }),
    withVolume("hp-any", path("directory", "")),
    withVolume("hp-directory", path("directory", "Directory"), { readOnly: true }),
    withVolume("hp-directory-make", path("made/deep", "DirectoryOrCreate")),
    withVolume("hp-file", path("file", "File")),
    withVolume("hp-file-make", path("made-file", "FileOrCreate")),
    withVolume("hp-socket", path("socket", "Socket")),
    withVolume("hp-char", { hostPath: { path: "/dev/null", type: "CharDevice" } }),
    ...["Directory", "File", "Socket", "CharDevice", "BlockDevice"].map((type) =>
      withVolume(`no-${type.toLowerCase()}`, path("missing", type))
    ),
    withVolume("not-directory", path("file", "Directory")),
    withVolume("not-file", path("directory", "File")),
    pod("downward", {
      containers: [box("main", {
        resources: { limits: { cpu: "250m" } },
        volumeMounts: [{ name: "d", mountPath: "/d" }, { name: "p", mountPath: "/p" }],
      })],
      volumes: [
        { name: "d", downwardAPI: { defaultMode: 0o440, items: downwardItems } },
        { name: "p", projected: { sources: [{ downwardAPI: { items: downwardItems.slice(2) } }] } },
      ],
    }, { labels: { b: "2", a: "1" }, annotations: { note: 'with "quotes"\nand a line' } }),
    pod("sub-path", {
      containers: [box("main", {
        env: [{ name: "POD", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } }],
        volumeMounts: [
          { name: "v", mountPath: "/whole" },
          { name: "v", mountPath: "/part", subPath: "a/b" },
          { name: "v", mountPath: "/named", subPathExpr: "$(POD)" },
          { name: "h", mountPath: "/one", subPath: "file", readOnly: true },
        ],
      })],
      volumes: [{ name: "v", emptyDir: {} }, { name: "h", hostPath: { path: host } }],
    }),
    pod("sub-path-escape", {
      initContainers: [
        box("init", {
          command: ["sh", "-c", `ln -s ${host} /v/out; ln -s / /v/root`],
          volumeMounts: [{ name: "v", mountPath: "/v" }],
        }),
      ],
      containers: [box("main", { volumeMounts: [{ name: "v", mountPath: "/v", subPath: "out" }] })],
      volumes: [{ name: "v", emptyDir: {} }],
    }),
    withVolume("hostile", { emptyDir: {} }),
  ];
}

for (const version of versions) {
  Deno.test(`volumes on containerd ${version}`, async (t) => {
    const host = await Deno.makeTempDir({ prefix: "denolet-volumes-" });
    await Deno.mkdir(`${host}/directory`);
    await Deno.writeTextFile(`${host}/directory/precious`, "data");
    await Deno.writeTextFile(`${host}/file`, "file\n");
    const socket = Deno.listen({ transport: "unix", path: `${host}/socket` });
    try {
      await withObserver({ name: `vo-${version}`, containerd: version }, async (seen) => {
        const { agent } = seen.node;
        for (const one of manifests(host)) await agent.putManifest(`${one.metadata?.name}.yaml`, one);

        await t.step("emptyDir on disk and in memory", async () => {
          await seen.ready("scratch");
          await seen.out("scratch", "echo x > /disk/f; echo y > /memory/f");
          assert.equal(await seen.out("scratch", "cat /disk/f", "other"), "x");
          assert.notEqual((await seen.exec("scratch", "touch /disk/g", "other")).code, 0);
          assert.equal(await seen.out("scratch", "stat -c %a /disk; stat -c %a /memory"), "777\n1777");
          assert.match(await seen.out("scratch", "grep ' /memory ' /proc/mounts"), / tmpfs .*size=4096k/);
          assert.doesNotMatch(await seen.out("scratch", "cat /proc/mounts"), / \/disk tmpfs /);
          assert.notEqual((await seen.exec("scratch", "head -c 5000000 /dev/zero > /memory/big")).code, 0);
        });

        await t.step("hostPath of every type", async () => {
          for (const name of ["any", "directory", "directory-make", "file", "file-make", "socket", "char"]) {
            await seen.ready(`hp-${name}`);
          }
          assert.equal(await seen.out("hp-any", "cat /v/precious"), "data");
          await seen.out("hp-any", "echo new > /v/new");
          assert.equal(await Deno.readTextFile(`${host}/directory/new`), "new\n");
          assert.notEqual((await seen.exec("hp-directory", "touch /v/x")).code, 0);
          assert.ok((await Deno.stat(`${host}/made/deep`)).isDirectory);
          assert.equal(((await Deno.stat(`${host}/made/deep`)).mode ?? 0) & 0o777, 0o755);
          assert.equal(await seen.out("hp-file", "cat /v"), "file");
          assert.equal(((await Deno.stat(`${host}/made-file`)).mode ?? 0) & 0o777, 0o644);
          await seen.out("hp-socket", "test -S /v");
          await seen.out("hp-char", "test -c /v && echo x > /v");
        });

        await t.step("hostPath of the wrong type: the pod waits and is told why", async () => {
          const words = {
            directory: "a directory",
            file: "a file",
            socket: "a socket file",
            chardevice: "a character device",
            blockdevice: "a block device",
          };
          for (const [type, word] of Object.entries(words)) {
            await seen.event(
              `no-${type}`,
              "FailedMount",
              new RegExp(`hostPath type check failed: ${host}/missing is not ${word}`),
            );
          }
          await seen.event("not-directory", "FailedMount", /is not a directory/);
          await seen.event("not-file", "FailedMount", /is not a file/);
          const status = await seen.phase("no-directory", "Pending");
          assert.equal(status.containerStatuses?.[0]?.state?.waiting?.reason, "ContainerCreating");
          assert.equal((await seen.containers("no-directory")).length, 0);
          // what it waits for comes
          await Deno.mkdir(`${host}/missing`);
          await seen.until(
            "no-directory",
            "to be ready once the directory is there",
            (one) => one.conditions?.find((c) => c.type === "Ready")?.status === "True",
            180_000,
          );
        });

        await t.step("downwardAPI: contents, modes, the way it is written", async () => {
          await seen.ready("downward");
          assert.equal(await seen.out("downward", "cat /d/labels"), 'a="1"\nb="2"');
          const annotations = await seen.out("downward", "cat /d/deep/er/annotations");
          assert.ok(annotations.includes('note="with \\"quotes\\"\\nand a line"'), annotations);
          assert.ok(annotations.includes('kubernetes.io/config.source="file"'), annotations);
          assert.equal(await seen.out("downward", "cat /d/name"), seen.full("downward"));
          assert.equal(await seen.out("downward", "cat /d/cpu"), "250");
          assert.equal(
            await seen.out("downward", "stat -L -c %a /d/labels /d/deep/er/annotations /p/name"),
            "440\n400\n644",
          );
          assert.match(
            await seen.out("downward", "readlink /d/name; readlink /d/..data"),
            /^\.\.data\/name\n\.\.\d{4}_/,
          );
          assert.equal(await seen.out("downward", "cat /p/name /p/cpu"), `${seen.full("downward")}250`);
          assert.notEqual((await seen.exec("downward", "touch /d/x")).code, 0);
        });

        await t.step("subPath and subPathExpr", async () => {
          await seen.ready("sub-path");
          await seen.out("sub-path", "echo p > /part/f; echo n > /named/f");
          assert.equal(await seen.out("sub-path", `cat /whole/a/b/f /whole/${seen.full("sub-path")}/f`), "p\nn");
          assert.equal(await seen.out("sub-path", "cat /one"), "file");
          assert.notEqual((await seen.exec("sub-path", "echo x > /one")).code, 0);
        });

        await t.step("a subPath that a link would lead out of the volume is refused", async () => {
          const status = await seen.until("sub-path-escape", "a refusal", (one) => {
            return one.containerStatuses?.[0]?.state?.waiting?.reason === "CreateContainerConfigError";
          });
          assert.match(status.containerStatuses?.[0]?.state?.waiting?.message ?? "", /subPath/i);
          assert.equal((await seen.containers("sub-path-escape", "main")).length, 0);
        });

        await t.step("hostile links in a volume: tear-down stays in the pod's directory", async () => {
          await seen.ready("hostile");
          const uid = await seen.uid("hostile");
          const volume = `${agent.paths.kubelet}/pods/${uid}/volumes/kubernetes.io~empty-dir/v`;
          await seen.out(
            "hostile",
            `ln -s ${host} /v/out; ln -s / /v/root; ln -s .. /v/up; mkdir -p /v/a/b; ln -s ${host}/directory /v/a/b/c; ` +
              "mkfifo /v/fifo; mkdir /v/shut; touch /v/shut/f; chmod 0 /v/shut; ln -s loop /v/loop; " +
              `touch "/v/$(printf 'a\\nb')" "/v/$(printf '\\377')"`,
          );
          // and one in the place of the volume's own directory
          await Deno.mkdir(`${agent.paths.kubelet}/pods/${uid}/volumes/kubernetes.io~empty-dir`, { recursive: true });
          await Deno.symlink(
            `${host}/directory`,
            `${agent.paths.kubelet}/pods/${uid}/volumes/kubernetes.io~empty-dir/link`,
          );
          assert.ok(await exists(volume));
          await agent.removeManifest("hostile.yaml");
          await seen.gone("hostile", uid);
          assert.equal(await Deno.readTextFile(`${host}/directory/precious`), "data");
          assert.ok(await exists(`${host}/file`));
        });

        await t.step("at the end nothing is left, and the node's own files are there", async () => {
          assert.ok(await agent.drain());
          await seen.nothingLeft();
          // the root directory is a mount of its own, so that mounts below it can be shared with containers
          const { kubelet } = agent.paths;
          const mounts = mountsBelow(await Deno.readTextFile("/proc/self/mountinfo"), kubelet);
          assert.deepEqual(mounts.filter((path) => path !== kubelet), []);
          assert.equal(await Deno.readTextFile(`${host}/directory/precious`), "data");
          assert.equal(await Deno.readTextFile(`${host}/file`), "file\n");
          for (const made of ["made/deep", "made-file", "directory/new"]) {
            assert.ok(await exists(`${host}/${made}`), made);
          }
        });
      });
    } finally {
      socket.close();
      await remove(host);
    }
  });
}
