import type { FileKind, Host } from "../../mod/base/host.ts";
import { volumeKind, type VolumePlugin, VolumeSpecError } from "./plugin.ts";
import { KubeletError } from "../../mod/base/errors.ts";

const wanted: ReadonlyMap<string, { kind: FileKind; words: string }> = new Map([
  ["DirectoryOrCreate", { kind: "directory", words: "a directory" }],
  ["Directory", { kind: "directory", words: "a directory" }],
  ["FileOrCreate", { kind: "file", words: "a file" }],
  ["File", { kind: "file", words: "a file" }],
  ["Socket", { kind: "socket", words: "a socket file" }],
  ["CharDevice", { kind: "charDevice", words: "a character device" }],
  ["BlockDevice", { kind: "blockDevice", words: "a block device" }],
]);

/** Checks, and makes where the type says so, what a hostPath volume points at (features.md section 11). */
async function checkType(host: Host, path: string, type: string): Promise<void> {
  if (type === "") return;
  const want = wanted.get(type);
  if (!want) {
    throw new VolumeSpecError(`${type} is an invalid volume type: use ${[...wanted.keys()].join(", ")} or none`);
  }
  const info = await host.stat(path);
  if (!info && type === "DirectoryOrCreate") return await host.mkdir(path, { mode: 0o755 });
  if (!info && type === "FileOrCreate") return await host.write(path, "", { mode: 0o644 });
  if (info?.kind !== want.kind) {
    throw new KubeletError("Volume", `hostPath type check failed: ${path} is not ${want.words}`);
  }
}

/** Paths of the node. Nothing is ever torn down: what is there is the node's. */
export function hostPathPlugin(): VolumePlugin {
  return {
    name: "kubernetes.io/host-path",
    live: false,
    foreign: true,
    canSupport: (volume) => volumeKind(volume) === "hostPath",
    async setUp({ host, volume }) {
      const path = volume.hostPath?.path ?? "";
      if (path.split("/").includes("..")) {
        throw new VolumeSpecError(`invalid HostPath \`${path}\`: must not contain '..'`);
      }
      if (!path.startsWith("/") || path.includes("\0")) {
        throw new VolumeSpecError(`invalid HostPath \`${path}\`: must be an absolute path`);
      }
      await checkType(host, path, volume.hostPath?.type ?? "");
      return { name: volume.name, hostPath: path, readOnly: false, selinuxRelabel: false };
    },
    tearDown: () => Promise.resolve(),
  };
}
