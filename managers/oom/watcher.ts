import { isAborted, messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Journal } from "../../mod/base/journal.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { EventSink } from "../../mod/kube/events.ts";
import type { ObservedContainer, ObservedPod } from "../../mod/pod/observed.ts";
import { type OomKill, OomParser } from "./parse.ts";

export interface OomWatcherOptions {
  readonly host: Pick<Host, "kernelLog">;
  readonly log: Logger;
  readonly events: EventSink;
  readonly journal: Pick<Journal, "note">;
  /** The pods as the runtime shows them. */
  readonly pods: () => Iterable<ObservedPod>;
}

/** What a control group belongs to. */
interface Owner {
  readonly pod: ObservedPod;
  /** Undefined for the pod's own group and its sandbox's. */
  readonly container: ObservedContainer | undefined;
}

/** Containers whose kills are counted are forgotten when there are more of them than this. */
const mostCounted = 2000;

/**
 * Watches the kernel's log for out-of-memory kills (features.md F15). A kill for want of memory on the machine is the node
 * event SystemOOM; one in a container is told by the runtime, as its reason OOMKilled, when it ends the container: here the
 * process is named in the pod's journal, also where the container lives on, as when a child process was killed.
 */
export class OomWatcher {
  readonly #o: OomWatcherOptions;
  readonly #counts = new Map<string, number>();
  #ofSystem = 0;

  constructor(options: OomWatcherOptions) {
    this.#o = options;
  }

  /** Kills in a container since the agent's start (container_oom_events_total). */
  eventsOf(containerId: string): number {
    return this.#counts.get(containerId) ?? 0;
  }

  /** Kills for want of memory on the machine since the agent's start. */
  get systemEvents(): number {
    return this.#ofSystem;
  }

  /** Watches until the signal aborts. A machine whose kernel log cannot be read is told, and does without. */
  async run(signal: AbortSignal): Promise<void> {
    const parser = new OomParser();
    try {
      for await (const line of this.#o.host.kernelLog(signal)) {
        const kill = parser.feed(line);
        if (kill) this.#tell(kill);
      }
    } catch (thrown) {
      if (signal.aborted && isAborted(thrown)) return;
      this.#o.log.warn("the kernel's log cannot be read: out-of-memory kills of the node are not told", {
        error: messageOf(thrown),
        remedy: "give the agent /dev/kmsg; containers that run out of memory are told by the runtime all the same",
      });
    }
  }

  #tell(kill: OomKill): void {
    const { events, journal, log } = this.#o;
    const { process, pid, limitOf, group } = kill;
    const victim = process === "" || pid === 0 ? "" : `, victim process: ${process}, pid: ${pid}`;
    const owner = this.#ownerOf(group);
    if (limitOf === "/") {
      this.#ofSystem++;
      events.node({ type: "Warning", reason: "SystemOOM", message: `System OOM encountered${victim}` });
    }
    log.info("the kernel killed a process for want of memory", {
      process,
      pid,
      cgroup: group,
      limitOf,
      ...(owner ? { pod: `${owner.pod.name}_${owner.pod.namespace}`, podUid: owner.pod.uid } : {}),
      ...(owner?.container ? { container: owner.container.name } : {}),
    });
    if (!owner) return;
    const { pod, container } = owner;
    if (container) this.#count(container.id);
    const { namespace, name, uid } = pod;
    journal.note("OOMKill", {
      pod: { namespace, name, uid },
      ...(container ? { container: container.name } : {}),
      reason: "OOMKilled",
      message: `the kernel killed process ${process || "?"} (pid ${pid}): ${this.#cause(limitOf, owner)}`,
    }, container?.id);
  }

  #cause(limitOf: string, { pod, container }: Owner): string {
    if (limitOf === "/") return "the machine was out of memory";
    const limited = this.#ownerOf(limitOf);
    if (limited?.pod.uid !== pod.uid) return `the group ${limitOf} was at its memory limit`;
    return limited.container
      ? `container ${container?.name ?? ""} was at its memory limit`
      : "the pod was at its memory limit";
  }

  /** The pod, and its container if it is one's, that a group's path names. */
  #ownerOf(path: string): Owner | undefined {
    const names = path.split("/").map((part) => part.replace(/\.(scope|slice)$/, ""));
    const ids = new Set(names.flatMap((name) => name.split(/[-:]/).at(-1) ?? []));
    // Slices write a UID's dashes as underscores, and begin with the names of those above.
    const podNames = names.map((name) => name.replaceAll("_", "-"));
    for (const pod of this.#o.pods()) {
      const container = pod.containers.find((c) => ids.has(c.id));
      if (container) return { pod, container };
      const own = `pod${pod.uid.replaceAll("_", "-")}`;
      if (podNames.some((name) => name === own || name.endsWith(`-${own}`))) return { pod, container: undefined };
    }
    return undefined;
  }

  #count(id: string): void {
    if (this.#counts.size >= mostCounted && !this.#counts.has(id)) {
      const alive = new Set([...this.#o.pods()].flatMap((pod) => pod.containers.map((c) => c.id)));
      for (const known of this.#counts.keys()) if (!alive.has(known)) this.#counts.delete(known);
    }
    this.#counts.set(id, this.eventsOf(id) + 1);
  }
}
