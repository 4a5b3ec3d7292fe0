import type { Intended } from "./differences.ts";

const resources =
  "read from the pod's control group, which for the reference may be gone by then, and where cgroup v1 " +
  "tells an amount near 2^63 for no limit at all; here it is what the spec asks for";

/** Differences that shall be, each with its reason. */
export const intended: readonly Intended[] = [
  {
    at: "events.texts.Pod probed *Warning Unhealthy: *: connection refused",
    why: "a probe that comes before its server listens: a matter of the moment",
  },
  { at: "pages.summary.pods[unlively]*", why: "its container may be down just then" },
  { at: "pages.configz.kubeletconfig.healthzPort", why: "each run takes a free one" },
  {
    at: "pages.configz.kubeletconfig.tls*File",
    why: "a certificate that the agent makes for itself is no setting, and is not shown as one",
  },
  { at: "pages.healthz", why: "there is no device manager yet whose health could be told", reference: /device-plugin/ },
  {
    at: "pages.metrics.go_*",
    why: "of the Go runtime; what Deno has the same of is told (docs/metrics.md)",
    ours: /nothing/,
  },
  { at: "pages.metrics.dra_*", why: "dynamic resource allocation is not built yet", ours: /nothing/ },
  {
    at: "pages.metrics.rest_client_transport_create_calls_total",
    why: "internals of the Go client: Deno keeps connections by itself",
  },
  {
    at: "pages.metrics.authent*",
    why: "told here of each request; the reference's page has them only once its API was asked with a token",
    reference: /nothing/,
  },
  {
    at: "pages.metrics.authorization_*",
    why: "told here of each request; the reference's page has them only once its API was asked with a token",
    reference: /nothing/,
  },
  {
    at: "pages.metrics.kubelet_*e*_manager_*",
    why: "of certificates, told from the start on; the reference tells them once it manages one",
    reference: /nothing/,
  },
  {
    at: "pages.metrics.kubelet_server_expiration_renew_errors",
    why: "of certificates, told from the start on; the reference tells them once it manages one",
    reference: /nothing/,
  },
  {
    at: "pages.metrics.kubernetes_healthcheck*",
    why:
      "section 8 of the contract has them on /metrics too; the reference tells them there once its page /healthz was read",
    reference: /nothing/,
  },
  {
    at: "pages.metrics.workqueue_*",
    why: "queues of the Go client's libraries; none of them is here",
    ours: /nothing/,
  },
  {
    at: "pages.metrics.rest_client_transport_cert_rotation_gc_calls_total",
    why: "internals of the Go client: Deno keeps connections by itself",
    ours: /nothing/,
  },
  { at: "pods.*.status.resources.*", why: resources },
  { at: "pods.*.metadata.managedFields.kubelet Update status.status/resources*", why: resources },
  {
    at: "pods.group@told.status.containerStatuses[main].state.terminated.message",
    why: "the link to a token belongs to root, not to the pod's user: the owner of a link has no effect",
    reference: /lrwxrwxrwx 1000 2000 .\/token\/token/,
    ours: /lrwxrwxrwx 0 2000 .\/token\/token/,
  },
  {
    at: "events.texts.Node parity: Normal NodeHas*",
    why: "the reference tells each while it makes the node's first object and again with its first status",
    reference: /several/,
    ours: /once/,
  },
  {
    at: "events.texts.Node parity: Warning CgroupV1: *",
    why: "type and reason are the reference's, the words our own",
  },
  {
    at: "events.texts.*Warning MissingClusterDNS: *",
    why: "told once for each pod, not again with each container and restart",
    reference: /several/,
    ours: /once/,
  },
  {
    at: "events.texts.*Normal DeadlineExceeded: *",
    why: "told once, not again with each look at the pod until it has ended",
    reference: /several/,
    ours: /once/,
  },
  {
    at: "node.metadata.managedFields.kubelet Update status.status/features/supplementalGroupsPolicy",
    why: "the node registers without waiting for the runtime's first answer, and adds what that tells",
  },
  {
    at: "node.metadata.managedFields.kubelet Update status.status/runtimeHandlers",
    why: "the node registers without waiting for the runtime's first answer, and adds what that tells",
  },
];
