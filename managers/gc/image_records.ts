import type { Container, Image } from "../../cri/gen/runtime_pb.ts";
import { runtimeLabels } from "../../mod/pod/config/labels.ts";
import type { ImageRecord } from "./image_plan.ts";

/** What the runtime has at one moment. */
export interface ImageScene {
  readonly images: readonly Image[];
  /** Every container, dead ones and those of others too. */
  readonly containers: readonly Container[];
  /** Images that containers have mounted, by container id. */
  readonly mounted: ReadonlyMap<string, readonly string[]>;
  /** What sandboxes are made of, or undefined when the runtime does not tell. */
  readonly sandboxImage: string | undefined;
  readonly now: number;
}

/** What a container is called in the reason why its image stays. */
function called(container: Container): string {
  const { labels } = container;
  const name = labels[runtimeLabels.containerName] ?? container.metadata?.name ?? container.id;
  const pod = labels[runtimeLabels.podName];
  return pod === undefined
    ? `container ${name}`
    : `container ${name} of pod ${labels[runtimeLabels.podNamespace]}/${pod}`;
}

/**
 * What needs each image, by id. Containers name their image in one of several ways, by runtime: an id, a digest, a tag;
 * each that leads to an image counts, as one image too many that stays is the lesser evil.
 */
export function imageUsers(scene: Omit<ImageScene, "now">): Map<string, string> {
  const idOf = new Map<string, string>();
  for (const { id, repoTags, repoDigests } of scene.images) {
    for (const name of [id, ...repoTags, ...repoDigests]) idOf.set(name, id);
  }
  const users = new Map<string, string>();
  const note = (name: string | undefined, words: string) => {
    const id = name === undefined ? undefined : idOf.get(name);
    if (id !== undefined && !users.has(id)) users.set(id, words);
  };
  note(scene.sandboxImage, "sandboxes are made of it");
  for (const container of scene.containers) {
    const words = `${called(container)} was made of it`;
    for (const name of [container.imageId, container.imageRef, container.image?.image]) note(name, words);
    for (const name of scene.mounted.get(container.id) ?? []) note(name, `${called(container)} has it mounted`);
  }
  return users;
}

/** When images were first seen and last used, as far as this agent has watched. */
export class ImageRecords {
  readonly #seen = new Map<string, { first: number; used: number | undefined }>();

  /** Takes notice of what there is now; forgets images that are gone. */
  observe(scene: ImageScene): ImageRecord[] {
    const users = imageUsers(scene);
    const there = new Set(scene.images.map((image) => image.id));
    for (const id of this.#seen.keys()) if (!there.has(id)) this.#seen.delete(id);
    return scene.images.map((image) => {
      const usedBy = users.get(image.id);
      const before = this.#seen.get(image.id);
      const seen = { first: before?.first ?? scene.now, used: usedBy === undefined ? before?.used : scene.now };
      this.#seen.set(image.id, seen);
      return {
        id: image.id,
        names: [...image.repoTags, ...image.repoDigests],
        sizeBytes: Number(image.size),
        pinned: image.pinned,
        handler: image.spec?.runtimeHandler ?? "",
        firstSeen: seen.first,
        lastUsed: seen.used,
        usedBy,
      };
    });
  }
}

/** The image that sandboxes are made of, as containerd tells it in its verbose status; undefined when it does not. */
export function sandboxImageIn(info: Readonly<Record<string, string>>): string | undefined {
  let config: unknown;
  try {
    config = JSON.parse(info.config ?? "null");
  } catch (thrown) {
    // Another runtime, which has its configuration in another form there.
    if (thrown instanceof SyntaxError) return undefined;
    throw thrown;
  }
  if (typeof config !== "object" || config === null || !("sandboxImage" in config)) return undefined;
  return typeof config.sandboxImage === "string" && config.sandboxImage !== "" ? config.sandboxImage : undefined;
}
