import type { Logger } from "../../mod/base/log.ts";
import type { ContainerAllocateResponse } from "../../mod/kube/gen/plugins/device_plugin_pb.ts";
import type { PluginOptions } from "../../mod/pod/config/container.ts";

/**
 * What plugins answered for one container, joined. Of what two of them set the first one's stays; that they differ is
 * logged.
 */
export function joinOptions(answers: readonly ContainerAllocateResponse[], log: Logger): PluginOptions {
  const once = <T>(what: string, list: readonly (readonly [string, T, string])[]): T[] => {
    const seen = new Map<string, string>();
    return list.flatMap(([key, value, text]) => {
      const before = seen.get(key);
      if (before === undefined) {
        seen.set(key, text);
        return [value];
      }
      if (before !== text) {
        log.error(`plugins differ about ${what} of a container`, { what: key, got: before, not: text });
      }
      return [];
    });
  };
  const pairs = (what: string, of: (answer: ContainerAllocateResponse) => Record<string, string>) =>
    once(
      what,
      answers.flatMap((answer) =>
        Object.entries(of(answer)).toSorted(([a], [b]) => a < b ? -1 : 1).map(([key, value]) =>
          [key, [key, value] as const, value] as const
        )
      ),
    );
  return {
    envs: pairs("an environment variable", ({ envs }) => envs).map(([name, value]) => ({ name, value })),
    devices: once(
      "a device",
      answers.flatMap(({ devices }) =>
        devices.map(({ containerPath, hostPath, permissions }) =>
          [containerPath, { containerPath, hostPath, permissions }, hostPath] as const
        )
      ),
    ),
    mounts: once(
      "a mount",
      answers.flatMap(({ mounts }) =>
        mounts.map(({ containerPath, hostPath, readOnly }) =>
          [containerPath, { containerPath, hostPath, readonly: readOnly }, hostPath] as const
        )
      ),
    ),
    annotations: Object.fromEntries(pairs("an annotation", ({ annotations }) => annotations)),
    cdiDevices: [...new Set(answers.flatMap(({ cdiDevices }) => cdiDevices.map(({ name }) => name)))],
  };
}
