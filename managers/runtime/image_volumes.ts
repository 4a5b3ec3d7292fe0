import type { PodContainer } from "../../mod/kube/pod.ts";
import type { BoundPod, Container } from "../../mod/kube/types.ts";

/** The images that a container mounts as volumes (features.md C39), as the image manager wants them. */
export function imageVolumesOf(
  pod: BoundPod,
  container: PodContainer,
): Pick<Container, "name" | "image" | "imagePullPolicy">[] {
  const mounted = new Set((container.spec.volumeMounts ?? []).map((mount) => mount.name));
  return (pod.spec.volumes ?? []).flatMap(({ name, image }) => {
    if (!image || !mounted.has(name)) return [];
    return [{
      name,
      ...(image.reference === undefined ? {} : { image: image.reference }),
      ...(image.pullPolicy === undefined ? {} : { imagePullPolicy: image.pullPolicy }),
    }];
  });
}

/** The first version of each runtime that mounts images. An older one takes no notice of the field. */
const since: ReadonlyMap<string, readonly [number, number]> = new Map([["containerd", [2, 1]], ["cri-o", [1, 31]]]);

/** Whether a runtime can mount images: only its name and version tell. Undefined for one that is not known. */
export function canMountImages(name: string, version: string | undefined): boolean | undefined {
  const wanted = since.get(name);
  const [, major, minor] = /^v?(\d{1,6})\.(\d{1,6})(?:[.\-+~]|$)/.exec(version ?? "") ?? [];
  if (!wanted || major === undefined || minor === undefined) return undefined;
  return Number(major) > wanted[0] || (Number(major) === wanted[0] && Number(minor) >= wanted[1]);
}
