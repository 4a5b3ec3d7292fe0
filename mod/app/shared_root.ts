import { messageOf } from "../base/errors.ts";
import type { Host, MountEntry } from "../base/host.ts";
import type { Logger } from "../base/log.ts";

/** The mount that a path lies on: the innermost, and of several at one place the newest. */
export function mountOf(path: string, mounts: readonly MountEntry[]): MountEntry | undefined {
  let found: MountEntry | undefined;
  for (const mount of mounts) {
    const holds = mount.target === "/" || mount.target === path || path.startsWith(`${mount.target}/`);
    if (holds && mount.target.length >= (found?.target.length ?? 0)) found = mount;
  }
  return found;
}

/**
 * Makes sure that mounts below the root directory reach containers, and those of containers the node, as mount
 * propagation needs (features.md A10, C33): where the directory lies on a mount that is not shared, it is mounted over
 * itself, and that mount is made shared. Mounts of others are left as they are. A failure is logged: pods without mount
 * propagation work all the same.
 */
export async function shareRoot(
  host: Pick<Host, "mounts" | "mount" | "unmount" | "realPath">,
  rootDir: string,
  log: Logger,
): Promise<void> {
  try {
    const real = await host.realPath(rootDir);
    const mounts = await host.mounts();
    if (mountOf(real, mounts)?.propagation.some((field) => field.startsWith("shared:"))) return;
    const hidden = mounts.find((m) => m.target.startsWith(`${real}/`));
    if (hidden) {
      log.warn(
        "the root directory is not on a shared mount, and cannot be put on one while something is mounted in it",
        {
          rootDir: real,
          mount: hidden.target,
          remedy: "end the pods and start the agent again, if pods need mount propagation",
        },
      );
      return;
    }
    await host.mount({ source: real, target: real, options: ["bind"] });
    try {
      await host.mount({ source: "none", target: real, options: ["rshared"] });
    } catch (thrown) {
      await host.unmount(real);
      throw thrown;
    }
    log.info("the root directory was mounted over itself, as a shared mount, for mount propagation", {
      rootDir: real,
      undo: `umount ${real}, when no pod runs`,
    });
  } catch (thrown) {
    log.warn("the root directory cannot be made a shared mount; pods with mount propagation may not start", {
      rootDir,
      error: messageOf(thrown),
    });
  }
}
