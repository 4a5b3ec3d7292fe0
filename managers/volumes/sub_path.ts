import { KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import { pathBelow, podSubPath } from "../../mod/pod/config/paths.ts";
import type { SubPaths } from "./types.ts";

type Request = Parameters<SubPaths["prepareSubPath"]>[0];

/**
 * Where a sub path really is, relative to the volume's true path: links are resolved, and refused when they lead out
 * of the volume. The answer holds no link, so that the mount, which follows none, fails if one is slipped in after.
 */
async function resolveInside(host: Host, root: string, subPath: string): Promise<string> {
  const parts = subPath.split("/").filter((p) => p !== "" && p !== ".");
  let at = root;
  for (const [i, part] of parts.entries()) {
    const next = `${at}/${part}`;
    const info = await host.lstat(next);
    if (!info) {
      const below = [at.slice(root.length + 1), ...parts.slice(i)];
      return below.filter((p) => p !== "").join("/");
    }
    if (info.kind !== "symlink") {
      at = next;
      continue;
    }
    if (!await host.stat(next)) {
      throw new KubeletError("Volume", `${parts.slice(0, i + 1).join("/")} is a symbolic link that leads nowhere`);
    }
    at = await host.realPath(next);
    if (at !== root && !at.startsWith(`${root}/`)) {
      throw new KubeletError(
        "Volume",
        `${parts.slice(0, i + 1).join("/")} is a symbolic link that leads outside the volume`,
      );
    }
  }
  return at.slice(root.length + 1);
}

/** See SubPaths.prepareSubPath. */
export async function prepareSubPath(host: Host, rootDir: string, request: Request): Promise<string> {
  const { pod, container, index, volume, subPath } = request;
  const { uid, namespace, name } = pod.metadata;
  const what = `subPath ${
    JSON.stringify(subPath)
  } of volume "${volume.name}" (pod ${namespace}/${name}, container ${container})`;
  try {
    pathBelow("", subPath, "subPath");
    if (!Number.isSafeInteger(index) || index < 0) throw new KubeletError("Internal", `mount index ${index}`);
    const target = podSubPath(rootDir, uid, volume.name, container, index);
    const directory = target.slice(0, target.lastIndexOf("/"));
    await host.mkdir(directory, { mode: 0o750 });
    const real = `${await host.realPath(directory)}/${index}`;
    if ((await host.mounts()).some((m) => m.target === real)) return target;
    const root = await host.realPath(volume.hostPath);
    const info = await host.stat(root);
    if (info?.kind !== "directory") {
      throw new KubeletError("Volume", `the volume is no directory but ${info?.kind ?? "missing"}`);
    }
    const path = await resolveInside(host, root, subPath);
    // What an earlier try left may be of the wrong kind (a file for a directory).
    await host.removeTree(target);
    await host.mountBelow({ root, path, target, mode: info.mode & 0o7777 });
    return target;
  } catch (thrown) {
    throw new KubeletError("Volume", `failed to prepare ${what}: ${messageOf(thrown)}`, { cause: thrown });
  }
}
