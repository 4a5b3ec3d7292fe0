import type { Volume } from "../types.ts";
import { checkRows, container, type Row } from "./testing.ts";

const volume = (extra: Partial<Volume>, ...paths: string[]): Row => [
  { volumes: [{ name: "v", ...extra }] },
  ...paths.map((path) => `spec.volumes[0]${path}`),
];

Deno.test("volumes: names, exactly one source, and each source's fields", () => {
  checkRows([
    volume({}),
    volume({ name: "" }, ".name"),
    volume({ name: "V" }, ".name"),
    [{ volumes: [{ name: "v" }, { name: "v" }] }, "spec.volumes[1].name"],
    volume({ emptyDir: {}, hostPath: { path: "/x" } }, ""),
    volume({ emptyDir: { sizeLimit: "-1" } }, ".emptyDir.sizeLimit"),
    volume({ hostPath: { path: "" } }, ".hostPath.path"),
    volume({ hostPath: { path: "/a/../b" } }, ".hostPath.path"),
    volume({ hostPath: { path: "/a/..b" } }),
    volume({ hostPath: { path: "/a", type: "Directory" } }),
    volume({ hostPath: { path: "/a", type: "Dir" } }, ".hostPath.type"),
    volume({ secret: { secretName: "", defaultMode: 512 } }, ".secret.secretName", ".secret.defaultMode"),
    volume(
      { configMap: { name: "m", items: [{ key: "", path: "../x", mode: -1 }] } },
      ".configMap.items[0].key",
      ".configMap.items[0].path",
      ".configMap.items[0].mode",
    ),
    volume({ configMap: { name: "m", items: [{ key: "k", path: "..data" }] } }, ".configMap.items[0].path"),
    volume({ configMap: { name: "m", items: [{ key: "k", path: "/abs" }] } }, ".configMap.items[0].path"),
    volume({ downwardAPI: { items: [{ path: "l", fieldRef: { fieldPath: "metadata.labels" } }] } }),
    volume(
      { downwardAPI: { items: [{ path: "l", fieldRef: { fieldPath: "status.podIP" } }] } },
      ".downwardAPI.items[0].fieldRef.fieldPath",
    ),
    volume({ downwardAPI: { items: [{ path: "l" }] } }, ".downwardAPI.items[0]"),
    volume(
      { downwardAPI: { items: [{ path: "l", resourceFieldRef: { resource: "limits.cpu" } }] } },
      ".downwardAPI.items[0].resourceFieldRef.containerName",
    ),
    volume({ image: { reference: "", pullPolicy: "x" } }, ".image.reference", ".image.pullPolicy"),
    volume({ nfs: { server: "", path: "x" } }, ".nfs.server", ".nfs.path"),
    volume({ csi: { driver: "Example.org" } }),
    volume({ csi: { driver: "a b" } }, ".csi.driver"),
    volume({ persistentVolumeClaim: { claimName: "" } }, ".persistentVolumeClaim.claimName"),
    volume({ ephemeral: {} }, ".ephemeral.volumeClaimTemplate"),
  ]);
});

Deno.test("projected volumes: one kind an entry, no file twice", () => {
  const projected = (sources: NonNullable<Volume["projected"]>["sources"], ...paths: string[]) =>
    volume({ projected: { sources } }, ...paths.map((path) => `.projected.sources${path}`));
  const item = (path: string) => [{ key: "k", path }];
  checkRows([
    projected([{ secret: { name: "s", items: item("a") } }, { configMap: { name: "m", items: item("b") } }]),
    projected([{ secret: { name: "s", items: item("a") } }, { configMap: { name: "m", items: item("a") } }], "[1]"),
    projected([{ secret: { name: "s" }, configMap: { name: "m" } }], "[0]"),
    projected([{ secret: {} }], "[0].secret.name"),
    projected(
      [{ serviceAccountToken: { path: "", expirationSeconds: 599 } }],
      "[0].serviceAccountToken.path",
      "[0].serviceAccountToken.expirationSeconds",
    ),
    projected([{ clusterTrustBundle: { path: "p" } }], "[0].clusterTrustBundle"),
    projected([{ podCertificate: { keyType: "DSA" } }], "[0].podCertificate.keyType", "[0].podCertificate"),
  ]);
});

Deno.test("mounts: known volumes, each place once, no way out", () => {
  type Mount = NonNullable<ReturnType<typeof container>["volumeMounts"]>[number];
  const mounts = (list: Mount[], ...paths: string[]): Row => [
    { containers: [container({ volumeMounts: list })], volumes: [{ name: "v" }] },
    ...paths.map((path) => `spec.containers[0].volumeMounts${path}`),
  ];
  const at = (extra: Partial<Mount>): Mount => ({ name: "v", mountPath: "/m", ...extra });
  checkRows([
    mounts([at({})]),
    mounts([at({ name: "w" })], "[0].name"),
    mounts([at({ name: "" })], "[0].name"),
    mounts([at({ mountPath: "" })], "[0].mountPath"),
    mounts([at({}), at({})], "[1].mountPath"),
    mounts([at({ subPath: "../x" })], "[0].subPath"),
    mounts([at({ subPath: "/x" })], "[0].subPath"),
    mounts([at({ subPath: "..x" })]),
    mounts([at({ subPath: "a", subPathExpr: "b" })], "[0].subPathExpr"),
    mounts([at({ mountPropagation: "Bidirectional" })], "[0].mountPropagation"),
    mounts([at({ mountPropagation: "HostToContainer" })]),
    mounts([at({ mountPropagation: "Some" })], "[0].mountPropagation"),
    mounts([at({ recursiveReadOnly: "Enabled" })], "[0].recursiveReadOnly"),
    mounts([at({ recursiveReadOnly: "Enabled", readOnly: true })]),
    mounts(
      [at({ recursiveReadOnly: "Enabled", readOnly: true, mountPropagation: "HostToContainer" })],
      "[0].recursiveReadOnly",
    ),
  ]);
  const privileged = container({
    securityContext: { privileged: true },
    volumeMounts: [at({ mountPropagation: "Bidirectional" })],
  });
  const device = (name: string, devicePath = "/dev/x") => container({ volumeDevices: [{ name, devicePath }] });
  const claim = [{ name: "v", persistentVolumeClaim: { claimName: "p" } }];
  checkRows([
    [{ containers: [privileged], volumes: [{ name: "v" }] }],
    [{ containers: [device("v")], volumes: claim }],
    [{ containers: [device("v", "/dev/../x")], volumes: claim }, "spec.containers[0].volumeDevices[0].devicePath"],
    [{ containers: [device("v")], volumes: [{ name: "v" }] }, "spec.containers[0].volumeDevices[0].name"],
    [
      { containers: [{ ...device("v"), volumeMounts: [at({})] }], volumes: claim },
      "spec.containers[0].volumeMounts[0].name",
      "spec.containers[0].volumeDevices[0].name",
    ],
    [{ containers: [device("v")], volumes: claim, hostUsers: false }, "spec.containers[0].volumeDevices"],
  ]);
});
