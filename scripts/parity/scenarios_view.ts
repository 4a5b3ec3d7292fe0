import { box, ended, once, pod, ready, type Scenario, tells } from "./scenario.ts";

const field = (name: string, fieldPath: string) => ({ name, valueFrom: { fieldRef: { fieldPath } } });
const resource = (name: string, resource: string, divisor?: string) => ({
  name,
  valueFrom: { resourceFieldRef: { resource, ...(divisor === undefined ? {} : { divisor }) } },
});

/** The lines of /proc/self/status and limits that a security context decides. */
const identity = "id; grep -E '^(Uid|Gid|Groups|Cap[IPEBA]|NoNewPrivs|Seccomp):' /proc/self/status; umask; pwd";
/** What is mounted below a directory, without what differs by run. */
const listing = (path: string) =>
  `cd ${path}; find . | sort | while read f; do stat -c '%A %u %g %n' "$f"; [ -h "$f" ] && readlink "$f"; done ` +
  `| sed -E 's/[.]{2}[0-9_]{19}[.][0-9]+/..data-dir/'`;

/** Pods whose container says what it sees: variables, volumes, resources, identity, files of the node. */
export const viewScenarios: readonly Scenario[] = [
  {
    name: "environment",
    pod: pod("environment", {
      restartPolicy: "Never",
      containers: [tells("main", "env | sort", {
        resources: { requests: { cpu: "10m", memory: "8Mi" }, limits: { cpu: "100m" } },
        envFrom: [
          { configMapRef: { name: "parity" } },
          { prefix: "S_", secretRef: { name: "parity" } },
          { configMapRef: { name: "absent", optional: true } },
        ],
        env: [
          { name: "PLAIN", value: "a" },
          { name: "REFERS", value: "$(PLAIN)-$(NOBODY)-$$(PLAIN)-$(word)" },
          { name: "CONFIG", valueFrom: { configMapKeyRef: { name: "parity", key: "word" } } },
          { name: "SECRET", valueFrom: { secretKeyRef: { name: "parity", key: "user" } } },
          { name: "MAYBE", valueFrom: { secretKeyRef: { name: "parity", key: "none", optional: true } } },
          field("NAME", "metadata.name"),
          field("SPACE", "metadata.namespace"),
          field("UID", "metadata.uid"),
          field("LABEL", "metadata.labels['app']"),
          field("NODE", "spec.nodeName"),
          field("ACCOUNT", "spec.serviceAccountName"),
          field("HOST", "status.hostIP"),
          field("IPS", "status.podIPs"),
          resource("CPU_LIMIT", "limits.cpu"),
          resource("CPU_MILLI", "requests.cpu", "1m"),
          resource("MEMORY", "limits.memory", "1Mi"),
          resource("STORAGE", "limits.ephemeral-storage", "1Gi"),
        ],
      })],
    }, { labels: { app: "environment" } }),
    steps: once("told", ended("Succeeded")),
  },
  {
    name: "volumes",
    pod: pod("volumes", {
      restartPolicy: "Never",
      volumes: [
        { name: "scratch", emptyDir: {} },
        { name: "memory", emptyDir: { medium: "Memory", sizeLimit: "1Mi" } },
        { name: "secret", secret: { secretName: "parity", defaultMode: 0o400 } },
        { name: "config", configMap: { name: "parity", items: [{ key: "word", path: "deep/word", mode: 0o640 }] } },
        { name: "absent", configMap: { name: "absent", optional: true } },
        {
          name: "down",
          downwardAPI: {
            items: [
              { path: "labels", fieldRef: { fieldPath: "metadata.labels" } },
              { path: "notes", fieldRef: { fieldPath: "metadata.annotations" } },
              { path: "memory", resourceFieldRef: { containerName: "main", resource: "requests.memory" } },
            ],
          },
        },
        {
          name: "all",
          projected: {
            sources: [
              { secret: { name: "parity", items: [{ key: "user", path: "user" }] } },
              { configMap: { name: "parity", items: [{ key: "app.conf", path: "conf" }] } },
              { downwardAPI: { items: [{ path: "name", fieldRef: { fieldPath: "metadata.name" } }] } },
              { serviceAccountToken: { path: "token", expirationSeconds: 600 } },
            ],
          },
        },
      ],
      containers: [
        tells("main", `${listing("/v")}; cat /v/down/* /v/all/conf /v/all/name; echo; echo; cat /v/sub`, {
          resources: { requests: { memory: "8Mi" } },
          volumeMounts: [
            ...["scratch", "memory", "secret", "config", "absent", "down", "all"].map((name) => ({
              name,
              mountPath: `/v/${name}`,
            })),
            { name: "config", mountPath: "/v/sub", subPath: "deep/word" },
          ],
        }),
        tells(
          "mounts",
          "mount | grep -E ' /(v|etc|dev/termination|var/run/secrets)' | sed -E 's/^[^ ]+ on//;s/,size=[0-9]+k//;s/,nr_inodes=[0-9]+//' | sort",
          {
            volumeMounts: [
              { name: "scratch", mountPath: "/v/scratch", readOnly: true },
              { name: "memory", mountPath: "/v/memory" },
              { name: "secret", mountPath: "/v/secret" },
              { name: "all", mountPath: "/v/all" },
            ],
          },
        ),
      ],
    }, { labels: { b: "2", a: "1" }, annotations: { note: 'with "quotes"\nand lines' } }),
    steps: once("told", ended("Succeeded")),
  },
  {
    name: "group",
    pod: pod("group", {
      restartPolicy: "Never",
      securityContext: { fsGroup: 2000, supplementalGroups: [3000], runAsUser: 1000, runAsGroup: 1001 },
      volumes: [
        { name: "scratch", emptyDir: {} },
        { name: "secret", secret: { secretName: "parity" } },
        { name: "token", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } },
      ],
      containers: [tells("main", `${identity}; ${listing("/v")}; cat /etc/hosts /etc/resolv.conf; hostname`, {
        volumeMounts: ["scratch", "secret", "token"].map((name) => ({ name, mountPath: `/v/${name}` })),
      })],
      hostname: "group-host",
      subdomain: "sub",
      hostAliases: [{ ip: "10.1.2.3", hostnames: ["alias", "alias.example"] }],
      dnsPolicy: "None",
      dnsConfig: { nameservers: ["10.9.9.9"], searches: ["example.test"], options: [{ name: "ndots", value: "3" }] },
    }),
    steps: once("told", ended("Succeeded")),
  },
  {
    name: "security",
    pod: pod("security", {
      restartPolicy: "Never",
      securityContext: {
        seccompProfile: { type: "RuntimeDefault" },
        sysctls: [{ name: "net.ipv4.ip_unprivileged_port_start", value: "0" }],
      },
      containers: [
        tells("narrow", `${identity}; touch /x; cat /proc/sys/net/ipv4/ip_unprivileged_port_start`, {
          workingDir: "/tmp",
          securityContext: {
            runAsUser: 1000,
            allowPrivilegeEscalation: false,
            readOnlyRootFilesystem: true,
            capabilities: { drop: ["ALL"], add: ["NET_BIND_SERVICE"] },
          },
        }),
        tells("wide", `${identity}; ls /dev | wc -l | sed 's/^[0-9][0-9]*$/many/'`, {
          securityContext: { privileged: true },
        }),
        tells("usual", identity),
      ],
    }),
    steps: once("told", ended("Succeeded")),
  },
  {
    name: "guaranteed",
    pod: pod("guaranteed", {
      restartPolicy: "Never",
      containers: [
        tells(
          "main",
          "cat /sys/fs/cgroup/cpu/cpu.shares /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/memory/memory.limit_in_bytes; " +
            "cat /proc/1/oom_score_adj; cat /proc/self/cgroup | cut -d: -f2- | sed -E 's/pod[-0-9a-f]{36}/pod/; s/[0-9a-f]{64}/id/'",
          { resources: { limits: { cpu: "50m", memory: "32Mi" } } },
        ),
      ],
    }),
    steps: once("told", ended("Succeeded")),
  },
  {
    name: "burstable",
    pod: pod("burstable", {
      restartPolicy: "Never",
      initContainers: [box("side", { restartPolicy: "Always", resources: { requests: { cpu: "20m" } } })],
      containers: [
        tells(
          "main",
          "cat /sys/fs/cgroup/cpu/cpu.shares /sys/fs/cgroup/cpu/cpu.cfs_quota_us /sys/fs/cgroup/memory/memory.limit_in_bytes; " +
            "cat /proc/1/oom_score_adj",
          { resources: { requests: { cpu: "10m", memory: "16Mi" }, limits: { memory: "64Mi" } } },
        ),
        tells("best", "cat /sys/fs/cgroup/cpu/cpu.shares /proc/1/oom_score_adj"),
      ],
    }),
    steps: once("told", ended("Succeeded")),
  },
  {
    name: "host-network",
    pod: pod("host-network", {
      hostNetwork: true,
      containers: [box("main", { ports: [{ containerPort: 34567 }] })],
    }),
    steps: once("ready", ready),
  },
];
