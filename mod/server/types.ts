import type { IncomingMessage, ServerResponse } from "node:http";
import type { Duplex } from "node:stream";
import type { RuntimeService } from "../../cri/api.ts";
import type { Clock } from "../base/clock.ts";
import type { Host } from "../base/host.ts";
import type { Logger } from "../base/log.ts";
import type { BoundPod, PodStatus } from "../kube/types.ts";
import type { ObservedPod } from "../pod/observed.ts";

/** Who makes a request (http.md section 2). */
export interface User {
  readonly name: string;
  readonly groups: readonly string[];
  readonly uid?: string;
  readonly extra?: Readonly<Record<string, readonly string[]>>;
}

/** One request, as a handler sees it. */
export interface RequestContext {
  readonly method: string;
  /**
   * Path and query as sent; scheme and authority are placeholders. Its pathname is normalised by URL rules, so never
   * decide by it: `path` and `params` are what was routed and authorised.
   */
  readonly url: URL;
  /** The path, percent-decoded. */
  readonly path: string;
  /** Values of the route's `{variables}`, percent-decoded; never undefined for a variable of the route that matched. */
  readonly params: Readonly<Record<string, string>>;
  /** Decoded query parameters; repeated ones are kept. */
  readonly query: URLSearchParams;
  /** Undefined on the read-only port, which authenticates nobody. */
  readonly user: User | undefined;
  /** True on the read-only port. */
  readonly readOnly: boolean;
  readonly request: IncomingMessage;
  /** Where to answer. Works for upgrade requests too, as long as `takeSocket` was not called. */
  readonly response: ServerResponse;
  /** True when the client asked for an upgrade (`Connection: Upgrade`) on a route that takes one. */
  readonly wantsUpgrade: boolean;
  /**
   * Hands the bare connection over: `response` must not be used any more, the handler writes raw bytes (a status line
   * first) and ends or destroys the socket. `head` is what the client sent behind its request. Only when `wantsUpgrade`
   * is true, and only once; else it throws a KubeletError of code Internal.
   */
  takeSocket(): { socket: Duplex; head: Uint8Array };
  /** Aborts when the client has gone away, the answer is complete, or the server ends. */
  readonly signal: AbortSignal;
  readonly log: Logger;
}

/**
 * Answers one request. What it throws becomes a 500 with the error's text when nothing was sent yet, else the
 * connection is cut. The request counts as running until the promise settles.
 */
export type Handler = (context: RequestContext) => void | Promise<void>;

/** One route of a group. */
export interface Route {
  /**
   * Methods it takes; another method on its path gets 405. "*" is a plain handler: it takes every method, and its path
   * is an exact one, or one that ends in `/` for all below it.
   */
  readonly methods: readonly string[] | "*";
  /**
   * The path: literal segments, `{name}` for one segment (empty only where a client encodes slashes), `{name:*}` as the
   * last segment for all the rest, with slashes. A `/` at the end of the request's path is tolerated.
   */
  readonly path: string;
  readonly handler: Handler;
  /** True for routes that answer upgrade requests; on others an upgrade wish is ignored, as HTTP allows. */
  readonly upgrade?: boolean;
}

/** Routes that belong together and are switched together. */
export interface RouteGroup {
  readonly name: string;
  /** `A`: both servers. `B`: only on the HTTPS server, and only with enableDebuggingHandlers (http.md section 3). */
  readonly access: "A" | "B";
  /** First path segments as the request metrics name them (`exec`, `metrics/cadvisor`). */
  readonly buckets: readonly string[];
  /**
   * Root of the routes that list their methods, default `/<first segment>` of each: paths below it that match no route
   * get the API's 404 instead of the server's. With a `/` at its end, the bare root redirects to it.
   */
  readonly root?: string;
  readonly routes: readonly Route[];
}

/** A desired pod with the status that the agent would report of it. */
export interface PodWithStatus {
  readonly pod: BoundPod;
  readonly status: PodStatus | undefined;
}

/** A finished request, for the request metrics (http.md section 7). */
export interface RequestFacts {
  readonly method: string;
  /** First path segment, `metrics/<x>`, or `other`. */
  readonly path: string;
  readonly serverType: "readwrite" | "readonly";
  readonly longRunning: boolean;
}

/** Told of requests as they begin and end. */
export interface RequestMetrics {
  /** The function it returns is called once, when the request has ended. */
  began(facts: RequestFacts): (end: { status: number; seconds: number }) => void;
  /** Who asked was looked up. @param user undefined when nobody was recognised */
  authenticated?(found: { user: string | undefined; seconds: number; certificateEnds?: number }): void;
  /** A stream over WebSocket began. @param subresource exec, attach or portforward */
  webSocket?(subresource: string): void;
  /** What the user may do was looked up. */
  authorized?(result: "allowed" | "denied" | "error", seconds: number): void;
}

/** What the handlers know of the agent. */
export interface ServerBackend {
  readonly nodeName: string;
  /** Desired pods, mirror pods excluded. */
  pods(): readonly PodWithStatus[];
  /** The desired pod of that name; a pod's own UID is for the handler to compare (http.md section 3, last lines). */
  podByName(namespace: string, name: string): BoundPod | undefined;
  podByUid(uid: string): BoundPod | undefined;
  /** The status that the agent would report of the pod now. */
  status(uid: string): PodStatus | undefined;
  /** What was last seen of a pod in the runtime; at most about a second old, or older while the runtime hangs. */
  observed(uid: string): ObservedPod | undefined;
  /** Looks at one pod in the runtime now. Rejects with a RuntimeError when the runtime does not answer. */
  refresh(uid: string, signal: AbortSignal): Promise<ObservedPod | undefined>;
  /** Every pod that the runtime knows, wanted or not. */
  allObserved(): Iterable<ObservedPod>;
  /** The configuration in force as KubeletConfiguration v1beta1 (without kind and apiVersion is fine). */
  configz(): unknown;
  /** Flags in force by name, for /flagz. */
  flagz(): Readonly<Record<string, string>>;
  /** Sets the log verbosity (`-v`). */
  setVerbosity(level: number): void;
  readonly runtime: RuntimeService;
  readonly host: Host;
  readonly clock: Clock;
  readonly log: Logger;
}
