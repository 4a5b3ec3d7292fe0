import { volumeKind, type VolumePlugin, VolumeSpecError } from "./plugin.ts";

/** Images as volumes: the runtime mounts them, nothing is made on the node. */
export function imagePlugin(): VolumePlugin {
  return {
    name: "kubernetes.io/image",
    live: false,
    canSupport: (volume) => volumeKind(volume) === "image",
    // deno-lint-ignore require-await
    async setUp({ volume }) {
      const image = volume.image?.reference ?? "";
      if (image === "") throw new VolumeSpecError("image volume without a reference: set image.reference");
      return { name: volume.name, hostPath: "", readOnly: true, selinuxRelabel: true, image };
    },
    tearDown: () => Promise.resolve(),
  };
}
