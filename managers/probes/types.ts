import type { BoundPod, Container, HTTPGetAction } from "../../mod/kube/types.ts";
import type { ProbeView } from "../../mod/pod/actions.ts";

export type ProbeType = "liveness" | "readiness" | "startup";

/** A probe's result crossed its threshold. */
export interface ProbeUpdate {
  readonly podUid: string;
  readonly container: string;
  readonly containerId: string;
  readonly type: ProbeType;
  readonly ok: boolean;
  readonly message: string;
}

/** Where a container that is probed stands; the prober is told, it never asks the runtime. */
export interface ProbeTarget {
  readonly containerId: string;
  /** Milliseconds since the epoch. */
  readonly startedAt: number;
  readonly running: boolean;
  /**
   * What the last known status said of this instance before the agent started (API status, own state file).
   * Only read for containers older than the agent: `started: true` means that the startup probe need not run again,
   * `ready: false` that the container was not ready. Left out: taken to have been started and ready until a result.
   */
  readonly started?: boolean;
  readonly ready?: boolean;
}

/** Runs a pod's probes (runtime-contract.md section 18). */
export interface ProbeManager {
  /** Starts workers for the probes of the pod's containers that have none yet. */
  addPod(pod: BoundPod): void;
  /** Tells where the pod's containers stand now, by container name, and the address that probes go to. */
  observe(podUid: string, podIP: string | undefined, targets: ReadonlyMap<string, ProbeTarget>): void;
  /** Liveness and startup probes end when termination begins; readiness goes on. */
  stopLivenessAndStartup(podUid: string): void;
  /** Ends every probe of the pod and forgets its results. */
  removePod(podUid: string): void;
  /** Results of a container instance. */
  results(containerId: string): ProbeView;
}

/** One HTTP GET as probes and lifecycle hooks make it. */
export interface HttpGetCall {
  readonly action: HTTPGetAction;
  /** Whose named ports the action may use. */
  readonly container: Pick<Container, "ports">;
  /** The address used when the action names no host. */
  readonly podIP: string | undefined;
  /** The middle word of the user agent, `kube-<purpose>/1.36`. */
  readonly purpose: "probe" | "lifecycle";
  /** The whole call's limit in milliseconds, 0 for none. */
  readonly timeoutMs: number;
  readonly signal?: AbortSignal;
  /** Used instead of the action's scheme; the Authorization header is then not sent. */
  readonly fallbackScheme?: "http";
  /** The reply is complete with its headers; the body is not read. */
  readonly headersOnly?: boolean;
}

/** What came of an HTTP GET: a reply of any status, or why there was none. */
export type HttpGetOutcome =
  | { readonly ok: true; readonly status: number; readonly body: string; readonly hostPort: string }
  | {
    readonly ok: false;
    /** Where it went wrong: the action could not become a request, no headers came, or the body broke off. */
    readonly stage: "build" | "request" | "body";
    /** True when a server asked by HTTPS answered in plain HTTP. */
    readonly plainHttp: boolean;
    readonly message: string;
    readonly hostPort: string;
  };

/** Makes an HTTP GET. Rejects only with Aborted, when the caller's signal aborts. */
export type HttpGet = (call: HttpGetCall) => Promise<HttpGetOutcome>;
