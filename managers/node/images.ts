import type { ContainerImage } from "../../mod/kube/types.ts";

/** Names of an image that a node's status shows at most (runtime-contract.md section 19). */
const mostNames = 5;

/** An image as the runtime lists it. */
export interface ListedImage {
  readonly id: string;
  readonly repoTags: readonly string[];
  readonly repoDigests: readonly string[];
  /** Bytes. */
  readonly size: bigint;
}

/**
 * The images of a node's status: the largest first, each with its digests before its tags.
 * @param most nodeStatusMaxImages; -1 for all
 */
export function statusImages(images: readonly ListedImage[], most: number): ContainerImage[] {
  const sorted = [...images].sort((a, b) => {
    if (a.size !== b.size) return a.size > b.size ? -1 : 1;
    return a.id === b.id ? 0 : a.id > b.id ? -1 : 1;
  });
  return (most < 0 ? sorted : sorted.slice(0, most)).map(({ repoDigests, repoTags, size }) => ({
    names: [...repoDigests, ...repoTags].slice(0, mostNames),
    sizeBytes: Number(size),
  }));
}
