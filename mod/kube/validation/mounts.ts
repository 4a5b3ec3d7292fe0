import type { Container, Volume } from "../types.ts";
import { checkDescending, checkNoBacksteps } from "./paths.ts";
import type { Problems } from "./problem.ts";

const propagations = ["None", "HostToContainer", "Bidirectional"];

/** Checks a container's mounts and block devices against the pod's volumes and one another. */
export function checkMounts(p: Problems, path: string, container: Container, volumes: readonly Volume[]): void {
  const deviceNames = new Set(container.volumeDevices?.map(({ name }) => name));
  const devicePaths = new Set(container.volumeDevices?.map(({ devicePath }) => devicePath));
  const places = new Set<string>();
  container.volumeMounts?.forEach((mount, i) => {
    const at = `${path}.volumeMounts[${i}]`;
    checkVolumeName(p, `${at}.name`, mount.name, volumes);
    if (!mount.mountPath) p.required(`${at}.mountPath`, "name a path in the container");
    else if (places.has(mount.mountPath)) {
      p.add(`${at}.mountPath`, mount.mountPath, "is used twice", "mount each volume elsewhere");
    }
    places.add(mount.mountPath);
    if (deviceNames.has(mount.name)) p.add(`${at}.name`, mount.name, "is a block device too", "use it in one way only");
    if (devicePaths.has(mount.mountPath)) {
      p.add(`${at}.mountPath`, mount.mountPath, "is a block device's path too", "use another path");
    }
    if (mount.subPath) checkDescending(p, `${at}.subPath`, mount.subPath);
    if (mount.subPathExpr) {
      checkDescending(p, `${at}.subPathExpr`, mount.subPathExpr);
      if (mount.subPath) p.add(`${at}.subPathExpr`, mount.subPathExpr, "stands beside subPath", "use one of them");
    }
    checkPropagation(p, at, mount, container.securityContext?.privileged ?? false);
  });
  checkDevices(p, `${path}.volumeDevices`, container, volumes);
}

type Mount = NonNullable<Container["volumeMounts"]>[number];

function checkPropagation(p: Problems, at: string, mount: Mount, privileged: boolean): void {
  const { mountPropagation, recursiveReadOnly } = mount;
  if (mountPropagation !== undefined) p.oneOf(`${at}.mountPropagation`, mountPropagation, propagations);
  if (mountPropagation === "Bidirectional" && !privileged) {
    const problem = "is for privileged containers only";
    p.add(`${at}.mountPropagation`, mountPropagation, problem, "use HostToContainer or a privileged container");
  }
  if (recursiveReadOnly === undefined) return;
  p.oneOf(`${at}.recursiveReadOnly`, recursiveReadOnly, ["Disabled", "IfPossible", "Enabled"]);
  if (recursiveReadOnly === "Disabled") return;
  if (!mount.readOnly) p.add(`${at}.recursiveReadOnly`, recursiveReadOnly, "needs readOnly", "set readOnly to true");
  if (mountPropagation !== undefined && mountPropagation !== "None") {
    p.add(`${at}.recursiveReadOnly`, recursiveReadOnly, "allows no mount propagation", "leave mountPropagation out");
  }
}

function checkDevices(p: Problems, path: string, container: Container, volumes: readonly Volume[]): void {
  const mountNames = new Set(container.volumeMounts?.map(({ name }) => name));
  const names = new Set<string>();
  const places = new Set<string>();
  container.volumeDevices?.forEach((device, i) => {
    const at = `${path}[${i}]`;
    checkVolumeName(p, `${at}.name`, device.name, volumes);
    const volume = volumes.find(({ name }) => name === device.name);
    if (volume && !volume.persistentVolumeClaim && !volume.ephemeral) {
      p.add(`${at}.name`, device.name, "is no claim", "only claims can be block devices; use volumeMounts");
    }
    if (names.has(device.name)) p.add(`${at}.name`, device.name, "is used twice", "remove one");
    names.add(device.name);
    if (!device.devicePath) p.required(`${at}.devicePath`, "name a path in the container");
    else if (places.has(device.devicePath)) {
      p.add(`${at}.devicePath`, device.devicePath, "is used twice", "use another");
    }
    checkNoBacksteps(p, `${at}.devicePath`, device.devicePath);
    places.add(device.devicePath);
    if (mountNames.has(device.name)) p.add(`${at}.name`, device.name, "is mounted too", "use it in one way only");
  });
}

function checkVolumeName(p: Problems, path: string, name: string, volumes: readonly Volume[]): void {
  if (!name) p.required(path, "name a volume of the pod");
  else if (!volumes.some((volume) => volume.name === name)) {
    const known = volumes.map((volume) => volume.name).join(", ");
    p.add(path, name, "is no volume of the pod", known ? `use one of: ${known}` : "add it to spec.volumes");
  }
}
