import { gauge, MetricSet } from "./metric_set.ts";

/** How long it took until the node was there and ready (metrics.md section 2); 0 where it was registered before. */
export class StartupMetrics extends MetricSet {
  readonly whole = gauge("kubelet_node_startup_duration_seconds", "From the machine's start to the node's being ready");
  readonly beforeAgent = gauge(
    "kubelet_node_startup_pre_kubelet_duration_seconds",
    "From the machine's start to the agent's",
  );
  readonly beforeRegistration = gauge(
    "kubelet_node_startup_pre_registration_duration_seconds",
    "From the agent's start to its registration",
  );
  readonly registration = gauge(
    "kubelet_node_startup_registration_duration_seconds",
    "How long the registration took",
  );
  readonly afterRegistration = gauge(
    "kubelet_node_startup_post_registration_duration_seconds",
    "From the registration to being ready",
  );
  readonly #now: () => number;
  readonly #agentAt: number;
  /** Asked when it is needed: when the machine was started, milliseconds since the epoch; 0: nobody knows. */
  bootedAt: () => number = () => 0;
  #attemptedAt: number | undefined;
  #createdAt: number | undefined;
  #ready = false;

  /** @param now milliseconds since the epoch */
  constructor(now: () => number) {
    super();
    this.#now = now;
    this.#agentAt = now();
  }

  /** The node is about to be registered. */
  attempted(): void {
    this.#attemptedAt ??= this.#now();
  }

  /** The node's object was created; not told of one that was there. */
  created(): void {
    if (this.#attemptedAt === undefined || this.#createdAt !== undefined) return;
    const at = this.#createdAt = this.#now();
    const booted = this.bootedAt();
    if (booted > 0) seconds(this.beforeAgent, booted, this.#agentAt);
    seconds(this.beforeRegistration, this.#agentAt, this.#attemptedAt);
    seconds(this.registration, this.#attemptedAt, at);
  }

  /** The API server shows the node as ready. */
  ready(): void {
    if (this.#createdAt === undefined || this.#ready) return;
    this.#ready = true;
    const at = this.#now(), booted = this.bootedAt();
    seconds(this.afterRegistration, this.#createdAt, at);
    if (booted > 0) seconds(this.whole, booted, at);
  }
}

/** A clock may have been set meanwhile; no time is less than none. */
function seconds(to: ReturnType<typeof gauge>, from: number, until: number): void {
  to.set({}, Math.max(0, until - from) / 1000);
}
