import type { ImageService, ImageSpecInit, SandboxConfigInit } from "../../cri/api.ts";
import type { Image } from "../../cri/gen/runtime_pb.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { abortedBy, asError, isAborted, messageOf } from "../../mod/base/errors.ts";
import type { Because } from "../../mod/base/journal.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Scope } from "../../mod/base/scope.ts";
import { Semaphore } from "../../mod/base/semaphore.ts";
import type { PullCredential } from "./credentials/types.ts";
import type { TokenBucket } from "./token_bucket.ts";

/**
 * How long a pull keeps others from their turn, milliseconds; one that takes longer hangs, or is so slow that the others
 * go on beside it. Runtimes give up pulls without progress sooner than that, as a rule.
 */
const turnMs = 300_000;
/** A pull that lasts is logged each time so many milliseconds have passed. */
const progressMs = 60_000;

export interface PullRequest {
  readonly spec: ImageSpecInit;
  /** Credentials, tried in turn; none means anonymous. */
  readonly auths: readonly PullCredential[];
  readonly sandboxConfig: SandboxConfigInit;
  readonly because: Because;
}

export interface PullResult {
  readonly imageRef: string;
  /** What the runtime then says of the image; undefined when it would not say. */
  readonly image: Image | undefined;
  /** The credential that it was done with; undefined for none. */
  readonly used: PullCredential | undefined;
  /** Milliseconds of the pull itself, without waiting for a turn. */
  readonly tookMs: number;
}

type Outcome = { readonly result: PullResult } | { readonly error: Error };

interface Pull {
  readonly controller: AbortController;
  readonly outcome: Promise<Outcome>;
  waiters: number;
}

/**
 * Pulls images: as many at once as allowed, within the registry's rate, in the order of asking. Several requests for
 * the same image with the same credentials share one pull; it ends early only when all of them have gone. A pull that
 * does not come to an end gives up its turn, not its pull, so that it holds up no other pod's for good.
 */
export class Puller {
  readonly #images: Pick<ImageService, "pullImage" | "imageStatus">;
  readonly #clock: Clock;
  readonly #log: Logger;
  readonly #scope: Scope;
  readonly #bucket: TokenBucket;
  readonly #places: Semaphore | undefined;
  readonly #pulls = new Map<string, Pull>();

  constructor(options: {
    images: Pick<ImageService, "pullImage" | "imageStatus">;
    clock: Clock;
    log: Logger;
    scope: Scope;
    bucket: TokenBucket;
    /** Pulls at once; undefined means no limit. */
    limit: number | undefined;
  }) {
    this.#images = options.images;
    this.#clock = options.clock;
    this.#log = options.log;
    this.#scope = options.scope;
    this.#bucket = options.bucket;
    this.#places = options.limit === undefined ? undefined : new Semaphore(options.limit);
  }

  /** Number of different pulls that wait or are under way. */
  get size(): number {
    return this.#pulls.size;
  }

  /** Pulls, or joins the same pull. Rejects with the runtime's error, or Aborted when this caller's signal aborts. */
  async pull(request: PullRequest, signal: AbortSignal): Promise<PullResult> {
    if (signal.aborted) throw abortedBy(signal);
    const proofs = request.auths.map(({ hash, source }) => [hash, source]);
    const key = JSON.stringify([request.spec.image, request.spec.runtimeHandler, proofs]);
    const pull = this.#pulls.get(key) ?? this.#begin(key, request);
    pull.waiters++;
    const left = Promise.withResolvers<Outcome>();
    const onAbort = () => left.resolve({ error: abortedBy(signal) });
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      const outcome = await Promise.race([pull.outcome, left.promise]);
      if ("error" in outcome) throw outcome.error;
      return outcome.result;
    } finally {
      signal.removeEventListener("abort", onAbort);
      if (--pull.waiters === 0) {
        // Whoever asks from now on gets a pull of its own, not one that is being called off.
        if (this.#pulls.get(key) === pull) this.#pulls.delete(key);
        pull.controller.abort();
      }
    }
  }

  #begin(key: string, request: PullRequest): Pull {
    const done = Promise.withResolvers<Outcome>();
    const pull: Pull = { controller: new AbortController(), outcome: done.promise, waiters: 0 };
    this.#pulls.set(key, pull);
    this.#scope.spawn(`pull ${request.spec.image}`, async (scopeSignal) => {
      const abort = () => pull.controller.abort(scopeSignal.reason);
      if (scopeSignal.aborted) abort();
      else scopeSignal.addEventListener("abort", abort, { once: true });
      try {
        done.resolve({ result: await this.#run(pull, request) });
      } catch (thrown) {
        done.resolve({ error: asError(thrown) });
      } finally {
        scopeSignal.removeEventListener("abort", abort);
        if (this.#pulls.get(key) === pull) this.#pulls.delete(key);
      }
    });
    return pull;
  }

  async #run(pull: Pull, request: PullRequest): Promise<PullResult> {
    const { signal } = pull.controller;
    using place = await this.#places?.acquire(signal);
    using _turn = place && this.#clock.after(turnMs, () => place[Symbol.dispose]());
    await this.#bucket.take(signal);
    if (signal.aborted) throw abortedBy(signal);
    const began = this.#clock.now();
    using _progress = this.#progress(pull, request, began);
    const { imageRef, used } = await this.#tryAuths(request, signal);
    const image = await this.#look(request.spec, signal);
    return { imageRef, image, used, tookMs: this.#clock.now() - began };
  }

  async #tryAuths(
    request: PullRequest,
    signal: AbortSignal,
  ): Promise<{ imageRef: string; used: PullCredential | undefined }> {
    const { spec: image, sandboxConfig, because } = request;
    const errors: Error[] = [];
    for (const used of request.auths.length > 0 ? request.auths : [undefined]) {
      const auth = used && { username: used.username, password: used.password };
      try {
        const what = { image, sandboxConfig, ...(auth ? { auth } : {}) };
        return { imageRef: await this.#images.pullImage(what, { because, signal }), used };
      } catch (thrown) {
        if (isAborted(thrown) || signal.aborted) throw thrown;
        errors.push(asError(thrown));
      }
    }
    const texts = new Set(errors.map((e) => e.message));
    if (texts.size === 1 && errors[0]) throw errors[0];
    throw new AggregateError(errors, `[${[...texts].join(", ")}]`);
  }

  /** Size and user are wanted for the event and for runAsNonRoot, but a pull that worked does not fail for them. */
  async #look(spec: ImageSpecInit, signal: AbortSignal): Promise<Image | undefined> {
    try {
      return await this.#images.imageStatus(spec, { signal });
    } catch (thrown) {
      if (isAborted(thrown)) throw thrown;
      this.#log.warn("Image status is unknown after its pull", { image: spec.image, error: messageOf(thrown) });
      return undefined;
    }
  }

  #progress(pull: Pull, request: PullRequest, began: number): Disposable {
    let timer: Disposable;
    const arm = () => {
      timer = this.#clock.after(progressMs, () => {
        const seconds = Math.round((this.#clock.now() - began) / 1000);
        this.#log.info("Image is still being pulled", { image: request.spec.image, seconds, waiting: pull.waiters });
        arm();
      });
    };
    arm();
    return { [Symbol.dispose]: () => timer[Symbol.dispose]() };
  }
}
