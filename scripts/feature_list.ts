/** A feature of the kubelet as the list counts them. P0 is needed by any usable node, P3 is alpha or legacy. */
export interface Feature {
  readonly id: string;
  readonly name: string;
  readonly tier: "P0" | "P1" | "P2" | "P3";
}

/** A section of the list: its title and its features, in order, one a line as `id tier name`. */
const sections: readonly (readonly [title: string, features: string])[] = [
  [
    "Process, configuration, start-up",
    `
A1 P0 Config file
A2 P0 Flags over file
A3 P1 Drop-in directory
A4 P0 Validation
A5 P0 Feature gates
A6 P0 Standalone mode
A7 P3 Run-once
A8 P0 API client set
A9 P0 Node name
A10 P0 Root dir layout
A11 P1 systemd notify
A12 P2 systemd watchdog
A13 P3 Lock file
A14 P1 OOM score of self
A15 P1 Kernel tunables
A16 P1 Swap check
A17 P1 Cgroup version rule
A18 P0 Runtime ready gate
A19 P1 Cgroup driver from CRI
A20 P1 Logging config
A21 P2 Tracing
A22 P0 Health checks
A23 P2 Pprof / profiling
A24 P3 Rootless mode
A25 P1 Crash on bad bootstrap
A26 P1 Client connection rotation
A27 P1 Separate image endpoint
A28 P1 Max open files
A29 P2 Hidden metrics switch
A30 P0 Signals
`,
  ],
  [
    "Pod sources, workers, sync",
    `
B1 P0 File source
B2 P2 HTTP source
B3 P0 API source
B4 P0 Source merge
B5 P0 Static pod defaults
B6 P0 Mirror pods
B7 P0 Static pod serialisation
B8 P0 Pod workers
B9 P0 Sync loop
B10 P0 PLEG generic
B11 P2 PLEG on demand
B12 P3 Evented PLEG
B13 P0 Admission chain
B14 P0 Fit predicates
B15 P1 Critical-pod preemption
B16 P1 OS check
B17 P2 Declared features check
B18 P1 Active deadline
B19 P0 Orphan handling
B20 P0 Termination ordering
B21 P0 Phase computation
B22 P0 Conditions
B23 P0 Status manager
B24 P0 Start-up of terminated pods
B25 P0 Pod deletion with finalizers
B26 P0 QoS class in status
B27 P1 Events
B28 P2 Node shutdown admission
B29 P0 Re-adopt after restart
B30 P1 Node reboot
B31 P1 Force delete
B32 P1 Container status fields
B33 P1 Pod CIDR to runtime
`,
  ],
  [
    "Sandboxes, containers, lifecycle",
    `
C1 P0 Sandbox create/replace
C2 P0 Container create/start
C3 P0 Labels and annotations
C4 P0 Regular init containers
C5 P1 Sidecars
C6 P1 Ephemeral containers
C7 P0 Pod restart policies
C8 P2 Container restart rules
C9 P0 Crash-loop back-off
C10 P2 Reduced back-off
C11 P0 postStart / preStop exec, http
C12 P1 Sleep hook
C13 P0 Grace periods
C14 P1 Termination order with sidecars
C15 P1 Termination message
C16 P0 Exit-code and reason mapping
C17 P1 Legacy log symlinks
C18 P1 Hostname, FQDN, subdomain
C19 P2 Hostname override
C20 P1 Managed /etc/hosts
C21 P1 DNS config
C22 P0 Env vars
C23 P1 Service env vars
C24 P2 EnvFiles (fileKeyRef)
C25 P0 Security context
C26 P2 supplementalGroupsPolicy
C27 P1 Seccomp, seccompDefault
C28 P1 AppArmor
C29 P2 SELinux options
C30 P2 procMount
C31 P0 Host namespaces
C32 P1 Sysctls
C33 P1 Mount propagation
C34 P2 Recursive read-only mounts
C35 P2 User namespaces
C36 P3 Host-network user namespaces
C37 P1 RuntimeClass handler
C38 P2 Pod overhead
C39 P2 Image volumes
C40 P3 Container stop signal
C41 P2 Checkpoint container
C42 P2 Pod-level resources
C43 P2 In-place resize
C44 P2 Pod-level resize
C45 P1 Port mappings
C46 P1 Kubelet restart keeps status
C47 P1 Pod IPs / host IPs
C48 P1 Termination of job pods
C49 P0 Exec session details
C50 P0 Network not ready hold
C51 P2 Lifecycle HTTPS to HTTP fallback
`,
  ],
  [
    "Probes",
    `
D1 P0 Liveness, readiness, startup workers
D2 P0 Exec probe + timeout
D3 P0 HTTP probe
D4 P0 TCP probe
D5 P1 gRPC probe
D6 P0 Startup gate
D7 P1 Probe-level grace
D8 P1 Behaviour at termination
D9 P2 Probe load
D10 P1 Probe metrics
`,
  ],
  [
    "Images, GC, logs",
    `
E1 P0 Pull policies
E2 P0 Image back-off
E3 P1 Serial / parallel pulls
E4 P1 Pull QPS
E5 P1 Pull secrets
E6 P2 Exec credential plugins
E7 P2 Token for plugins
E8 P2 Verified pulls
E9 P1 Image ref / id reporting
E10 P1 Image GC
E11 P2 Image max age
E12 P1 Pinned images
E13 P1 Container GC
E14 P1 Sandbox and log dir GC
E15 P1 Log rotation
E16 P0 Log reading
E17 P2 Split image/container fs
E18 P3 Runtime handler in image ops
`,
  ],
  [
    "Resources and node",
    `
F1 P0 Node registration
F2 P0 Node status
F3 P0 Node lease
F4 P0 Addresses
F5 P1 Reserved resources
F6 P1 Enforce node allocatable
F7 P0 QoS cgroups
F8 P0 Pod cgroups
F9 P0 cgroup v2, systemd driver
F10 P0 CPU requests, limits, CFS
F11 P2 Hugepages
F12 P1 PID limits
F13 P0 OOM scores
F14 P1 Group OOM kill
F15 P2 OOM watcher
F16 P2 Swap limited
F17 P3 Memory QoS
F18 P2 CPU manager none/static
F19 P2 CPU manager options
F20 P2 Quota off for exclusive CPUs
F21 P2 Memory manager
F22 P2 Topology manager
F23 P3 Pod-level managers
F24 P1 Ephemeral storage limits
F25 P3 Project quotas
F26 P1 Node info on runtime handlers
F27 P1 Taints at registration
F28 P1 Extended resources reset
F29 P2 iptables hint
F46 P0 Ready reasons
F47 P2 External cloud provider
F48 P2 Register off
F49 P0 maxPods, podsPerCore
F30 P1 Hard eviction
F37 P1 Soft eviction
F38 P1 Min reclaim
F39 P1 Ranking
F40 P1 Node-level reclaim first
F41 P1 Pressure conditions and hold time
F42 P1 Pressure admission
F43 P2 PID eviction
F44 P1 Critical pods immune
F45 P2 Local isolation off
F31 P3 memcg / kernel notification
F32 P2 Node declared features
F33 P2 Graceful node shutdown
F34 P3 QoS reserved memory
F35 P2 PSI stats
F36 P1 Accelerator-free cAdvisor
`,
  ],
  [
    "Devices and claims",
    `
G1 P2 Device plugin registration
G2 P2 ListAndWatch, health
G3 P2 Allocate, PreferredAllocation, PreStart
G4 P2 CDI devices, env, mounts, annotations
G5 P2 Checkpoint and restart
G6 P2 Device health in pod status
G7 P2 DRA plugin registration
G8 P2 DRA prepare/unprepare
G9 P2 DRA slice cleanup
G10 P2 DRA health
G11 P2 DRA extended resources
G12 P2 PodResources API
G13 P1 Plugin watcher
G14 P3 Pods API
`,
  ],
  [
    "Volumes",
    `
H1 P0 Volume manager loops
H2 P0 Wait for mount
H3 P1 Reconstruction after restart
H4 P0 emptyDir
H5 P0 hostPath
H6 P0 configMap
H7 P0 secret
H8 P0 downwardAPI
H9 P0 projected
H10 P0 Service account token
H11 P3 ClusterTrustBundle projection
H12 P3 Pod certificates
H13 P1 subPath / subPathExpr
H14 P1 CSI filesystem volumes
H15 P1 CSI block volumes
H16 P1 CSI inline ephemeral
H17 P1 CSINode
H18 P1 Generic ephemeral PVC
H19 P1 PVC and PV
H20 P1 Volume expansion
H21 P1 fsGroup and change policy
H22 P2 SELinux mount context
H23 P2 ReadWriteOncePod
H24 P2 NFS
H25 P2 iSCSI
H34 P3 Fibre channel
H35 P2 local PV
H26 P3 FlexVolume
H36 P3 gitRepo
H27 P2 In-tree to CSI migration
H28 P1 Attach/detach by controller or kubelet
H29 P1 Volume stats
H30 P0 configMap/secret cache
H31 P2 Attach limit rejection
H32 P1 Orphan volume cleanup
H33 P1 Token file owner and mode
H37 P1 volumesInUse / volumesAttached
H38 P1 Format and mount
H39 P2 Mount options and systemd scope
H40 P1 Devices (block PVC) in containers
`,
  ],
  [
    "Server, auth, certificates, observability",
    `
I1 P0 HTTPS server 10250
I2 P1 Read-only 10255
I3 P0 healthz 10248
I4 P0 Authentication
I5 P0 Authorization
I6 P0 exec, attach, port-forward
I7 P0 run, containerLogs
I8 P1 pods, runningpods, configz
I9 P2 node logs / query
I10 P1 stats/summary
I11 P1 metrics endpoints
I12 P2 checkpoint endpoint
I13 P1 TLS settings
I14 P0 Self-signed certificate
I15 P1 Serving cert by CSR and rotation
I16 P1 Client cert bootstrap and rotation
I17 P1 Reload of client CA file
I18 P2 flagz, statusz
I19 P3 CRI metrics source
I20 P1 Streaming idle timeout
I21 P2 Contention profiling, pprof
I22 P3 Pod logs split streams
I23 P1 Log rotation reopen
I25 P1 Handler switches
I26 P1 Node client RBAC shape
I27 P2 Log query limits
`,
  ],
];

/** The kubelet's features (v1.36, Linux) by section. */
export const featureList: readonly { readonly title: string; readonly features: readonly Feature[] }[] = sections.map(
  ([title, lines]) => ({
    title,
    features: lines.trim().split("\n").map((line) => {
      const [, id, tier, name] = /^(\S+) (P[0-3]) (.+)$/.exec(line) ?? [];
      if (id === undefined || name === undefined) throw new Error(`feature list: bad line ${line}`);
      return { id, name, tier: tier as Feature["tier"] };
    }),
  }),
);
