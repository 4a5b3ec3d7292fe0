import assert from "@assert";
import { refusal } from "../kube/testing.ts";
import type { BoundPod, Pod } from "../kube/types.ts";
import { readPod } from "./manifest.ts";
import { type StaticPodOptions, toStaticPod } from "./static_pod.ts";

const file: StaticPodOptions = { origin: { source: "file", path: "/manifests/p.yaml" }, nodeName: "node1" };
const http: StaticPodOptions = { origin: { source: "http", url: "http://127.0.0.1/p" }, nodeName: "node1" };

const pod = (extra: Partial<Pod> = {}): Pod => ({
  metadata: { name: "web" },
  spec: { containers: [{ name: "c", image: "busybox:1" }] },
  ...extra,
});
const bound = (decoded: Pod, options = file) => toStaticPod(decoded, options).pod;
const refused = (decoded: Pod) => refusal(() => toStaticPod(decoded, file));

Deno.test("the pod of the reference's sample comes out as the reference shows it", () => {
  const text = `
apiVersion: v1
kind: Pod
metadata:
  name: p
spec:
  containers:
  - name: c
    image: localhost/busybox:1
    command: [sh, -c, echo line-one; sleep 1000]
    resources: {limits: {memory: 64Mi}}
    livenessProbe: {exec: {command: ["true"]}, periodSeconds: 5}
`;
  const [got] = readPod(text, file).pods;
  if (!got) throw new Error("no pod");
  const { uid } = got.metadata;
  assert.match(uid, /^[0-9a-f]{32}$/);
  // contract/samples/pods.json, without what the agent's run added (seen time, status).
  const want: BoundPod = {
    metadata: {
      name: "p-node1",
      namespace: "default",
      uid,
      annotations: { "kubernetes.io/config.hash": uid, "kubernetes.io/config.source": "file" },
    },
    spec: {
      containers: [{
        name: "c",
        image: "localhost/busybox:1",
        command: ["sh", "-c", "echo line-one; sleep 1000"],
        resources: { limits: { memory: "64Mi" }, requests: { memory: "64Mi" } },
        livenessProbe: {
          exec: { command: ["true"] },
          timeoutSeconds: 1,
          periodSeconds: 5,
          successThreshold: 1,
          failureThreshold: 3,
        },
        terminationMessagePath: "/dev/termination-log",
        terminationMessagePolicy: "File",
        imagePullPolicy: "IfNotPresent",
      }],
      restartPolicy: "Always",
      terminationGracePeriodSeconds: 30,
      dnsPolicy: "ClusterFirst",
      nodeName: "node1",
      securityContext: {},
      schedulerName: "default-scheduler",
      tolerations: [{ operator: "Exists", effect: "NoExecute" }],
      enableServiceLinks: true,
    },
    status: { phase: "Pending" },
  };
  assert.deepEqual(got, want);
});

Deno.test("the UID is fixed for ever: this value must never change, or every node's static pods restart at an upgrade", () => {
  assert.equal(bound(pod()).metadata.uid, "952660c3c66223b83dc6175e9ae5cc7c");
  assert.equal(bound(pod(), http).metadata.uid, "47f9716cf785c7b37599e90813161d07");
});

Deno.test("the UID follows the content, the node, and the place; not the order, the status or what is empty", () => {
  const uid = (decoded: Pod, options = file) => bound(decoded, options).metadata.uid;
  const first = uid(pod());
  assert.equal(uid({ spec: { containers: [{ image: "busybox:1", name: "c" }] }, metadata: { name: "web" } }), first);
  assert.equal(uid(pod({ status: { phase: "Failed" } })), first);
  assert.equal(uid(pod({ metadata: { name: "web", labels: {}, finalizers: [] } })), first);
  assert.notEqual(uid(pod({ metadata: { name: "web", labels: { a: "b" } } })), first);
  assert.notEqual(uid(pod({ spec: { containers: [{ name: "c", image: "busybox:1" }], hostNetwork: true } })), first);
  assert.notEqual(uid(pod({ spec: { containers: [{ name: "c", image: "busybox:1" }], hostUsers: false } })), first);
  assert.notEqual(uid(pod(), { ...file, nodeName: "node2" }), first);
  assert.notEqual(uid(pod(), { ...file, origin: { source: "file", path: "/manifests/q.yaml" } }), first);
  assert.equal(uid(pod(), http), uid(pod(), { ...http, nodeName: "node2" }), "a URL pod's UID has no node part");
  assert.equal(uid(pod({ metadata: { name: "web", uid: "my-own" } })), "my-own");
});

Deno.test("name, namespace, node and source are set", () => {
  const got = bound(pod({ metadata: { name: "web", namespace: "kube-system" } }), http);
  assert.equal(got.metadata.name, "web-node1");
  assert.equal(got.metadata.namespace, "kube-system");
  assert.equal(got.spec.nodeName, "node1");
  assert.equal(got.spec.tolerations, undefined, "only files get the toleration");
  assert.equal(got.metadata.annotations?.["kubernetes.io/config.source"], "http");
});

Deno.test("the toleration replaces one that means the same, and is not doubled", () => {
  const tolerations = [{ key: "a", operator: "Exists" }, {
    operator: "Exists",
    effect: "NoExecute",
    tolerationSeconds: 5,
  }];
  const spec = { containers: [{ name: "c", image: "i" }], tolerations };
  assert.deepEqual(bound(pod({ spec })).spec.tolerations, [tolerations[0], {
    operator: "Exists",
    effect: "NoExecute",
  }]);
});

Deno.test("what has no meaning in a manifest is dropped, with a warning", () => {
  const { pod: got, warnings } = toStaticPod(
    pod({
      metadata: {
        name: "web",
        selfLink: "/x",
        deletionTimestamp: "2026-01-01T00:00:00Z",
        deletionGracePeriodSeconds: 0,
        annotations: { "kubernetes.io/config.mirror": "x", "kubernetes.io/config.hash": "old", keep: "me" },
      },
      status: { phase: "Running", podIP: "10.0.0.1" },
    }),
    file,
  );
  assert.deepEqual(got.status, { phase: "Pending" });
  assert.deepEqual(Object.keys(got.metadata).sort(), ["annotations", "name", "namespace", "uid"]);
  assert.deepEqual(Object.keys(got.metadata.annotations ?? {}).sort(), [
    "keep",
    "kubernetes.io/config.hash",
    "kubernetes.io/config.source",
  ]);
  assert.equal(warnings.length, 4);
});

Deno.test("references to API objects are refused, each named with its field", () => {
  const container = { name: "c", image: "i" };
  const cases: [Partial<NonNullable<Pod["spec"]>>, string][] = [
    [{ serviceAccountName: "sa" }, "serviceaccounts (spec.serviceAccountName)"],
    [{ serviceAccount: "sa" }, "serviceaccounts (spec.serviceAccountName)"],
    [{ imagePullSecrets: [{ name: "s" }] }, "secrets (spec.imagePullSecrets[0])"],
    [
      { containers: [{ ...container, envFrom: [{ secretRef: { name: "s" } }] }] },
      "secrets (spec.containers[0].envFrom[0].secretRef)",
    ],
    [
      { containers: [{ ...container, env: [{ name: "A", valueFrom: { configMapKeyRef: { name: "m", key: "k" } } }] }] },
      "configmaps (spec.containers[0].env[0].valueFrom.configMapKeyRef)",
    ],
    [
      { volumes: [{ name: "v", configMap: { name: "m" } }] },
      "configmaps (via configmap volumes) (spec.volumes[0].configMap)",
    ],
    [
      { volumes: [{ name: "v", persistentVolumeClaim: { claimName: "p" } }] },
      "persistentvolumeclaims (spec.volumes[0].persistentVolumeClaim)",
    ],
    [
      {
        serviceAccountName: "sa",
        volumes: [{ name: "v", projected: { sources: [{ serviceAccountToken: { path: "t" } }] } }],
      },
      "serviceaccounts (via projected volumes) (spec.volumes[0].projected.sources[0].serviceAccountToken)",
    ],
    [{ resourceClaims: [{ name: "r", resourceClaimName: "x" }] }, "resourceclaims (spec.resourceClaims)"],
    [
      { volumes: [{ name: "v", rbd: { monitors: ["m"], image: "i", secretRef: { name: "s" } } }] },
      "secrets (spec.volumes[0].rbd.secretRef)",
    ],
  ];
  for (const [spec, want] of cases) {
    const message = refused(pod({ spec: { containers: [container], ...spec } }));
    assert.ok(
      message.startsWith('/manifests/p.yaml: pod "default/web-node1": static pods may not reference '),
      message,
    );
    assert.ok(message.includes(want), `${message} should tell ${want}`);
  }
  const allowed = pod({ spec: { containers: [container], imagePullSecrets: [{ name: "s" }] } });
  assert.ok(toStaticPod(allowed, { ...file, preventApiReferences: false }));
});

Deno.test("volumes that need no API are fine", () => {
  const volumes = [
    { name: "a", hostPath: { path: "/x" } },
    { name: "b", emptyDir: {} },
    { name: "c", downwardAPI: { items: [{ path: "l", fieldRef: { fieldPath: "metadata.labels" } }] } },
    { name: "d", projected: { sources: [{ downwardAPI: { items: [] } }] } },
    { name: "e" },
  ];
  const got = bound(pod({ spec: { containers: [{ name: "c", image: "i" }], volumes } }));
  assert.deepEqual(got.spec.volumes?.[4], { name: "e", emptyDir: {} });
});

Deno.test("a control plane's manifest, as cluster installers write them, is fine and without warnings", () => {
  const text = `
apiVersion: v1
kind: Pod
metadata:
  annotations: {kubeadm.kubernetes.io/etcd.advertise-client-urls: "https://10.0.0.1:2379"}
  creationTimestamp: null
  labels: {component: etcd, tier: control-plane}
  name: etcd
  namespace: kube-system
spec:
  containers:
  - command: [etcd, --listen-client-urls=https://127.0.0.1:2379]
    image: registry.example.org/etcd:3.6.1-0
    name: etcd
    imagePullPolicy: IfNotPresent
    livenessProbe:
      failureThreshold: 8
      httpGet: {host: 127.0.0.1, path: /livez, port: probe-port, scheme: HTTP}
      initialDelaySeconds: 10
      periodSeconds: 10
      timeoutSeconds: 15
    ports:
    - {containerPort: 2381, name: probe-port, protocol: TCP}
    resources: {requests: {cpu: 100m, memory: 100Mi}}
    volumeMounts:
    - {mountPath: /var/lib/etcd, name: etcd-data}
    - {mountPath: /etc/kubernetes/pki/etcd, name: etcd-certs, readOnly: true}
  hostNetwork: true
  priority: 2000001000
  priorityClassName: system-node-critical
  securityContext: {seccompProfile: {type: RuntimeDefault}}
  volumes:
  - hostPath: {path: /etc/kubernetes/pki/etcd, type: DirectoryOrCreate}
    name: etcd-certs
  - hostPath: {path: /var/lib/etcd, type: DirectoryOrCreate}
    name: etcd-data
status: {}
`;
  const { pods, warnings } = readPod(text, file);
  assert.deepEqual(warnings, []);
  assert.equal(pods[0]?.metadata.name, "etcd-node1");
  assert.equal(pods[0]?.spec.containers[0]?.ports?.[0]?.hostPort, 2381);
});
