import { type RuntimeService, silenceOf } from "../../cri/api.ts";
import type { StatusResponse } from "../../cri/gen/runtime_pb.ts";
import type { Clock } from "../base/clock.ts";
import type { Logger } from "../base/log.ts";

/** A runtime is down once it has given no good answer for this long (runtime-contract.md section 11). */
const downAfterMs = 30_000;

export interface RuntimeStateOptions {
  runtime: Pick<RuntimeService, "status">;
  clock: Clock;
  log: Logger;
  /** Milliseconds between looks (features.md A18: 5 s). */
  periodMs?: number;
  /** Told when the network becomes ready, or the runtime usable: pods that wait for it can go on. */
  onReady: () => void;
}

/** What keeps a node from being ready, as far as the runtime has to do with it. */
export interface RuntimeTroubles {
  readonly down: string | undefined;
  /** In the runtime's own words. */
  readonly notReady: string | undefined;
  readonly network: string | undefined;
}

/** What the runtime says of itself: whether it works, whether pods can have a network, which handlers it has. */
export class RuntimeState {
  readonly #o: RuntimeStateOptions;
  #lastGood = 0;
  #runtimeError: string | undefined = "container runtime status check may not have completed yet";
  #networkError: string | undefined = "container runtime status check may not have completed yet";
  #handlers: StatusResponse["runtimeHandlers"] = [];
  #features: StatusResponse["features"];
  /** What the runtime itself said last of what does not work, for the node's readiness. */
  #notReady: string | undefined;
  #networkNotReady: string | undefined = "network state unknown";

  constructor(options: RuntimeStateOptions) {
    this.#o = options;
  }

  /** Why the runtime cannot be used, or undefined when it can. */
  get runtimeError(): string | undefined {
    if (this.#runtimeError) return this.#runtimeError;
    return this.#o.clock.now() - this.#lastGood > downAfterMs ? "container runtime is down" : undefined;
  }

  /** Why pods can get no network, or undefined when they can. */
  get networkError(): string | undefined {
    return this.#networkError;
  }

  /**
   * What keeps the node from being ready, in the contract's words (runtime-contract.md section 19): a call that failed
   * is none until the runtime has given no good answer for so long that it counts as down.
   */
  get troubles(): RuntimeTroubles {
    const { clock } = this.#o;
    const down = this.#lastGood === 0
      ? "container runtime status check may not have completed yet"
      : clock.now() - this.#lastGood >= downAfterMs
      ? "container runtime is down"
      : undefined;
    return { down, notReady: this.#notReady, network: this.#networkNotReady };
  }

  /** The runtime's handlers with their features. */
  get handlers(): StatusResponse["runtimeHandlers"] {
    return this.#handlers;
  }

  /** What the runtime can do as a whole; undefined when it does not tell. */
  get features(): StatusResponse["features"] {
    return this.#features;
  }

  /** Looks each period until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    while (!signal.aborted) {
      await this.check(signal);
      await this.#o.clock.sleep(this.#o.periodMs ?? 5000, signal);
    }
  }

  /** One look. Never rejects except when aborted. */
  async check(signal: AbortSignal): Promise<void> {
    const { runtime, clock, log, onReady } = this.#o;
    const before = { runtime: this.#runtimeError, network: this.#networkError };
    try {
      const answer = await runtime.status({ verbose: false }, { signal });
      const condition = (type: string) => answer.status?.conditions.find((c) => c.type === type);
      this.#runtimeError = complaint("container runtime not ready", condition("RuntimeReady"));
      this.#networkError = complaint("container runtime network not ready", condition("NetworkReady"));
      this.#handlers = answer.runtimeHandlers;
      this.#features = answer.features;
      this.#notReady = this.#runtimeError;
      this.#networkNotReady = this.#networkError;
      if (!this.#runtimeError) this.#lastGood = clock.now();
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      this.#runtimeError = `container runtime is down: ${silenceOf(thrown)}`;
    }
    if (this.#runtimeError !== before.runtime && this.#runtimeError) log.error(this.#runtimeError);
    if (this.#networkError !== before.network && this.#networkError) log.warn(this.#networkError);
    if ((before.runtime && !this.#runtimeError) || (before.network && !this.#networkError)) onReady();
  }
}

function complaint(
  what: string,
  condition?: { type: string; status: boolean; reason: string; message: string },
): string | undefined {
  // Of a runtime that does not report it, the reference says `<nil>`.
  if (!condition) return `${what}: the runtime does not report it`;
  const { type, status, reason, message } = condition;
  return status ? undefined : `${what}: ${type}=${status} reason:${reason} message:${message}`;
}
