import { NamespaceMode, type RuntimeHandler } from "../../cri/gen/runtime_pb.ts";
import { KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import { isMissing } from "../../mod/base/host_error.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Random } from "../../mod/base/random.ts";
import { Semaphore } from "../../mod/base/semaphore.ts";
import { podFullName } from "../../mod/kube/pod.ts";
import type { BoundPod } from "../../mod/kube/types.ts";
import type { UserNamespaceInit } from "../../mod/pod/config/init.ts";
import { rootPaths, usernsFile } from "../../mod/pod/config/paths.ts";
import { type IdRanges, nodeIds } from "./range.ts";
import { parseRecord, recordText } from "./record.ts";
import type { UserNamespaces } from "./types.ts";

export interface UserNamespacesOptions {
  readonly host: Pick<Host, "readText" | "write" | "stat" | "readDir" | "run">;
  readonly random: Random;
  readonly log: Logger;
  /** Such as `/var/lib/kubelet`. */
  readonly rootDir: string;
  readonly idsPerPod: number;
  readonly maxPods: number;
  /** The runtime's handlers, as it reports them. */
  readonly handlers: () => readonly RuntimeHandler[];
}

/**
 * Gives each pod with `hostUsers: false` a range of the node's ids. The records in the pods' directories are the truth:
 * a range is taken for as long as the directory with its record is there, across restarts of the agent, and free again
 * once it is removed, which happens after the pod's containers are gone.
 */
export function createUserNamespaces(options: UserNamespacesOptions): UserNamespaces {
  return new Manager(options);
}

class Manager implements UserNamespaces {
  readonly #o: UserNamespacesOptions;
  /** One at a time: two pods that ask at once must not get the same range. */
  readonly #turn = new Semaphore(1);
  /** Pod UID → first id of its range; undefined when its directory holds no record. */
  readonly #known = new Map<string, number | undefined>();
  #ranges: IdRanges | undefined;

  constructor(options: UserNamespacesOptions) {
    this.#o = options;
  }

  async of(pod: BoundPod, handler: string): Promise<UserNamespaceInit> {
    if (pod.spec.hostUsers !== false) return { mode: NamespaceMode.NODE };
    this.#checkHandler(handler);
    const { host } = this.#o;
    return await this.#turn.use(async () => {
      const ranges = this.#ranges ??= await nodeIds(host, this.#o);
      const first = await this.#recorded(pod.metadata.uid, ranges) ?? await this.#allocate(pod, ranges);
      this.#known.set(pod.metadata.uid, first);
      const ids = [{ hostId: first, containerId: 0, length: ranges.length }];
      return { mode: NamespaceMode.POD, uids: ids, gids: ids };
    });
  }

  #checkHandler(handler: string): void {
    const refuse = (what: string): never => {
      throw new KubeletError("BadPod", `can't set \`spec.hostUsers: false\`, ${what}`);
    };
    const handlers = this.#o.handlers();
    const runtime = handler === "" ? "runtime" : `RuntimeClass handler "${handler}"`;
    // A runtime that tells of no handlers is too old for user namespaces.
    const found = handlers.find((h) => h.name === handler);
    if (handlers.length > 0 && !found) refuse(`${runtime} is not known to the runtime`);
    if (found?.features?.userNamespaces !== true) refuse(`${runtime} does not support user namespaces`);
  }

  /** The first id of a pod's record; undefined without one. */
  async #recorded(uid: string, ranges: IdRanges): Promise<number | undefined> {
    const path = usernsFile(this.#o.rootDir, uid);
    let text: string;
    try {
      text = await this.#o.host.readText(path);
    } catch (thrown) {
      if (isMissing(thrown)) return undefined;
      throw thrown;
    }
    try {
      return parseRecord(text, ranges);
    } catch (thrown) {
      throw new KubeletError(
        "BadConfig",
        `the record of a user namespace ${path} cannot be used: ${messageOf(thrown)}; remove the pod, then the file, ` +
          "so that no other pod gets its ids",
        { cause: thrown },
      );
    }
  }

  async #allocate(pod: BoundPod, ranges: IdRanges): Promise<number> {
    const { host, rootDir, random, log } = this.#o;
    const { uid } = pod.metadata;
    await this.#look(uid, ranges);
    const taken = new Set(this.#known.values());
    // From a random place on: ids that a pod has just given up, of which files may be left somewhere, are not next.
    const start = Math.floor(random() * ranges.count);
    for (let i = 0; i < ranges.count; i++) {
      const first = ranges.first + (start + i) % ranges.count * ranges.length;
      if (taken.has(first)) continue;
      await host.write(usernsFile(rootDir, uid), recordText(first, ranges.length), { mode: 0o600, atomic: true });
      log.detail(4, "user namespace given", { pod: podFullName(pod), podUid: uid, first, length: ranges.length });
      return first;
    }
    throw new KubeletError("BadConfig", `all ${ranges.count} ranges of ids for user namespaces are taken by pods`);
  }

  /** Brings what is known up to date with the pods' directories. Rejects when one of the records cannot be read. */
  async #look(self: string, ranges: IdRanges): Promise<void> {
    const { host, rootDir } = this.#o;
    const entries = await host.readDir(rootPaths.pods(rootDir));
    const there = new Set(entries.filter((e) => e.kind === "directory").map((e) => e.name));
    for (const uid of [...this.#known.keys()]) if (!there.has(uid)) this.#known.delete(uid);
    for (const uid of there) {
      if (uid !== self && !this.#known.has(uid)) this.#known.set(uid, await this.#recorded(uid, ranges));
    }
  }
}
