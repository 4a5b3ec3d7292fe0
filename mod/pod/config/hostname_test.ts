import assert from "@assert";
import type { BoundPod, PodSpec } from "../../kube/types.ts";
import { hostnameAndDomain, kernelHostname } from "./hostname.ts";

function pod(spec: Partial<PodSpec> = {}, name = "web"): BoundPod {
  return { metadata: { name, namespace: "ns", uid: "u" }, spec: { containers: [], ...spec } };
}

const domain = "cluster.local";

Deno.test("host name and domain come from the override, the spec or the pod's name", () => {
  const sub = { subdomain: "sub" };
  const cases: [string, BoundPod, [string, string]][] = [
    ["name", pod(), ["web", ""]],
    ["spec", pod({ hostname: "host" }), ["host", ""]],
    ["empty spec", pod({ hostname: "", subdomain: "" }), ["web", ""]],
    ["subdomain", pod({ hostname: "host", ...sub }), ["host", "sub.ns.svc.cluster.local"]],
    ["override drops the domain", pod({ hostnameOverride: "a.b", hostname: "host", ...sub }), ["a.b", ""]],
    ["cut", pod({}, "a".repeat(62) + "-.-b"), ["a".repeat(62), ""]],
    ["63 stay", pod({}, "a".repeat(63)), ["a".repeat(63), ""]],
    ["a long override is cut", pod({ hostnameOverride: `${"a".repeat(60)}.bcd` }), [`${"a".repeat(60)}.bc`, ""]],
  ];
  for (const [what, p, [hostname, dom]] of cases) {
    assert.deepEqual(hostnameAndDomain(p, domain), { hostname, domain: dom }, what);
  }
});

Deno.test("names that DNS can't hold are refused by field", () => {
  const cases: [Partial<PodSpec>, RegExp][] = [
    [{ hostname: "a.b" }, /spec\.hostname "a\.b" is not a valid DNS label/],
    [{ hostname: "UP" }, /spec\.hostname/],
    [{ hostname: "a".repeat(64) }, /spec\.hostname/],
    [{ subdomain: "-x" }, /spec\.subdomain/],
    [{ hostnameOverride: "" }, /spec\.hostnameOverride "" is not a valid DNS subdomain/],
    [{ hostnameOverride: "a..b" }, /spec\.hostnameOverride/],
    [{ hostnameOverride: "a\nb" }, /spec\.hostnameOverride/],
  ];
  for (const [spec, message] of cases) {
    assert.throws(() => hostnameAndDomain(pod(spec), domain), { code: "BadPod", message });
  }
});

Deno.test("the kernel's name is the FQDN only on request, and must fit", () => {
  const spec = { subdomain: "sub", setHostnameAsFQDN: true };
  assert.equal(kernelHostname(pod(spec), domain), "web.sub.ns.svc.cluster.local");
  assert.equal(kernelHostname(pod({ subdomain: "sub" }), domain), "web");
  assert.equal(kernelHostname(pod({ setHostnameAsFQDN: true }), domain), "web");
  const tail = ".sub.ns.svc.cluster.local";
  const fits = "a".repeat(64 - tail.length);
  assert.equal(kernelHostname(pod(spec, fits), domain), fits + tail);
  assert.throws(() => kernelHostname(pod(spec, `${fits}a`), domain), {
    message: /is too long \(64 characters is the max, 65 characters requested\)/,
  });
});
