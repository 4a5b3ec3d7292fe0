import { create } from "@bufbuild/protobuf";
import type {
  AuthConfigInit,
  CallOptions,
  ImageService,
  ImageSpecInit,
  MutatingOptions,
  SandboxConfigInit,
} from "../api.ts";
import * as pb from "../gen/runtime_pb.ts";
import { type Core, failed } from "./core.ts";
import { imageItem, normalReference, type Registry, type StoredImage } from "./images.ts";

/** The calls about images. */
export class ImageCalls implements ImageService {
  constructor(private readonly core: Core, private readonly registry: Registry) {}

  listImages(options?: CallOptions): Promise<pb.Image[]> {
    return this.core.call("ListImages", undefined, options, () => this.core.images.list().map(imageItem));
  }

  imageStatus(image: ImageSpecInit, options?: CallOptions): Promise<pb.Image | undefined> {
    const call = "ImageStatus";
    return this.core.call(call, image.image, options, () => {
      const found = this.#find(call, image);
      return found && imageItem(found);
    });
  }

  #find(call: string, image: ImageSpecInit): StoredImage | undefined {
    if (!image.image) throw failed(call, 'can not resolve "" locally: ambiguous digest string');
    return this.core.images.find(image.image);
  }

  pullImage(
    request: { image: ImageSpecInit; auth?: AuthConfigInit; sandboxConfig?: SandboxConfigInit },
    options: MutatingOptions,
  ): Promise<string> {
    const { core } = this;
    const call = "PullImage";
    const asked = request.image.image ?? "";
    return core.call(call, asked, { timeoutMs: 0, ...options }, async (gone) => {
      const name = normalReference(asked);
      if (name === undefined) {
        throw failed(call, `failed to parse image reference "${asked}": invalid reference format`, asked);
      }
      const reply = this.registry(asked, request.auth);
      if (reply.ms) await core.clock.sleep(reply.ms, gone);
      if (reply.error) throw reply.error;
      return core.images.add({ ...reply.image, name }).id;
    });
  }

  removeImage(image: ImageSpecInit, options: MutatingOptions): Promise<void> {
    const call = "RemoveImage";
    return this.core.call(call, image.image, options, () => {
      const found = this.#find(call, image);
      if (found) this.core.images.remove(found.id);
    });
  }

  imageFsInfo(options?: CallOptions): Promise<pb.ImageFsInfoResponse> {
    const { core } = this;
    return core.call("ImageFsInfo", undefined, options, () =>
      create(pb.ImageFsInfoResponseSchema, {
        imageFilesystems: [{
          timestamp: BigInt(Math.floor(core.clock.now())) * 1_000_000n,
          fsId: { mountpoint: "/var/lib/containerd/io.containerd.snapshotter.v1.overlayfs" },
          usedBytes: { value: core.images.usedBytes },
          inodesUsed: { value: BigInt(core.images.list().length) },
        }],
      }));
  }
}
