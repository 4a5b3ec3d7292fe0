import assert from "@assert";
import type { BoundPod } from "../kube/types.ts";
import type { MountedVolume } from "../pod/mounted_volume.ts";
import { PodVolumes } from "./pod_volumes.ts";

const spec = { containers: [] };
const pod = (more: Partial<BoundPod> = {}): BoundPod => ({
  metadata: { name: "p", namespace: "ns", uid: "u" },
  spec,
  ...more,
});

function scene() {
  const calls: string[] = [];
  const s = {
    retry: undefined as number | undefined,
    during: () => {},
    fails: false,
    volumes: new Map<string, MountedVolume>(),
  };
  const volumes = new PodVolumes({
    mountPod: () => {
      calls.push("mount");
      s.during();
      return s.fails ? Promise.reject(new Error("no")) : Promise.resolve(s.volumes);
    },
    unmountPod: () => Promise.resolve(void calls.push("unmount")),
    retryInMs: () => s.retry,
    retryNow: () => void calls.push("now"),
    hasVolumes: () => Promise.resolve(false),
    podsOnDisk: () => Promise.resolve([]),
  }, {
    register: ({ metadata }) => void calls.push(`register ${metadata.uid}`),
    unregister: (uid) => void calls.push(`unregister ${uid}`),
  });
  const { signal } = new AbortController();
  return { s, calls, volumes, signal };
}

Deno.test("volumes are up to date until the definition or what they are made of changes", async () => {
  const { calls, volumes, signal } = scene();
  const one = pod();
  assert.equal(volumes.upToDate(one), false);
  await volumes.mount(one, signal);
  assert.equal(volumes.upToDate(one), true);
  assert.equal(volumes.upToDate({ ...one, status: { phase: "Running" } }), true);
  assert.equal(volumes.upToDate({ ...one, spec: { containers: [] } }), false);
  assert.equal(volumes.upToDate({ ...one, metadata: { ...one.metadata, labels: { a: "b" } } }), false);
  volumes.changed("u");
  assert.equal(volumes.upToDate(one), false);
  await volumes.mount(one, signal);
  assert.equal(volumes.upToDate(one), true);
  assert.deepEqual(calls, ["register u", "mount", "now", "register u", "mount"]);
});

Deno.test("a change that comes while volumes are set up is not lost; one of a pod that is not known does nothing", async () => {
  const { s, calls, volumes, signal } = scene();
  volumes.changed("u");
  assert.deepEqual(calls, []);
  s.during = () => volumes.changed("u");
  await volumes.mount(pod(), signal);
  assert.equal(volumes.upToDate(pod()), false);
});

Deno.test("contents that are to be tried again make the pod be looked at when it is time", async () => {
  const { s, volumes, signal } = scene();
  s.retry = 500;
  await volumes.mount(pod(), signal);
  assert.equal(volumes.upToDate(pod()), true);
  assert.equal(volumes.retryInMs("u"), 500);
  s.retry = 0;
  assert.equal(volumes.upToDate(pod()), false);
});

Deno.test("a failure leaves what was set up; the pod's objects are let go when its volumes are down", async () => {
  const { s, calls, volumes, signal } = scene();
  s.volumes.set("v", { name: "v", hostPath: "/v", readOnly: true, selinuxRelabel: true });
  await volumes.mount(pod(), signal);
  s.fails = true;
  volumes.changed("u");
  await assert.rejects(volumes.mount(pod(), signal));
  assert.equal(volumes.of("u").size, 1);
  calls.length = 0;
  await volumes.unmount("u", signal);
  assert.deepEqual(calls, ["unmount", "unregister u"]);
  assert.equal(volumes.of("u").size, 0);
});
