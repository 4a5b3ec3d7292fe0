import assert from "@assert";
import type { Container, Pod, PodSpec } from "../types.ts";
import { defaultPullPolicy } from "./image_tag.ts";
import { withDefaults } from "./pod.ts";

const container = (extra: Partial<Container> = {}): Container => ({ name: "c", image: "i:1", ...extra });
const specOf = (spec: Partial<PodSpec> = {}): PodSpec =>
  withDefaults({ spec: { containers: [container()], ...spec } }).spec ?? { containers: [] };
const firstOf = (extra: Partial<Container>) => specOf({ containers: [container(extra)] }).containers[0];

Deno.test("the pull policy follows the tag", () => {
  const cases: [string, string][] = [
    ["busybox", "Always"],
    ["busybox:latest", "Always"],
    ["busybox:1", "IfNotPresent"],
    ["localhost:5000/a/b", "Always"],
    ["localhost:5000/a/b:2", "IfNotPresent"],
    [`busybox@sha256:${"a".repeat(64)}`, "IfNotPresent"],
    [`busybox:latest@sha256:${"a".repeat(64)}`, "Always"],
    ["UPPER", "IfNotPresent"],
    ["", "IfNotPresent"],
    ["a b", "IfNotPresent"],
    ["f".repeat(64), "IfNotPresent"],
    [`${"a-".repeat(500)}!`, "IfNotPresent"],
    [`${"a.".repeat(500)}!`, "IfNotPresent"],
  ];
  for (const [image, want] of cases) assert.equal(defaultPullPolicy(image), want, image);
});

Deno.test("a pod and a container get their defaults, and stated values stay", () => {
  assert.deepEqual(withDefaults({ spec: { containers: [{ name: "c", image: "i" }] } }), {
    spec: {
      containers: [{
        name: "c",
        image: "i",
        resources: {},
        imagePullPolicy: "Always",
        terminationMessagePath: "/dev/termination-log",
        terminationMessagePolicy: "File",
      }],
      enableServiceLinks: true,
      dnsPolicy: "ClusterFirst",
      restartPolicy: "Always",
      securityContext: {},
      terminationGracePeriodSeconds: 30,
      schedulerName: "default-scheduler",
    },
  });
  const stated = specOf({ enableServiceLinks: false, terminationGracePeriodSeconds: 0, dnsPolicy: "Default" });
  assert.equal(stated.enableServiceLinks, false);
  assert.equal(stated.terminationGracePeriodSeconds, 0);
  assert.equal(stated.dnsPolicy, "Default");
});

Deno.test("probes, handlers, ports and environment get their defaults", () => {
  const got = firstOf({
    ports: [{ containerPort: 80 }],
    env: [
      { name: "A", valueFrom: { fieldRef: { fieldPath: "metadata.name" } } },
      { name: "B", valueFrom: { fileKeyRef: { volumeName: "v", path: "p", key: "k" } } },
    ],
    livenessProbe: { httpGet: { port: 80 } },
    readinessProbe: { grpc: { port: 1 }, periodSeconds: 3 },
    lifecycle: { preStop: { httpGet: { port: "web", scheme: "HTTPS" } } },
  });
  const timing = { timeoutSeconds: 1, successThreshold: 1, failureThreshold: 3 };
  assert.deepEqual(got?.ports, [{ containerPort: 80, protocol: "TCP" }]);
  assert.equal(got?.env?.[0]?.valueFrom?.fieldRef?.apiVersion, "v1");
  assert.equal(got?.env?.[1]?.valueFrom?.fileKeyRef?.optional, false);
  assert.deepEqual(got?.livenessProbe, {
    httpGet: { port: 80, path: "/", scheme: "HTTP" },
    periodSeconds: 10,
    ...timing,
  });
  assert.deepEqual(got?.readinessProbe, { grpc: { port: 1, service: "" }, periodSeconds: 3, ...timing });
  assert.deepEqual(got?.lifecycle?.preStop?.httpGet, { port: "web", scheme: "HTTPS", path: "/" });
});

Deno.test("requests come from limits, rounded up to thousandths, in regular and init containers", () => {
  const resources = { limits: { cpu: "100u", memory: "64Mi" }, requests: { memory: "32Mi" } };
  const want = { limits: { cpu: "1m", memory: "64Mi" }, requests: { cpu: "1m", memory: "32Mi" } };
  assert.deepEqual(firstOf({ resources })?.resources, want);
  assert.deepEqual(specOf({ initContainers: [container({ resources })] }).initContainers?.[0]?.resources, want);
});

Deno.test("on the host's network container ports become host ports", () => {
  const ports = [{ containerPort: 80 }, { containerPort: 81, hostPort: 82 }];
  const got = specOf({ hostNetwork: true, containers: [container({ ports })] });
  assert.deepEqual(got.containers[0]?.ports?.map(({ hostPort }) => hostPort), [80, 82]);
  assert.equal(specOf({ containers: [container({ ports })] }).containers[0]?.ports?.[0]?.hostPort, undefined);
});

Deno.test("volumes get their defaults; one without a source is an emptyDir", () => {
  const volumes = [
    { name: "a" },
    { name: "b", hostPath: { path: "/x" } },
    { name: "c", secret: { secretName: "s", defaultMode: 0 } },
    { name: "d", configMap: { name: "m" } },
    { name: "e", downwardAPI: { items: [{ path: "p", fieldRef: { fieldPath: "metadata.name" } }] } },
    { name: "f", projected: { sources: [{ serviceAccountToken: { path: "t" } }] } },
    { name: "g", image: { reference: "i" } },
    { name: "h", ephemeral: { volumeClaimTemplate: { spec: {} } } },
  ];
  assert.deepEqual(specOf({ volumes }).volumes, [
    { name: "a", emptyDir: {} },
    { name: "b", hostPath: { path: "/x", type: "" } },
    { name: "c", secret: { secretName: "s", defaultMode: 0 } },
    { name: "d", configMap: { name: "m", defaultMode: 420 } },
    {
      name: "e",
      downwardAPI: {
        defaultMode: 420,
        items: [{ path: "p", fieldRef: { fieldPath: "metadata.name", apiVersion: "v1" } }],
      },
    },
    {
      name: "f",
      projected: { defaultMode: 420, sources: [{ serviceAccountToken: { path: "t", expirationSeconds: 3600 } }] },
    },
    { name: "g", image: { reference: "i", pullPolicy: "Always" } },
    { name: "h", ephemeral: { volumeClaimTemplate: { spec: { volumeMode: "Filesystem" } } } },
  ]);
});

Deno.test("pod-level requests come from the containers, then from the limits; huge page limits from the containers", () => {
  const use = (cpu: string, huge?: string) => ({
    requests: { cpu },
    limits: huge === undefined ? {} : { "hugepages-2Mi": huge, "example.org/gpu": "1" },
  });
  const got = specOf({
    containers: [container({ resources: use("100m", "2Mi") }), container({ name: "d", resources: use("200m", "4Mi") })],
    initContainers: [
      container({ name: "s", restartPolicy: "Always", resources: use("50m") }),
      container({ name: "i", resources: use("900m") }),
    ],
    resources: { limits: { cpu: "2", memory: "1Gi" } },
  });
  assert.deepEqual(got.resources, {
    limits: { cpu: "2", memory: "1Gi", "hugepages-2Mi": "6Mi" },
    // The init container runs beside the sidecar: 900m + 50m is more than 100m + 200m + 50m.
    requests: { cpu: "950m", memory: "1Gi", "hugepages-2Mi": "6Mi" },
  });
  assert.equal(specOf({ containers: [container({ resources: use("1") })] }).resources, undefined);
});

Deno.test("the old and the new name of the service account are one", () => {
  assert.equal(specOf({ serviceAccount: "a" }).serviceAccountName, "a");
  assert.equal(specOf({ serviceAccountName: "b", serviceAccount: "a" }).serviceAccount, "b");
});

Deno.test("setting the defaults twice changes nothing, and the input stays as it was", () => {
  const pod: Pod = {
    spec: {
      containers: [container({ resources: { limits: { cpu: "0.1" } }, livenessProbe: { tcpSocket: { port: 1 } } })],
      volumes: [{ name: "a" }],
      resources: { limits: { cpu: "1" } },
    },
  };
  const before = structuredClone(pod);
  const once = withDefaults(pod);
  assert.deepEqual(pod, before);
  assert.deepEqual(withDefaults(once), once);
});
