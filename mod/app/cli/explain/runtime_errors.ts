/** Why the runtime could not make or start a container, as far as its words tell. */
export type RuntimeErrorKind =
  | "runtime"
  | "command"
  | "mount"
  | "working directory"
  | "memory"
  | "cpu"
  | "cgroup"
  | "rlimit"
  | "seccomp"
  | "apparmor"
  | "selinux"
  | "user"
  | "sysctl"
  | "hook"
  | "device"
  | "namespace"
  | "image"
  | "space"
  | "exhausted"
  | "name"
  | "silence";

/** The words of a kind; the first that is found counts. What a remedy says more of goes before what it is a case of. */
interface Rule {
  readonly kind: RuntimeErrorKind;
  readonly words: RegExp;
  readonly remedy: string;
}

/**
 * The words are of runc 1.0 to 1.3 and containerd 1.6 and 2. Names that users give (commands, paths) stand in them too,
 * so what is anchored at such a name comes first: a program `seccomp-check` that is not there is a command.
 */
const rules: readonly Rule[] = [
  {
    kind: "runtime",
    words:
      /unable to retrieve OCI runtime error|no runtime for "[^"]*" is configured|failed to get sandbox runtime|runtime handler .* (not|un)|exec: "[^"]*(?:containerd-shim[^"/]*|\brunc|\bcrun|\brunsc|\byouki|kata-runtime)": executable file not found/,
    remedy: "Install the runtime's own program on the node, or correct the runtime's configuration or the pod's " +
      "runtimeClassName (its handler must be one of the runtime's): kubelet check.",
  },
  {
    kind: "command",
    words: /exec format error/,
    remedy:
      "The program is for another kind of machine, or a script without its first line (#!): use an image for this " +
      "node's architecture, or correct command in the manifest.",
  },
  {
    kind: "command",
    words: /argument list too long/,
    remedy: "Shorten args, command or env in the manifest: Linux takes 128 KiB of each and 2 MiB of all.",
  },
  {
    kind: "command",
    words: /exec: "(?:[^"\\]|\\.)*": permission denied|(?<!\/)\bexec \/\S*: permission denied/,
    remedy:
      "Correct command or args in the manifest: it must name a file (not a directory) that the container's user may execute.",
  },
  {
    kind: "command",
    words:
      /exec: "|executable file not found|(?<!\/)\bexec \/\S*: no such file|no command specified|not found in \$PATH/,
    remedy:
      "Correct command or args in the manifest; the program, and the interpreter that a script names, must be in the image.",
  },
  {
    kind: "mount",
    words: /(?:to rootfs|mount destination|error mounting).*not a directory|mount a directory onto a file/,
    remedy:
      "A file is mounted on a directory, or the other way round: correct mountPath or subPath in the manifest, and set " +
      "the type of a hostPath volume (File, Directory), so that it is looked at first.",
  },
  {
    kind: "mount",
    words: /(?:to rootfs|mount destination|error mounting).*read-only file system/,
    remedy:
      "The mountPath is not in the image, and nothing can be made there: put the directory into the image, correct " +
      "mountPath, or mount it not below a read-only volume.",
  },
  {
    kind: "mount",
    words: /not a shared(?: or slave)? mount/,
    remedy:
      "Make the path on the node a shared mount (mount --make-rshared), or take mountPropagation out of the manifest.",
  },
  {
    kind: "mount",
    words:
      /error mounting|fulfil mount request|to rootfs at|to rootfs "|mount destination|mount through procfd|failed to (?:stat|mkdir) "|mounting "/,
    remedy:
      "Correct the volume mount that the message names: its path must be on the node and usable there (for hostPath " +
      "set the type, such as DirectoryOrCreate).",
  },
  {
    kind: "working directory",
    words: /chdir to cwd|current working directory|container init: mkdir \S*: /,
    remedy:
      "Correct workingDir in the manifest, or WORKDIR of the image: it must be a directory that the container's user " +
      "may enter (securityContext.runAsUser).",
  },
  {
    kind: "memory",
    words:
      /unable to set memory limit|mkdir \/sys\/fs\/cgroup\S*: cannot allocate memory|memory\.(?:limit_in_bytes|max)": |memory\.(?:limit_in_bytes|max): (?:device|invalid)|OOM-killed|memory limit too low|final child's pid from pipe|bootstrap data to pipe/i,
    remedy:
      "Raise resources.limits.memory: the container, or the pod, is given less than the runtime itself takes to start it (some 12 MiB).",
  },
  {
    kind: "cpu",
    words: /cpu\.(?:cfs_quota_us|cfs_period_us|max|max\.burst): invalid argument/,
    remedy:
      "Correct resources.limits.cpu of the container: it must be at least 10m, and not more than the pod's own limit.",
  },
  {
    kind: "rlimit",
    words: /rlimit/,
    remedy:
      "The runtime may not give the container the limit (7: open files, 8: locked memory, 6: processes): raise it for " +
      "the runtime's own service (LimitNOFILE=, LimitMEMLOCK=, LimitNPROC=), or lower what its configuration asks for.",
  },
  {
    kind: "seccomp",
    words: /seccomp/,
    remedy:
      "Correct securityContext.seccompProfile: a localhost profile must lie in seccomp/ of the agent's root directory " +
      "and name what this node's kernel and libseccomp know; RuntimeDefault is always there.",
  },
  {
    kind: "apparmor",
    words: /apparmor/i,
    remedy:
      "Load the AppArmor profile on the node (apparmor_parser -r FILE) and see that the kernel has AppArmor on, or " +
      "correct securityContext.appArmorProfile.",
  },
  {
    kind: "selinux",
    words: /selinux|attr\/keycreate|\blabel\b.*(?:invalid|not supported)/i,
    remedy:
      "Correct securityContext.seLinuxOptions, or turn SELinux on for the node and for the runtime (enable_selinux).",
  },
  {
    kind: "user",
    words:
      /no users found|no groups found|unable to find (?:user|group)|no matching entries in (?:passwd|group)|unable to setup user|resolve username|[ug]ids? .*must be in range/,
    remedy:
      "The image does not have the user or group: set securityContext.runAsUser (and runAsGroup) to a number, or use an " +
      "image whose /etc/passwd and /etc/group have the name.",
  },
  {
    kind: "sysctl",
    words: /sysctl|\/proc\/sys\//,
    remedy:
      "Correct securityContext.sysctls of the pod: the kernel must know the name, and it must be one that each pod has of " +
      "its own (not with hostNetwork or hostIPC).",
  },
  {
    kind: "hook",
    words: /\bhooks? #?\d|running \w* ?hook/,
    remedy:
      "A program that the runtime runs for each container failed (a hook of its configuration or of a device): look at " +
      "that program, such as the one for GPUs, and at the runtime's log.",
  },
  {
    kind: "device",
    words: /custom device|CDI device|unresolvable|not a device node|invalid device type|device cgroup|mknod/,
    remedy:
      "The device is not on this node, or no longer: look at the plugin that gave it (kubelet check), and at the " +
      "specifications in /etc/cdi and /var/run/cdi.",
  },
  {
    kind: "cgroup",
    words: /cgroup|unable to start unit|creating systemd unit|Message recipient disconnected/,
    remedy:
      "Put the node's control groups in order: agent and runtime must use one driver (cgroupDriver, SystemdCgroup), and " +
      "the kernel must have the controllers and room for groups; kubelet check.",
  },
  {
    kind: "namespace",
    words: /namespace|\/ns\/|\bnsexec|unshare|setns|netns/,
    remedy:
      "The pod's sandbox has lost its namespaces, or the kernel gives no more: the agent makes a new sandbox by itself; " +
      "when it goes on, raise user.max_*_namespaces (sysctl), and look at what ends the pause processes; kubelet check.",
  },
  {
    kind: "image",
    words:
      /invalid rootfs|rootfs.*(?:no such|not found)|snapshot .*(?:not|already)|parent snapshot|content digest|failed to extract layer/,
    remedy:
      "The image's files on the node are damaged: remove the image (crictl rmi, ctr -n k8s.io images rm), so that it is " +
      "pulled anew.",
  },
  {
    kind: "space",
    words: /no space left on device|disk quota exceeded/,
    remedy: "Free space or inodes on the node's disk (df -h, df -i): the runtime has none left.",
  },
  {
    kind: "exhausted",
    words: /too many open files|resource temporarily unavailable|cannot allocate memory|pthread_create/,
    remedy:
      "The node has no more processes, memory or open files for the runtime: end what takes them, or raise its limits " +
      "(TasksMax=, LimitNOFILE= of its service).",
  },
  {
    kind: "name",
    words: /name "[^"]*" is reserved/,
    remedy:
      "An earlier try with the runtime is not over yet; the agent tries again by itself. When it goes on, restart the runtime.",
  },
  {
    kind: "silence",
    words: /deadline ?exceeded|no answer|connection refused|transport|unavailable|no end within/i,
    remedy: "Look at the runtime, which does not answer: kubelet check; its log. The agent tries again by itself.",
  },
];

/** What a failure of the runtime is about, and what somebody can do; undefined when its words are not known. Pure. */
export function explainRuntimeError(message: string): { kind: RuntimeErrorKind; remedy: string } | undefined {
  // A message of any length is looked at in the part that the runtime's own words are in.
  const text = message.length > 8192 ? `${message.slice(0, 4096)} ${message.slice(-4096)}` : message;
  const rule = rules.find(({ words }) => words.test(text));
  return rule && { kind: rule.kind, remedy: rule.remedy };
}
