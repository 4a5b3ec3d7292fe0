import { counter, MetricSet } from "./metric_set.ts";
import { exponential, Histogram } from "./registry.ts";

/** Times until client certificates end, seconds. */
const expiries = [0, 1800, 3600, 7200, 21_600, 43_200, 86_400, 172_800, 345_600, 604_800, 2_592_000, 7_776_000];
const authSeconds = exponential(.001, 2, 15);

/** Who asks the node's API (metrics.md section 4, delegated authentication). */
export class AuthMetrics extends MetricSet {
  readonly users = counter("authenticated_user_requests", "Requests of users that were recognised", { vec: true });
  readonly attempts = counter("authentication_attempts", "Looks at who asks, by result", { vec: true });
  readonly seconds = new Histogram({
    name: "authentication_duration_seconds",
    help: "How long it took to find out who asks, seconds",
    buckets: authSeconds,
  });
  readonly decisions = counter("authorization_attempts_total", "Looks at what users may do, by result", { vec: true });
  readonly decisionSeconds = new Histogram({
    name: "authorization_duration_seconds",
    help: "How long it took to find out what users may do, seconds",
    buckets: authSeconds,
  });
  readonly certificateExpiry = new Histogram({
    name: "apiserver_client_certificate_expiration_seconds",
    help: "Time until the certificates of clients end, at each request, seconds",
    buckets: expiries,
  }).begin();
  readonly tokenReviews = counter(
    "apiserver_delegated_authn_request_total",
    "Token reviews that were asked of the API server, by code",
    { vec: true },
  );
  readonly tokenReviewSeconds = new Histogram({
    name: "apiserver_delegated_authn_request_duration_seconds",
    help: "How long token reviews took, seconds",
    buckets: [.25, .5, .7, 1, 1.5, 3, 5, 10],
  });
  readonly accessReviews = counter(
    "apiserver_delegated_authz_request_total",
    "Access reviews that were asked of the API server, by code",
    { vec: true },
  );
  readonly accessReviewSeconds = new Histogram({
    name: "apiserver_delegated_authz_request_duration_seconds",
    help: "How long access reviews took, seconds",
    buckets: [.25, .5, .7, 1, 1.5, 3, 5, 10],
  });

  authenticated(
    { user, failed, seconds, certificateEnds }: {
      /** Undefined when nobody was recognised. */
      user: string | undefined;
      failed: boolean;
      seconds: number;
      /** Of the certificate that counted, seconds from now. */
      certificateEnds?: number;
    },
  ): void {
    const result = failed ? "error" : user === undefined ? "failure" : "success";
    this.attempts.add({ result });
    this.seconds.observe({ result }, seconds);
    if (certificateEnds !== undefined) this.certificateExpiry.observe({}, certificateEnds);
    if (user === undefined) return;
    this.users.add({ username: compressed(user) });
  }

  authorized(result: "allowed" | "denied" | "error", seconds: number): void {
    this.decisions.add({ result });
    this.decisionSeconds.observe({ result }, seconds);
  }

  /** A review that the API server was asked for. @param code the status, or `<error>` */
  reviewed(what: "token" | "access", code: string, seconds: number): void {
    (what === "token" ? this.tokenReviews : this.accessReviews).add({ code });
    (what === "token" ? this.tokenReviewSeconds : this.accessReviewSeconds).observe({ code }, seconds);
  }
}

const told = new Set(["admin", "client", "kube_proxy", "kubelet", "system:serviceaccount:kube-system:default"]);

/** Few names are told, as by the reference: the page must not grow with whoever asks, nor give them away. */
function compressed(name: string): string {
  return told.has(name) ? name : name.includes("@") ? "email_id" : "other";
}
