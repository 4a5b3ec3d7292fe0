import { Backoff } from "../../mod/base/backoff.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { Deadline } from "../../mod/base/deadline.ts";
import { abortedBy, asError, isAborted, KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Journal } from "../../mod/base/journal.ts";
import type { Scope } from "../../mod/base/scope.ts";
import type { EventSink } from "../../mod/kube/events.ts";
import { podRef } from "../../mod/kube/pod.ts";
import type { BoundPod, Volume } from "../../mod/kube/types.ts";
import { podDir, podVolumeDir } from "../../mod/pod/config/paths.ts";
import { HangGuard } from "./hang_guard.ts";
import { Operations } from "./operations.ts";
import { type VolumeOnDisk, type VolumePlugin, VolumeSpecError } from "./plugin.ts";
import { prepareSubPath } from "./sub_path.ts";
import {
  hasVolumesOnDisk,
  podsWithVolumes,
  removeSubPaths,
  removeVolumeDirectories,
  unmountAndRemove,
  volumesOnDisk,
} from "./tear_down.ts";
import type { MountedVolume, SubPaths, VolumeCounts, VolumeManager, VolumeOperation } from "./types.ts";
import { unsupported, volumesToMount, waitError } from "./wanted.ts";

/** Back-off of failing set-ups (features.md section 11), milliseconds. */
const firstDelay = 500;
const longestDelay = 122_000;
/** How long a pod waits for its volumes before the wait is given up, and begun anew by its next sync (H2). */
const waitLimit = 123_000;
/** How long a pod waits for newer contents of a volume that it has already. */
const refreshLimit = 10_000;

export interface VolumeManagerOptions {
  readonly host: Host;
  readonly clock: Clock;
  readonly log: Logger;
  /** Owns operations that outlive their caller. */
  readonly scope: Scope;
  /** Such as `/var/lib/kubelet`. */
  readonly rootDir: string;
  readonly plugins: readonly VolumePlugin[];
  /** Gets FailedMount for each set-up that failed. */
  readonly events?: EventSink;
  /** Gets each set-up that failed, and the one that succeeded after that. */
  readonly journal?: Pick<Journal, "note" | "failed">;
  /** Told of each set-up and tear-down that has ended. */
  readonly onOperation?: (done: VolumeOperation) => void;
  readonly found?: FoundVolumesMeter | undefined;
}

/** Looks for what an earlier life of the agent has left; to be called before anything is set up. */
export interface LeftVolumes {
  /** Tells the meter of each volume on disk; a disk that cannot be read is logged. */
  findLeft(): Promise<void>;
}

/** Told of volumes that an earlier life of the agent has left, for the metrics. */
export interface FoundVolumesMeter {
  /** One was found on disk. @param known whether there is a plugin for it */
  foundVolume(known: boolean): void;
  /** One that no plugin knows was removed, or could not be. */
  forcedVolume(failed: boolean): void;
}

interface Known {
  readonly plugin: VolumePlugin;
  /** Undefined while the first set-up has not ended: something may be there all the same. */
  mounted?: MountedVolume;
}

/** Sets up, keeps current and tears down the volumes of pods (features.md section 11). */
export function createVolumeManager(
  options: VolumeManagerOptions,
): VolumeManager & SubPaths & VolumeCounts & LeftVolumes {
  return new Manager(options);
}

class Manager implements VolumeManager, SubPaths, VolumeCounts, LeftVolumes {
  readonly #o: VolumeManagerOptions;
  readonly #operations: Operations;
  readonly #guard = new HangGuard();
  readonly #backoff: Backoff;
  /** Pod UID → volume name → what is, or may be, set up. */
  readonly #known = new Map<string, Map<string, Known>>();
  /** Pod UID → names of volumes whose contents could not be brought up to date. */
  readonly #stale = new Map<string, Set<string>>();
  /** Pod UID → what wakes its set-ups that wait for their back-off. */
  readonly #sleepers = new Map<string, Set<() => void>>();

  constructor(options: VolumeManagerOptions) {
    this.#o = options;
    this.#operations = new Operations(options.scope);
    this.#backoff = new Backoff({ clock: options.clock, initial: firstDelay, max: longestDelay });
  }

  async mountPod(pod: BoundPod, signal: AbortSignal): Promise<ReadonlyMap<string, MountedVolume>> {
    const wanted = volumesToMount(pod);
    const unusable: string[] = [];
    const reasons: string[] = [];
    const chosen: { volume: Volume; plugin: VolumePlugin }[] = [];
    for (const { volume, asDevice } of wanted) {
      const plugin = this.#o.plugins.find((p) => p.canSupport(volume));
      if (plugin && !asDevice) {
        chosen.push({ volume, plugin });
        continue;
      }
      unusable.push(volume.name);
      reasons.push(
        `${volume.name}: ${plugin ? "it is no block volume, but stands in volumeDevices" : unsupported(volume)}`,
      );
    }
    if (unusable.length > 0) throw waitError(unusable, unusable, reasons);
    const deadline = this.#o.clock.now() + waitLimit;
    const results = await Promise.allSettled(
      chosen.map(({ volume, plugin }) => this.#mountOne(pod, volume, plugin, deadline, signal)),
    );
    if (signal.aborted) throw abortedBy(signal);
    const mounted = new Map<string, MountedVolume>();
    const failed: string[] = [];
    for (const [i, result] of results.entries()) {
      const name = chosen[i]?.volume.name ?? "";
      if (result.status === "fulfilled") mounted.set(name, result.value);
      else {
        failed.push(name);
        reasons.push(`${name}: ${messageOf(result.reason)}`);
      }
    }
    if (failed.length > 0) throw waitError(failed, [], reasons);
    return mounted;
  }

  /** Tries until the volume is there, the deadline has come or trying again can't help. */
  async #mountOne(
    pod: BoundPod,
    volume: Volume,
    plugin: VolumePlugin,
    deadline: number,
    signal: AbortSignal,
  ): Promise<MountedVolume> {
    const { clock } = this.#o;
    const key = keyOf(pod.metadata.uid, volume.name);
    const shown = this.#known.get(pod.metadata.uid)?.get(volume.name)?.mounted;
    if (shown && plugin.live) return await this.#refresh(pod, volume, plugin, shown, signal);
    let last: Error | undefined;
    for (;;) {
      const wait = this.#backoff.remaining(key);
      const left = deadline - clock.now();
      if (left <= 0) {
        throw last ??
          new KubeletError("Volume", `the last set-up failed, and the next try is due in ${Math.ceil(wait / 1000)} s`);
      }
      if (wait > 0) {
        await this.#pause(pod.metadata.uid, Math.min(wait, left), signal);
        continue;
      }
      try {
        using limit = new Deadline({ clock, signal, ms: left });
        const mounted = await this.#setUp(pod, volume, plugin, limit.signal);
        this.#backoff.reset(key);
        if (last) {
          const because = { pod: podRef(pod), reason: "Mounted", message: `volume "${volume.name}" is there now` };
          this.#o.journal?.note("MountVolume", because, volume.name);
        }
        return mounted;
      } catch (thrown) {
        if (signal.aborted || this.#o.scope.signal.aborted) throw thrown;
        last = this.#failed(pod, volume, thrown);
        if (last instanceof VolumeSpecError || (last instanceof KubeletError && last.code === "BadPod")) throw last;
      }
    }
  }

  /** Backs off, and tells why a set-up failed. */
  #failed(pod: BoundPod, volume: Volume, thrown: unknown): Error {
    const { log, events, journal } = this.#o;
    const error = isAborted(thrown)
      ? new KubeletError("Volume", "its set-up does not come to an end (a mount or a disk that hangs)", {
        cause: thrown,
      })
      : asError(thrown);
    this.#backoff.step(keyOf(pod.metadata.uid, volume.name));
    const message = `MountVolume.SetUp failed for volume "${volume.name}" : ${error.message}`;
    log.error(message, { pod: `${pod.metadata.namespace}/${pod.metadata.name}`, podUid: pod.metadata.uid });
    events?.pod({ pod, type: "Warning", reason: "FailedMount", message });
    const because = { pod: podRef(pod), reason: "FailedMount", message: `set up volume "${volume.name}"` };
    journal?.failed("MountVolume", because, volume.name, error.message);
    return error;
  }

  /** Brings contents up to date, once: while that fails the volume goes on showing what it shows, and is looked at again. */
  async #refresh(
    pod: BoundPod,
    volume: Volume,
    plugin: VolumePlugin,
    shown: MountedVolume,
    signal: AbortSignal,
  ): Promise<MountedVolume> {
    const { uid } = pod.metadata;
    const key = keyOf(uid, volume.name);
    const stale = this.#stale.get(uid) ?? new Set();
    if (this.#backoff.remaining(key) > 0) return shown;
    try {
      using limit = new Deadline({ clock: this.#o.clock, signal, ms: refreshLimit });
      const mounted = await this.#setUp(pod, volume, plugin, limit.signal);
      this.#backoff.reset(key);
      if (stale.delete(volume.name) && stale.size === 0) this.#stale.delete(uid);
      return mounted;
    } catch (thrown) {
      if (signal.aborted || this.#o.scope.signal.aborted) throw thrown;
      this.#failed(pod, volume, thrown);
      this.#stale.set(uid, stale.add(volume.name));
      return shown;
    }
  }

  retryInMs(podUid: string): number | undefined {
    const stale = [...this.#stale.get(podUid) ?? []];
    return stale.length === 0
      ? undefined
      : Math.min(...stale.map((name) => this.#backoff.remaining(keyOf(podUid, name))));
  }

  retryNow(podUid: string): void {
    for (const name of this.#known.get(podUid)?.keys() ?? []) this.#backoff.reset(keyOf(podUid, name));
    for (const wake of this.#sleepers.get(podUid) ?? []) wake();
  }

  /** Sleeps until the time is over, or the pod's set-ups are to be tried now. */
  async #pause(podUid: string, ms: number, signal: AbortSignal): Promise<void> {
    if (signal.aborted) throw abortedBy(signal);
    const { promise, resolve, reject } = Promise.withResolvers<void>();
    const sleepers = this.#sleepers.get(podUid) ?? new Set();
    this.#sleepers.set(podUid, sleepers.add(resolve));
    const abort = () => reject(abortedBy(signal));
    signal.addEventListener("abort", abort, { once: true });
    using _timer = this.#o.clock.after(ms, resolve);
    try {
      await promise;
    } finally {
      signal.removeEventListener("abort", abort);
      if (sleepers.delete(resolve) && sleepers.size === 0) this.#sleepers.delete(podUid);
    }
  }

  #setUp(pod: BoundPod, volume: Volume, plugin: VolumePlugin, signal: AbortSignal): Promise<MountedVolume> {
    const { uid } = pod.metadata;
    return this.#operations.run(keyOf(uid, volume.name), signal, async (signal) => {
      const { host, log, clock, rootDir, events } = this.#o;
      // Before anything is remembered: a name that is no path element is refused here.
      const dir = podVolumeDir(rootDir, uid, plugin.name, volume.name);
      const ofPod = this.#known.get(uid) ?? new Map<string, Known>();
      const known: Known = ofPod.get(volume.name) ?? { plugin };
      if (known.mounted && !plugin.live) return known.mounted;
      this.#known.set(uid, ofPod.set(volume.name, known));
      const warn = (reason: string, message: string) => events?.pod({ pod, type: "Warning", reason, message });
      const context = { host, log, clock, rootDir, podUid: uid, name: volume.name, dir, signal, pod, volume, warn };
      known.mounted = await this.#timed(plugin.name, "volume_mount", async () => {
        await plugin.attach?.(context);
        return await (plugin.foreign
          ? this.#guard.run(uid, signal, () => plugin.setUp(context))
          : plugin.setUp(context));
      });
      return known.mounted;
    });
  }

  async #timed<T>(plugin: string, operation: VolumeOperation["operation"], run: () => Promise<T>): Promise<T> {
    const { clock, onOperation } = this.#o;
    const began = clock.now();
    let failed = true;
    try {
      const result = await run();
      failed = false;
      return result;
    } finally {
      onOperation?.({ plugin, operation, seconds: (clock.now() - began) / 1000, failed });
    }
  }

  async unmountPod(podUid: string, signal: AbortSignal): Promise<void> {
    const { host, rootDir } = this.#o;
    // Refuses a UID that is no path element before anything is touched.
    podDir(rootDir, podUid);
    await this.#operations.run(keyOf(podUid, "sub-paths/"), signal, () => removeSubPaths(host, rootDir, podUid));
    const onDisk = await volumesOnDisk(host, rootDir, podUid);
    const all = new Map<string, { name: string; plugin: VolumePlugin | undefined; dir: string }>();
    for (const { plugin, name, path } of onDisk) {
      const known = this.#o.plugins.find((p) => p.name.replaceAll("/", "~") === plugin);
      all.set(path, { name, plugin: known, dir: path });
    }
    for (const [name, { plugin }] of this.#known.get(podUid) ?? []) {
      const dir = podVolumeDir(rootDir, podUid, plugin.name, name);
      all.set(dir, { name, plugin, dir });
    }
    const results = await Promise.allSettled([...all.values()].map((volume) => this.#tearDown(podUid, volume, signal)));
    if (signal.aborted) throw abortedBy(signal);
    const failures = results.flatMap((r) => r.status === "rejected" ? [messageOf(r.reason)] : []);
    if (failures.length > 0) {
      throw new KubeletError("Volume", `pod ${podUid}: volumes cannot be torn down: ${failures.join("; ")}`);
    }
    await removeVolumeDirectories(host, rootDir, podUid);
    this.#known.delete(podUid);
    this.#stale.delete(podUid);
    this.#backoff.prune();
  }

  async findLeft(): Promise<void> {
    const { host, rootDir, plugins, found, log } = this.#o;
    if (!found) return;
    try {
      for (const uid of await podsWithVolumes(host, rootDir)) {
        for (const { plugin } of await volumesOnDisk(host, rootDir, uid)) {
          found.foundVolume(plugins.some(({ name }) => name.replaceAll("/", "~") === plugin));
        }
      }
    } catch (thrown) {
      log.warn("volumes of an earlier life could not be counted", { error: messageOf(thrown) });
    }
  }

  #tearDown(
    podUid: string,
    { name, plugin, dir }: { name: string; plugin: VolumePlugin | undefined; dir: string },
    signal: AbortSignal,
  ): Promise<void> {
    const { host, log, rootDir } = this.#o;
    const key = keyOf(podUid, name);
    return this.#operations.run(key, signal, async (signal) => {
      const volume: VolumeOnDisk = { host, log, rootDir, podUid, name, dir, signal };
      try {
        await this.#timed(plugin?.name ?? "", "volume_unmount", async () => {
          if (plugin?.tearDown) await plugin.tearDown(volume);
          // Whatever a plugin did or a crash left: nothing mounted, nothing there.
          await unmountAndRemove(host, dir);
          await plugin?.detach?.(volume);
        });
        if (!plugin) this.#o.found?.forcedVolume(false);
      } catch (thrown) {
        if (isAborted(thrown)) throw thrown;
        if (!plugin) this.#o.found?.forcedVolume(true);
        throw new KubeletError("Volume", `UnmountVolume.TearDown failed for volume "${name}" : ${messageOf(thrown)}`, {
          cause: thrown,
        });
      }
      this.#known.get(podUid)?.delete(name);
      this.#backoff.reset(key);
      log.detail(2, "volume torn down", { podUid, volume: name, plugin: plugin?.name ?? "not known" });
    });
  }

  mounted(): ReadonlyMap<string, number> {
    return this.#counted(({ mounted }) => mounted !== undefined);
  }

  wanted(): ReadonlyMap<string, number> {
    return this.#counted(() => true);
  }

  #counted(counts: (known: Known) => boolean): ReadonlyMap<string, number> {
    const byPlugin = new Map<string, number>();
    for (const known of [...this.#known.values()].flatMap((ofPod) => [...ofPod.values()])) {
      if (counts(known)) byPlugin.set(known.plugin.name, (byPlugin.get(known.plugin.name) ?? 0) + 1);
    }
    return byPlugin;
  }

  async hasVolumes(podUid: string): Promise<boolean> {
    if ((this.#known.get(podUid)?.size ?? 0) > 0) return true;
    return await hasVolumesOnDisk(this.#o.host, this.#o.rootDir, podUid);
  }

  podsOnDisk(): Promise<string[]> {
    return podsWithVolumes(this.#o.host, this.#o.rootDir);
  }

  prepareSubPath(request: Parameters<SubPaths["prepareSubPath"]>[0]): Promise<string> {
    const { host, rootDir } = this.#o;
    const key = keyOf(request.pod.metadata.uid, "sub-paths/");
    const { uid } = request.pod.metadata;
    return this.#operations.run(
      key,
      request.signal,
      (signal) => this.#guard.run(uid, signal, () => prepareSubPath(host, rootDir, request)),
    );
  }
}

function keyOf(podUid: string, volume: string): string {
  return `${podUid}/${volume}`;
}
