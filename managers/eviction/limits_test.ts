import assert from "@assert";
import type { BoundPod, Container } from "../../mod/kube/types.ts";
import type { PodSample } from "../stats/types.ts";
import { hasStorageLimit, storageExcess } from "./limits.ts";
import { containerStats, Mi, pod, podStats } from "./testing.ts";

const shared = { dedicatedImageFs: false };

function limited(name: string, limit?: string): Container {
  return { name, image: "i", ...(limit ? { resources: { limits: { "ephemeral-storage": limit } } } : {}) };
}

const part = (mebibytes: number) => ({ at: 1, used: mebibytes * Mi });

interface Case {
  readonly pod: BoundPod;
  readonly stats: Partial<PodSample>;
  readonly dedicatedImageFs?: boolean;
  readonly want: string | undefined;
}

const volume = (emptyDir: NonNullable<NonNullable<BoundPod["spec"]["volumes"]>[number]["emptyDir"]>) =>
  pod("web", { volumes: [{ name: "cache", emptyDir }] });
const kept = (mebibytes: number) => ({ volumes: [{ name: "cache", ...part(mebibytes) }] });
const ofVolume = 'Usage of EmptyDir volume "cache" exceeds the limit "64Mi". ';

const cases: Record<string, Case> = {
  "an emptyDir at its limit": { pod: volume({ sizeLimit: "64Mi" }), stats: kept(64), want: undefined },
  "an emptyDir above its limit": { pod: volume({ sizeLimit: "64Mi" }), stats: kept(65), want: ofVolume },
  "the limit is told as the API prints it": {
    pod: volume({ sizeLimit: "65536Ki" }),
    stats: kept(65),
    want: ofVolume,
  },
  "one in memory too": { pod: volume({ sizeLimit: "64Mi", medium: "Memory" }), stats: kept(65), want: ofVolume },
  "a limit of 0 is none": { pod: volume({ sizeLimit: "0" }), stats: kept(65), want: undefined },
  "an emptyDir without a limit": { pod: volume({}), stats: kept(65), want: undefined },
  "an emptyDir that is not measured yet": { pod: volume({ sizeLimit: "1Mi" }), stats: {}, want: undefined },
  "the pod as a whole, above what its containers may keep": {
    pod: pod("web", { containers: [limited("a", "10Mi"), limited("b", "1Mi")] }),
    stats: { ephemeralStorage: part(12) },
    want: "Pod ephemeral local storage usage exceeds the total limit of containers 11Mi. ",
  },
  "the pod as a whole, at it": {
    pod: pod("web", { containers: [limited("a", "10Mi"), limited("b", "1Mi")] }),
    stats: { ephemeralStorage: part(11) },
    want: undefined,
  },
  "an init container's limit, where it is the larger one": {
    pod: pod("web", { containers: [limited("a", "10Mi")], initContainers: [limited("init", "20Mi")] }),
    stats: { ephemeralStorage: part(15) },
    want: undefined,
  },
  "a sidecar's limit adds to the others'": {
    pod: pod("web", {
      containers: [limited("a", "10Mi")],
      initContainers: [{ ...limited("side", "5Mi"), restartPolicy: "Always" }],
    }),
    stats: { ephemeralStorage: part(16) },
    want: "Pod ephemeral local storage usage exceeds the total limit of containers 15Mi. ",
  },
  "a container by its layer and logs, when the pod as a whole keeps within": {
    pod: pod("web", { containers: [limited("a", "10Mi"), limited("b", "90Mi")] }),
    stats: { ephemeralStorage: part(11), containers: [containerStats("a", { rootfs: part(6), logs: part(5) })] },
    want: 'Container a exceeded its local ephemeral storage limit "10Mi". ',
  },
  "a container at its limit": {
    pod: pod("web", { containers: [limited("a", "11Mi")] }),
    stats: { containers: [containerStats("a", { rootfs: part(6), logs: part(5) })] },
    want: undefined,
  },
  "a container's layer on another disk does not count": {
    pod: pod("web", { containers: [limited("a", "10Mi")] }),
    stats: { containers: [containerStats("a", { rootfs: part(60), logs: part(5) })] },
    dedicatedImageFs: true,
    want: undefined,
  },
  "a container without a limit": {
    pod: pod("web", { containers: [limited("a"), limited("b", "90Mi")] }),
    stats: { containers: [containerStats("a", { rootfs: part(60) })] },
    want: undefined,
  },
  "init containers have no limit of their own here": {
    pod: pod("web", { initContainers: [limited("init", "1Mi")], containers: [limited("a", "90Mi")] }),
    stats: { containers: [containerStats("init", { rootfs: part(60) })] },
    want: undefined,
  },
  "the emptyDir is named before the pod": {
    pod: {
      ...volume({ sizeLimit: "64Mi" }),
      spec: { ...volume({ sizeLimit: "64Mi" }).spec, containers: [limited("a", "1Mi")] },
    },
    stats: { ...kept(65), ephemeralStorage: part(65) },
    want: ofVolume,
  },
};

for (const [name, { pod, stats, want, dedicatedImageFs = false }] of Object.entries(cases)) {
  Deno.test(`storage limits: ${name}`, () => {
    assert.equal(storageExcess(pod, podStats("web", stats), { dedicatedImageFs })?.message, want);
  });
}

Deno.test("storage limits: each is counted under its own name", () => {
  const emptyDir = storageExcess(volume({ sizeLimit: "1Mi" }), podStats("web", kept(2)), shared);
  const whole = pod("web", { containers: [limited("a", "1Mi")] });
  const ofPod = storageExcess(whole, podStats("web", { ephemeralStorage: part(2) }), shared);
  const layer = { containers: [containerStats("a", { rootfs: part(2) })] };
  const ofContainer = storageExcess(whole, podStats("web", layer), shared);
  assert.deepEqual([emptyDir, ofPod, ofContainer].map((each) => each?.signal), [
    "emptydirfs.limit",
    "ephemeralpodfs.limit",
    "ephemeralcontainerfs.limit",
  ]);
});

Deno.test("storage limits: pods that have any", () => {
  assert.equal(hasStorageLimit(volume({ sizeLimit: "1Mi" })), true);
  assert.equal(hasStorageLimit(volume({})), false);
  assert.equal(hasStorageLimit(pod("web", { containers: [limited("a", "1Mi")] })), true);
  assert.equal(hasStorageLimit(pod("web", { initContainers: [limited("a", "1Mi")] })), true);
  assert.equal(hasStorageLimit(pod("web")), false);
});
