import { isNotFound, type RuntimeService } from "../../cri/api.ts";
import { ContainerState, type ContainerStatus } from "../../cri/gen/runtime_pb.ts";
import { isAborted, messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import { isMissing } from "../../mod/base/host_error.ts";
import type { Logger } from "../../mod/base/log.ts";
import {
  containerIdOfLegacyLink,
  containerLogDir,
  containerLogFile,
  legacyLogLink,
  podLogDirIfAny,
  type PodNames,
  restartCountOfLog,
  uidOfLogDir,
} from "../../mod/pod/config/paths.ts";
import { runtimeLabels } from "../../mod/pod/config/labels.ts";

import type { ContainerLogFiles } from "../runtime/types.ts";

export interface LogFilesOptions {
  readonly host: Pick<
    Host,
    "mkdir" | "readDir" | "stat" | "lstat" | "readLink" | "symlink" | "remove" | "removeTree"
  >;
  readonly runtime: Pick<RuntimeService, "containerStatus">;
  readonly log: Logger;
  /** podLogsDir, by default /var/log/pods. */
  readonly podLogsDir: string;
  /** Where legacy links are, /var/log/containers. */
  readonly linkDir: string;
}

/** A pod's log directory is `<namespace>_<name>_<uid>`; anything else beside it is not ours to remove. */
const logDirShape = /^[^_]+_[^_]+_[^_]+$/;

/** The files and links of container logs on the node (runtime-contract.md sections 2 and 21). */
export class LogFiles implements ContainerLogFiles {
  readonly #o: LogFilesOptions;

  constructor(options: LogFilesOptions) {
    this.#o = options;
  }

  /** Makes the pod's and the container's log directory, mode 0755. */
  async prepare(pod: PodNames, container: string): Promise<void> {
    await this.#o.host.mkdir(containerLogDir(this.#o.podLogsDir, pod, container), { mode: 0o755 });
  }

  /**
   * The restart count that only the log files tell: the highest number of a log, rotated ones too, plus one; 0 without
   * any. So a runtime that lost its containers does not lose their logs. A directory that cannot be read counts as 0.
   */
  async nextRestartCount(pod: PodNames, container: string): Promise<number> {
    const dir = containerLogDir(this.#o.podLogsDir, pod, container);
    let next = 0;
    for (const { name, kind } of await this.#list(dir)) {
      const count = kind === "directory" ? undefined : restartCountOfLog(name);
      if (count !== undefined) next = Math.max(next, count + 1);
    }
    return next;
  }

  async #list(dir: string): ReturnType<Host["readDir"]> {
    try {
      return await this.#o.host.readDir(dir);
    } catch (thrown) {
      if (!isMissing(thrown)) {
        this.#o.log.warn("Log directory cannot be read", { dir, error: messageOf(thrown) });
      }
      return [];
    }
  }

  /** Makes the legacy link to a container's log, if the log is there; a link of another container is replaced. */
  async link(pod: PodNames, container: string, containerId: string, restartCount: number): Promise<void> {
    const { host, podLogsDir, linkDir } = this.#o;
    const target = containerLogFile(podLogsDir, pod, container, restartCount);
    if (!await host.stat(target)) return;
    const link = legacyLogLink(linkDir, pod, container, containerId);
    await host.mkdir(linkDir, { mode: 0o755 });
    const found = await host.lstat(link);
    if (found) {
      if (found.kind === "symlink" && await host.readLink(link) === target) return;
      await host.remove(link);
    }
    await host.symlink(target, link);
  }

  /** Makes the legacy links of those containers that run, for an earlier agent may have ended before it did. */
  async adopt(
    pod: PodNames,
    containers: readonly {
      readonly id: string;
      readonly name: string;
      readonly state: string;
      readonly restartCount: number;
    }[],
  ): Promise<void> {
    for (const { id, name, state, restartCount } of containers) {
      if (state === "running") await this.link(pod, name, id, restartCount);
    }
  }

  /** Removes the legacy links of these containers, and those of the pod's containers that the runtime has lost. */
  async unlink(pod: PodNames, containers: readonly { readonly id: string; readonly name: string }[]): Promise<void> {
    const { host, linkDir, podLogsDir } = this.#o;
    for (const { id, name } of containers) await host.remove(legacyLogLink(linkDir, pod, name, id));
    const dir = podLogDirIfAny(podLogsDir, pod);
    if (dir === undefined) return;
    const own = `${dir}/`;
    for (const { name, kind } of await this.#list(linkDir)) {
      if (kind !== "symlink" || !name.startsWith(`${pod.metadata.name}_${pod.metadata.namespace}_`)) continue;
      const link = `${linkDir}/${name}`;
      if ((await host.readLink(link)).startsWith(own)) await host.remove(link);
    }
  }

  /**
   * Removes the logs of a container that is about to be removed, rotated ones too, and its legacy link. Rejects with
   * code Host when that fails: the container must then stay, so that its logs are not forgotten.
   */
  async removeContainerLogs(status: ContainerStatus): Promise<void> {
    const { host, podLogsDir, linkDir } = this.#o;
    const slash = status.logPath.lastIndexOf("/");
    const [dir, file] = [status.logPath.slice(0, slash), status.logPath.slice(slash + 1)];
    // The path comes back from the runtime: only what lies below our own directory is removed.
    if (file !== "" && `${dir}/`.startsWith(`${podLogsDir}/`) && !`${dir}/`.includes("/../")) {
      for (const { name, kind } of await this.#list(dir)) {
        if (kind !== "directory" && (name === file || name.startsWith(`${file}.`))) await host.remove(`${dir}/${name}`);
      }
    }
    const name = status.labels[runtimeLabels.podName];
    const namespace = status.labels[runtimeLabels.podNamespace];
    const container = status.labels[runtimeLabels.containerName];
    if (!name || !namespace || !container) return;
    const pod = { metadata: { name, namespace, uid: status.labels[runtimeLabels.podUid] ?? "" } };
    await host.remove(legacyLogLink(linkDir, pod, container, status.id));
  }

  /** Removes a pod's log directory with all in it. */
  async removePodLogs(pod: PodNames): Promise<void> {
    const dir = podLogDirIfAny(this.#o.podLogsDir, pod);
    if (dir !== undefined) await this.#o.host.removeTree(dir);
  }

  /** Removes the log directories of pods that may go. Each failure is logged; the rest goes on. */
  async removeLogDirs(mayGo: (podUid: string) => boolean, signal: AbortSignal): Promise<void> {
    const { host, log, podLogsDir } = this.#o;
    for (const { name, kind } of await this.#list(podLogsDir)) {
      if (signal.aborted) return;
      if (kind !== "directory" || !logDirShape.test(name) || !mayGo(uidOfLogDir(name))) continue;
      try {
        await host.removeTree(`${podLogsDir}/${name}`);
        log.detail(4, "Removed the logs of a pod that is gone", { dir: name });
      } catch (thrown) {
        log.warn("Pod log directory cannot be removed", { dir: name, error: messageOf(thrown) });
      }
    }
  }

  /**
   * Removes legacy links that lead nowhere, unless their container has not exited: while a log is rotated it is gone
   * for a moment. With a runtime that does not answer nothing is removed.
   */
  async sweepLinks(signal: AbortSignal): Promise<void> {
    const { host, log, linkDir } = this.#o;
    for (const { name, kind } of await this.#list(linkDir)) {
      if (signal.aborted) return;
      const link = `${linkDir}/${name}`;
      if (kind !== "symlink" || !name.endsWith(".log")) continue;
      try {
        if (await host.stat(link) || await this.#isAlive(containerIdOfLegacyLink(name), signal)) continue;
        await host.remove(link);
        log.detail(4, "Removed a dead log link", { link });
      } catch (thrown) {
        if (isAborted(thrown)) throw thrown;
        log.warn("Dead log link cannot be removed", { link, error: messageOf(thrown) });
      }
    }
  }

  async #isAlive(id: string | undefined, signal: AbortSignal): Promise<boolean> {
    if (id === undefined) return false;
    try {
      const { status } = await this.#o.runtime.containerStatus(id, { signal });
      return status !== undefined && status.state !== ContainerState.CONTAINER_EXITED;
    } catch (thrown) {
      if (isNotFound(thrown)) return false;
      throw thrown;
    }
  }
}
