import assert from "@assert";
import { MountPropagation } from "../../../cri/gen/runtime_pb.ts";
import type { MountedVolume } from "../mounted_volume.ts";
import type { BoundPod, Container, PodSpec, VolumeMount } from "../../kube/types.ts";
import { blockDevices, containerMounts, type MountInput, subPathMounts } from "./mounts.ts";

const volume = (name: string, more: Partial<MountedVolume> = {}): [string, MountedVolume] => [name, {
  name,
  hostPath: `/v/${name}`,
  readOnly: false,
  selinuxRelabel: false,
  ...more,
}];
const volumes = new Map([
  volume("data", { selinuxRelabel: true }),
  volume("ro", { readOnly: true }),
  volume("img", { image: "sha256:1", readOnly: true, hostPath: "" }),
]);
const { PROPAGATION_PRIVATE, PROPAGATION_HOST_TO_CONTAINER, PROPAGATION_BIDIRECTIONAL } = MountPropagation;

function mounts(
  volumeMounts: VolumeMount[],
  input: Partial<MountInput> = {},
  container: Partial<Container> = {},
  spec: Partial<PodSpec> = {},
): ReturnType<typeof containerMounts> {
  const pod: BoundPod = { metadata: { name: "p", namespace: "ns", uid: "u" }, spec: { containers: [], ...spec } };
  return containerMounts({
    pod,
    container: { name: "c", volumeMounts, ...container },
    envs: [{ name: "N", value: "one" }, { name: "E", value: "" }],
    volumes,
    subPaths: new Map(),
    podIPs: [],
    hostsFile: "/r/etc-hosts",
    selinuxEnabled: false,
    recursiveReadOnlyMounts: false,
    ...input,
  });
}

const plain = { readonly: false, selinuxRelabel: false, propagation: PROPAGATION_PRIVATE, recursiveReadOnly: false };

Deno.test("mounts keep the spec's order; hosts and the termination file come last", () => {
  const got = mounts(
    [{ name: "ro", mountPath: "/b" }, { name: "data", mountPath: "a/../c/", readOnly: true }],
    {
      podIPs: ["10.0.0.2"],
      terminationFile: "/r/00000001",
      selinuxEnabled: true,
      pluginMounts: [{ containerPath: "/dev/x", hostPath: "/x" }],
    },
    { terminationMessagePath: "/dev//termination-log" },
  );
  assert.deepEqual(got, [
    { containerPath: "/dev/x", hostPath: "/x" },
    { ...plain, containerPath: "/b", hostPath: "/v/ro", readonly: true },
    { ...plain, containerPath: "/c", hostPath: "/v/data", readonly: true, selinuxRelabel: true },
    { containerPath: "/etc/hosts", hostPath: "/r/etc-hosts", selinuxRelabel: true },
    { containerPath: "/dev/termination-log", hostPath: "/r/00000001", selinuxRelabel: true },
  ]);
});

Deno.test("the hosts file is left out when there is nothing to say or the container brings its own", () => {
  const has = (...args: Parameters<typeof mounts>) => mounts(...args).some((m) => m.hostPath === "/r/etc-hosts");
  assert.equal(has([]), false, "no address yet");
  assert.equal(has([], {}, {}, { hostNetwork: true }), true);
  assert.equal(has([], { podIPs: ["10.0.0.2"] }), true);
  assert.equal(has([{ name: "data", mountPath: "/etc/hosts" }], { podIPs: ["10.0.0.2"] }), false);
  assert.equal(mounts([], { terminationFile: "/r/t" }).length, 0, "no terminationMessagePath");
});

Deno.test("propagation, recursive read-only, images, user namespaces", () => {
  const one = (mount: Partial<VolumeMount>, input: Partial<MountInput> = {}) =>
    mounts([{ name: "data", mountPath: "/d", ...mount }], input)[0];
  const modes: [string | undefined, MountPropagation][] = [
    [undefined, PROPAGATION_PRIVATE],
    ["None", PROPAGATION_PRIVATE],
    ["HostToContainer", PROPAGATION_HOST_TO_CONTAINER],
    ["Bidirectional", PROPAGATION_BIDIRECTIONAL],
  ];
  for (const [mountPropagation, want] of modes) {
    assert.equal(one(mountPropagation === undefined ? {} : { mountPropagation })?.propagation, want);
  }
  assert.throws(() => one({ mountPropagation: "X" }), { message: 'invalid MountPropagation mode: "X"' });

  const ro = { readOnly: true };
  const able = { recursiveReadOnlyMounts: true };
  const recursive: [Partial<VolumeMount>, Partial<MountInput>, boolean | RegExp][] = [
    [{ recursiveReadOnly: "Disabled" }, able, false],
    [{ ...ro, recursiveReadOnly: "IfPossible" }, {}, false],
    [{ ...ro, recursiveReadOnly: "IfPossible" }, able, true],
    [{ ...ro, recursiveReadOnly: "Enabled", mountPropagation: "None" }, able, true],
    [{ ...ro, recursiveReadOnly: "Enabled" }, {}, /it is not supported by the runtime/],
    [{ recursiveReadOnly: "IfPossible" }, able, /it is not read-only/],
    [{ ...ro, recursiveReadOnly: "Enabled", mountPropagation: "Bidirectional" }, able, /propagation "Bidirectional"/],
    [{ ...ro, recursiveReadOnly: "X" }, able, /unknown recursive read-only mode "X"/],
  ];
  for (const [mount, input, want] of recursive) {
    if (typeof want === "boolean") assert.equal(one(mount, input)?.recursiveReadOnly, want);
    else assert.throws(() => one(mount, input), { name: "CreateContainerConfigError", message: want });
  }

  assert.deepEqual(one({ name: "img", subPath: "a/b" }), {
    ...plain,
    containerPath: "/d",
    hostPath: "",
    readonly: true,
    image: { image: "sha256:1", userSpecifiedImage: "sha256:1", annotations: {} },
    imageSubPath: "a/b",
  });
  const pulled = { imageVolumes: new Map([["img", "sha256:2"]]) };
  assert.deepEqual(one({ name: "img" }, pulled)?.image, {
    image: "sha256:2",
    userSpecifiedImage: "sha256:1",
    annotations: {},
  });

  const ids = { hostId: 65536, containerId: 0, length: 65536 };
  const mapped = mounts([{ name: "data", mountPath: "/d" }], { podIPs: ["1"], userns: { uids: [ids], gids: [ids] } });
  assert.equal(mapped.length, 2);
  for (const mount of mapped) assert.deepEqual([mount.uidMappings, mount.gidMappings], [[ids], [ids]]);
});

Deno.test("sub paths are expanded, checked and mounted from where they were prepared", () => {
  const list = (...volumeMounts: VolumeMount[]) =>
    subPathMounts({ name: "c", volumeMounts }, [{ name: "N", value: "one" }, { name: "E", value: "" }], volumes);
  const at = { name: "data", mountPath: "/d" };
  assert.deepEqual(
    list(at, { ...at, subPath: "a/./b/" }, { ...at, subPathExpr: "x/$(N)" }, { ...at, name: "img", subPath: "i" }),
    [{ index: 1, volume: "data", subPath: "a/b" }, { index: 2, volume: "data", subPath: "x/one" }],
  );
  const bad: [Partial<VolumeMount>, RegExp][] = [
    [{ subPath: "/a" }, /SubPath `\/a` must not be an absolute path/],
    [{ subPath: "a/../../b" }, /without "\.\."/],
    [{ subPathExpr: "$(N)/.." }, /without "\.\."/],
    [{ subPathExpr: "$(Z)$(A)$(E)$(N)" }, /^missing value for A, E, Z$/],
  ];
  for (const [mount, message] of bad) {
    assert.throws(() => list({ ...at, ...mount }), { name: "CreateContainerConfigError", message });
  }
  const sub = [at, { ...at, subPath: "a" }];
  assert.equal(mounts(sub, { subPaths: new Map([[1, "/r/sub"]]) })[1]?.hostPath, "/r/sub");
  assert.throws(() => mounts(sub), { message: 'failed to prepare subPath for volumeMount "data" of container "c"' });
});

Deno.test("a volume that isn't there is named", () => {
  assert.throws(() => mounts([{ name: "no", mountPath: "/d" }]), {
    name: "CreateContainerConfigError",
    message: 'cannot find volume "no" to mount into container "c"',
  });
});

Deno.test("block volumes are devices", () => {
  const of = (name: string, devicePath: string) =>
    blockDevices({ name: "c", volumeDevices: [{ name, devicePath }] }, volumes);
  assert.deepEqual(of("data", "/dev/x"), [{ hostPath: "/v/data", containerPath: "/dev/x", permissions: "mrw" }]);
  assert.equal(of("ro", "/dev/x")[0]?.permissions, "r");
  assert.throws(() => of("data", "x"), { message: /must be an absolute path/ });
  assert.throws(() => of("no", "/x"), { message: 'cannot find volume "no" to pass into container "c"' });
});
