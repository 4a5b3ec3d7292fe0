import type { ImageService, ImageSpecInit } from "../../cri/api.ts";
import type { Image } from "../../cri/gen/runtime_pb.ts";
import { Backoff } from "../../mod/base/backoff.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { isAborted, messageOf } from "../../mod/base/errors.ts";
import { formatDuration } from "../../mod/base/duration.ts";
import type { Logger } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import type { EventSink } from "../../mod/kube/events.ts";
import { containerPath, podContainers, podRef } from "../../mod/kube/pod.ts";
import { imageBackOffKey } from "../../mod/pod/hash.ts";
import type { PullRecords } from "./credentials/pull_records.ts";
import type { Keyring, PullCredential } from "./credentials/types.ts";
import { callText, pullError } from "./pull_error.ts";
import { Puller } from "./puller.ts";
import { type ImageReference, parseReference } from "./reference.ts";
import { TokenBucket } from "./token_bucket.ts";
import { type EnsuredImage, ImageError, type ImageManager, type PullMeter } from "./types.ts";

/** Back-off of image pulls, milliseconds (runtime-contract.md section 9). */
const firstBackOffMs = 10_000;
const longestBackOffMs = 300_000;

/** Knows no credentials: every pull is anonymous. */
export const emptyKeyring: Keyring = { lookup: () => Promise.resolve([]) };

export interface ImageManagerOptions {
  readonly images: Pick<ImageService, "pullImage" | "imageStatus">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: EventSink;
  /** serializeImagePulls: one pull at a time. */
  readonly serialize: boolean;
  /** maxParallelImagePulls, when not serial; undefined or below 1 means no limit. */
  readonly maxParallel?: number | undefined;
  /** registryPullQPS (0 means no limit) and registryBurst. */
  readonly qps: number;
  readonly burst: number;
  readonly keyring?: Keyring;
  /** Told of each image that was asked for, once it is known what it takes to have it. */
  readonly onEnsured?: (image: EnsuredImage) => void;
  readonly pulls?: PullMeter | undefined;
  /** Who has pulled which image; without them any pod may use any image that is here. */
  readonly records?: PullRecords | undefined;
}

type Request = Parameters<ImageManager["ensure"]>[0];
type Ensured = Awaited<ReturnType<ImageManager["ensure"]>>;

/** The container's place in the pod for events; undefined for an image volume. */
function placeOf({ pod, container }: Request): string | undefined {
  const found = podContainers(pod).find((c) => c.spec.name === container.name && c.spec.image === container.image);
  return found && containerPath(found);
}

/** The policy; what a manifest leaves out is decided by the tag as the API server would. */
function policyOf(container: Request["container"], reference: ImageReference): string {
  return container.imagePullPolicy ?? (reference.tag === "latest" && !reference.digest ? "Always" : "IfNotPresent");
}

/** Reference and user as a container needs them; an image that names no user runs as root. */
function ensured(imageRef: string, image: Image | undefined): Ensured {
  if (!image) return { imageRef };
  if (image.uid) return { imageRef, uid: Number(image.uid.value) };
  return image.username === "" ? { imageRef, uid: 0 } : { imageRef, username: image.username };
}

/**
 * Makes images available by pull policy (features E1–E4, runtime-contract.md sections 9, 15, 16). Close it to call off
 * the pulls under way.
 */
export function createImageManager(options: ImageManagerOptions): ImageManager & AsyncDisposable {
  const { images, clock, log, events, records, keyring = emptyKeyring } = options;
  const backoff = new Backoff({ clock, initial: firstBackOffMs, max: longestBackOffMs });
  /** Why the last pull of a back-off key failed, `<reason>: <message>`. */
  const lastFailure = new Map<string, string>();
  const scope = new Scope("images", {
    onFailure: (error, task) => log.error("Image task failed", { task, error: error.message }),
  });
  const parallel = options.maxParallel !== undefined && options.maxParallel >= 1 ? options.maxParallel : undefined;
  const puller = new Puller({
    images,
    clock,
    log,
    scope,
    bucket: new TokenBucket({ clock, qps: options.qps, burst: options.burst }),
    limit: options.serialize ? 1 : parallel,
  });

  function emit(request: Request, type: "Normal" | "Warning", reason: string, message: string): void {
    const fieldPath = placeOf(request);
    events.pod({ pod: request.pod, type, reason, message, ...(fieldPath === undefined ? {} : { fieldPath }) });
  }

  /** Notes that a pull is about to begin; without that note nobody knows later that the image was pulled for somebody. */
  async function intend(request: Request, image: string): Promise<void> {
    try {
      await records?.intend(image, request.signal);
    } catch (thrown) {
      if (request.signal.aborted) throw thrown;
      const shown = JSON.stringify(image);
      const message = `Failed to record image pull intent for container image ${shown}: ${messageOf(thrown)}`;
      throw new ImageError("ErrImagePull", message, { cause: thrown });
    }
  }

  /** True when the pod may use an image that is here only after a pull with its own credentials. */
  async function mustProve(request: Request, reference: ImageReference, ref: string): Promise<boolean> {
    if (!records) return false;
    const { signal, container: { image: name = "" } } = request;
    try {
      return await records.mustPull({
        image: { name, bareName: reference.bareName, ref },
        credentials: () => credentials(request, reference.repository),
        signal,
      });
    } catch (thrown) {
      if (signal.aborted || thrown instanceof ImageError) throw thrown;
      log.error("the records of image pulls cannot be read", { image: name, error: messageOf(thrown) });
      return true;
    }
  }

  function read(request: Request): ImageReference {
    const { image = "" } = request.container;
    try {
      return parseReference(image);
    } catch (thrown) {
      const shown = JSON.stringify(image);
      const why = `couldn't parse image name ${shown}: ${messageOf(thrown)}`;
      const message = `Failed to apply default image tag ${shown}: ${why}`;
      emit(request, "Warning", "InspectFailed", message);
      throw new ImageError("InvalidImageName", message, { cause: thrown });
    }
  }

  async function inspect(request: Request, spec: ImageSpecInit): Promise<Image | undefined> {
    try {
      return await images.imageStatus(spec, { signal: request.signal });
    } catch (thrown) {
      if (isAborted(thrown)) throw thrown;
      const message = `Failed to inspect image ${JSON.stringify(request.container.image)}: ${callText(thrown)}`;
      emit(request, "Warning", "InspectFailed", message);
      throw new ImageError("ImageInspectError", message, { cause: thrown });
    }
  }

  /** Forgets back-offs that are over, and what was said about them. */
  function prune(): void {
    backoff.prune();
    for (const key of lastFailure.keys()) if (backoff.delay(key) === 0) lastFailure.delete(key);
  }

  async function credentials(request: Request, repository: string): Promise<readonly PullCredential[]> {
    const { image = "" } = request.container;
    try {
      return await keyring.lookup({ image, repository, pod: request.pod, signal: request.signal });
    } catch (thrown) {
      if (isAborted(thrown)) throw thrown;
      throw new ImageError("ErrImagePull", `cannot get pull credentials for ${image}: ${messageOf(thrown)}`, {
        cause: thrown,
      });
    }
  }

  /** Pulls, and keeps a record of it: that it is begun, then with whose credentials it was done. */
  async function pull(request: Request, spec: ImageSpecInit, reference: ImageReference): Promise<Ensured> {
    const name = request.container.image ?? "";
    const auths = await credentials(request, reference.repository);
    await intend(request, name);
    let done: { imageRef: string; used: PullCredential | undefined } | undefined;
    try {
      const { answer, used } = await pullWith(request, spec, auths);
      done = { imageRef: answer.imageRef, used };
      return answer;
    } finally {
      if (!done) await records?.failed(name);
      else await records?.pulled({ name, bareName: reference.bareName, ref: done.imageRef }, done.used);
    }
  }

  async function pullWith(
    request: Request,
    spec: ImageSpecInit,
    auths: readonly PullCredential[],
  ): Promise<{ answer: Ensured; used: PullCredential | undefined }> {
    const { pod, signal, sandboxConfig } = request;
    const image = request.container.image ?? "";
    const shown = JSON.stringify(image);
    const key = imageBackOffKey(pod.metadata.uid, image);
    if (backoff.remaining(key) > 0) {
      const held = `Back-off pulling image ${shown}`;
      emit(request, "Normal", "BackOff", held);
      const before = lastFailure.get(key);
      throw new ImageError("ImagePullBackOff", before === undefined ? held : `${held}: ${before}`);
    }
    lastFailure.delete(key);
    emit(request, "Normal", "Pulling", `Pulling image ${shown}`);
    options.pulls?.pulling(pod.metadata.uid);
    const began = clock.now();
    const because = {
      pod: podRef(pod),
      container: request.container.name,
      reason: "ImageNeeded",
      message: `Image ${shown} is needed (pull policy ${request.container.imagePullPolicy ?? "by tag"})`,
    };
    try {
      const { imageRef, image: found, tookMs, used } = await puller.pull(
        { spec, auths, sandboxConfig, because },
        signal,
      );
      const ms = clock.now() - began;
      const [took, inAll] = [tookMs, ms].map((ms) => formatDuration(Math.floor(ms)));
      const size = found?.size ?? 0n;
      options.pulls?.pulled(pod.metadata.uid, { ms, size });
      emit(
        request,
        "Normal",
        "Pulled",
        `Successfully pulled image ${shown} in ${took} (${inAll} including waiting). Image size: ${size} bytes.`,
      );
      prune();
      return { answer: ensured(imageRef, found), used };
    } catch (thrown) {
      // A pod that goes away, or an agent that ends, is no failure of the image.
      if (signal.aborted || scope.signal.aborted) throw thrown;
      emit(request, "Warning", "Failed", `Failed to pull image ${shown}: ${callText(thrown)}`);
      backoff.step(key);
      const error = pullError(image, thrown);
      lastFailure.set(key, `${error.reason}: ${error.message}`);
      throw error;
    }
  }

  return {
    async ensure(request) {
      const reference = read(request);
      const shown = JSON.stringify(request.container.image);
      const spec: ImageSpecInit = {
        image: reference.image,
        annotations: { ...request.pod.metadata.annotations },
        runtimeHandler: request.runtimeHandler,
      };
      const policy = policyOf(request.container, reference);
      const tell = (present: boolean | undefined, pulled: boolean | undefined) =>
        options.onEnsured?.({ policy, present, pulled });
      if (policy === "Always") {
        tell(undefined, true);
        return await pull(request, spec, reference);
      }
      const present = await inspect(request, spec);
      const usable = present && !await mustProve(request, reference, present.id);
      tell(present !== undefined, policy === "Never" ? false : !usable);
      if (present && usable) {
        options.pulls?.present(request.pod.metadata.uid);
        const message = `Container image ${shown} already present on machine and can be accessed by the pod`;
        emit(request, "Normal", "Pulled", message);
        return ensured(present.id, present);
      }
      if (policy !== "Never") return await pull(request, spec, reference);
      // An image that the pod may not use is not told apart from one that is not here.
      const message = `Container image ${shown} is not present with pull policy of Never`;
      emit(request, "Warning", "ErrImageNeverPull", message);
      throw new ImageError("ErrImageNeverPull", message);
    },
    heldMs: (podUid, image) => backoff.remaining(imageBackOffKey(podUid, image)),
    [Symbol.asyncDispose]: () => scope.close(),
  };
}
