import type { SandboxConfigInit } from "../../cri/api.ts";
import { KubeletError } from "../../mod/base/errors.ts";
import type { BoundPod, Container } from "../../mod/kube/types.ts";

/** Waiting reasons of images (runtime-contract.md section 15). */
export type ImageReason =
  | "ErrImagePull"
  | "ImagePullBackOff"
  | "ErrImageNeverPull"
  | "InvalidImageName"
  | "ImageInspectError"
  | "RegistryUnavailable"
  | "SignatureValidationFailed";

export class ImageError extends KubeletError {
  override readonly name = "ImageError";
  constructor(readonly reason: ImageReason, message: string, options?: { cause?: unknown }) {
    super("Image", message, options);
  }
}

/** An image that a container needed, and what it took to have it. */
export interface EnsuredImage {
  readonly policy: string;
  /** Undefined when nobody could tell. */
  readonly present: boolean | undefined;
  readonly pulled: boolean | undefined;
}

/** Told of what pods wait for, for the metrics. */
export interface PullMeter {
  /** A pod begins to wait for the pull of an image. */
  pulling(podUid: string): void;
  /** A pull has worked. @param done milliseconds with what it waited, and bytes; 0 bytes: nobody knows */
  pulled(podUid: string, done: { readonly ms: number; readonly size: bigint }): void;
  /** An image that a pod may have waited for turned out to be there. */
  present(podUid: string): void;
}

/** Makes images available by policy (contract features E1–E4). */
export interface ImageManager {
  /**
   * Returns the reference to create the container with. Rejects with ImageError; back-off included.
   * Events (`Pulling`, `Pulled`, `Failed`, `BackOff`…) go to the event sink that the manager was given.
   */
  ensure(request: {
    pod: BoundPod;
    /** The container that needs it, or the name and image of an image volume. */
    container: Pick<Container, "name" | "image" | "imagePullPolicy">;
    sandboxConfig: SandboxConfigInit;
    runtimeHandler: string;
    signal: AbortSignal;
  }): Promise<{ imageRef: string; uid?: number; username?: string }>;
  /** Milliseconds until the back-off of this pod's image ends; 0 when it is not held. */
  heldMs(podUid: string, image: string): number;
}
