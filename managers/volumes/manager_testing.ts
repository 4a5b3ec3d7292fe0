import { FakeClock, turn } from "../../mod/base/fake_clock.ts";
import { FakeHost } from "../../mod/base/fake_host.ts";
import { Journal } from "../../mod/base/journal.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import type { BoundPod, Volume } from "../../mod/kube/types.ts";
import { createVolumeManager } from "./manager.ts";
import { standardPlugins } from "./standard.ts";
import type { VolumeOperation } from "./types.ts";
import type { VolumePlugin } from "./plugin.ts";

const root = "/var/lib/kubelet";
const volumes = `${root}/pods/u1/volumes`;

function podWith(list: Volume[], more: Partial<BoundPod["spec"]> = {}): BoundPod {
  return {
    metadata: { name: "p", namespace: "ns", uid: "u1", labels: { b: "2", a: 'x"y' } },
    spec: {
      containers: [{ name: "c", volumeMounts: list.map((v) => ({ name: v.name, mountPath: `/${v.name}` })) }],
      volumes: list,
      ...more,
    },
  };
}

function scene(plugins: VolumePlugin[] = []) {
  const clock = new FakeClock();
  const host = new FakeHost({ clock });
  host.putDir(root, 0o750);
  const log = new RecordingLogger();
  const events = new RecordingEvents();
  const memory = { allocatableMemory: () => 1n << 30n };
  const allocatable = () => ({ cpu: "4", memory: "8Gi" });
  const journal = new Journal({ clock });
  const operations: VolumeOperation[] = [];
  const found: string[] = [];
  const make = () =>
    createVolumeManager({
      host,
      clock,
      log,
      events,
      journal,
      onOperation: (done) => operations.push(done),
      found: {
        foundVolume: (known) => found.push(known ? "known" : "not known"),
        forcedVolume: (failed) => found.push(failed ? "cannot be forced" : "forced"),
      },
      scope: new Scope("volumes"),
      rootDir: root,
      plugins: [
        ...plugins,
        ...standardPlugins({ memory, allocatable }),
      ],
    });
  return {
    clock,
    host,
    log,
    events,
    journal,
    operations,
    found,
    make,
    manager: make(),
    signal: new AbortController().signal,
  };
}

async function through<T>(clock: FakeClock, work: Promise<T>): Promise<T> {
  let done = false;
  const mark = () => void (done = true);
  work.then(mark, mark);
  for (let i = 0; !done && i < 1000; i++) {
    await turn();
    if (!done) await clock.step();
  }
  return await work;
}

/** A volume kind whose set-up hangs until `release`. */
function hangingPlugin() {
  const gate = Promise.withResolvers<void>();
  const calls: string[] = [];
  const plugin: VolumePlugin = {
    name: "test/hang",
    live: false,
    canSupport: (volume) => volume.nfs !== undefined,
    async setUp({ podUid, dir, volume, host }) {
      calls.push(`setUp ${podUid}`);
      await gate.promise;
      await host.mkdir(dir);
      await host.mount({ source: "nfs", target: dir, type: "nfs" });
      return { name: volume.name, hostPath: dir, readOnly: false, selinuxRelabel: false };
    },
  };
  return { plugin, calls, release: gate.resolve };
}

export { hangingPlugin, podWith, root, scene, through, volumes };
