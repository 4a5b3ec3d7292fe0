import assert from "@assert";
import { explainRuntimeError, type RuntimeErrorKind } from "./runtime_errors.ts";

/** As containerd 1.6 and 2 hand on what runc says. */
const runc = (text: string) =>
  `failed to create containerd task: failed to create shim task: OCI runtime create failed: runc create failed: ${text}: unknown`;
const start = (text: string) => runc(`unable to start container process: ${text}`);
const init = (text: string) => start(`error during container init: ${text}`);

/** Texts of runc 1.1.5, as it printed them, unless another source is named. */
const texts: [kind: RuntimeErrorKind, remedy: RegExp, text: string][] = [
  ["command", /interpreter/, start('exec: "nosuch": executable file not found in $PATH')],
  ["command", /interpreter/, start('exec: "/nosuch": stat /nosuch: no such file or directory')],
  ["command", /not a directory.*may execute/, start('exec: "/bin": permission denied')],
  ["command", /may execute/, start('exec: "/bin/noexec": permission denied')],
  ["command", /architecture/, "exec /bin/bad: exec format error"],
  ["command", /interpreter/, "exec /bin/interp: no such file or directory"],
  ["command", /Shorten args/, "exec /bin/busybox: argument list too long"],
  ["command", /interpreter/, start('exec: "seccomp-apparmor-cgroup": executable file not found in $PATH')],
  ["command", /interpreter/, start('exec: "/rlimit/namespace": stat /rlimit/namespace: no such file or directory')],
  ["working directory", /workingDir/, init("mkdir /bin/busybox: not a directory")],
  ["working directory", /runAsUser/, start('chdir to cwd ("/root") set in config.json failed: permission denied')],
  [
    "working directory",
    /workingDir/,
    // runc 1.0
    'OCI runtime create failed: container_linux.go:367: starting container process caused: chdir to cwd ("/home/x") set in config.json failed: no such file or directory: unknown',
  ],
  [
    "rlimit",
    /LimitNOFILE=/,
    init("error setting rlimits for ready process: error setting rlimit type 7: operation not permitted"),
  ],
  ["rlimit", /LimitNOFILE=/, runc("wrong rlimit value: RLIMIT_FOO")],
  [
    "mount",
    /must be on the node/,
    init('error mounting "/nosuch/src" to rootfs at "/x": stat /nosuch/src: no such file or directory'),
  ],
  [
    "mount",
    /A file is mounted on a directory/,
    init(
      'error mounting "/etc/hostname" to rootfs at "/bin": mount /etc/hostname:/bin (via /proc/self/fd/6), flags: 0x1000: not a directory',
    ),
  ],
  [
    "mount",
    /A file is mounted on a directory/,
    // containerd adds a question of its own
    init(
      'error mounting "/etc" to rootfs at "/bin/busybox": mount /etc:/bin/busybox (via /proc/self/fd/6), flags: 0x1000: not a directory',
    ) + ": Are you trying to mount a directory onto a file (or vice-versa)? Check if the specified host path exists",
  ],
  [
    "mount",
    /nothing can be made there/,
    init(
      'error mounting "/var/lib/kubelet/pods/u/volumes/x" to rootfs at "/conf/x": create mount destination for /conf/x mount: mkdirat /run/rootfs/conf/x: read-only file system',
    ),
  ],
  [
    "mount",
    /make-rshared/,
    'failed to generate container "c" spec: failed to generate spec: path "/mnt" is mounted on "/" but it is not a shared mount',
  ],
  [
    "mount",
    /DirectoryOrCreate/,
    'failed to generate container "c" spec: failed to generate spec: failed to mkdir "/a/b": mkdir /a: file exists',
  ],
  [
    "mount",
    /must be on the node/,
    init('error mounting "/var/lib/seccomp/cgroup" to rootfs at "/x": permission denied'),
  ],
  [
    "namespace",
    /new sandbox/,
    runc("unable to create new parent process: namespace path: lstat /proc/999999/ns/pid: no such file or directory"),
  ],
  [
    "namespace",
    /new sandbox/,
    runc("unable to create new parent process: namespace path: lstat /var/run/netns/nosuch: no such file or directory"),
  ],
  [
    "memory",
    /limits\.memory/,
    init(
      "error setting cgroup config for procHooks process: unable to set memory limit to 4096 (current usage: 2355200, peak usage: 2514944)",
    ),
  ],
  [
    "memory",
    /limits\.memory/,
    // runc 1.0 on cgroup v1
    'container_linux.go:367: starting container process caused: process_linux.go:458: setting cgroup config for procHooks process caused: failed to write "1000": write /sys/fs/cgroup/memory/x/memory.limit_in_bytes: device or resource busy',
  ],
  [
    "memory",
    /limits\.memory/,
    start(
      "unable to apply cgroup configuration: mkdir /sys/fs/cgroup/memory/kubepods/burstable/pod1/2: cannot allocate memory",
    ),
  ],
  ["memory", /limits\.memory/, start("container init was OOM-killed (memory limit too low?)")],
  ["memory", /limits\.memory/, start("getting the final child's pid from pipe caused: EOF")],
  [
    "cpu",
    /limits\.cpu/,
    init(
      'error setting cgroup config for procHooks process: failed to write "100": write /sys/fs/cgroup/cpu/x/cpu.cfs_quota_us: invalid argument',
    ),
  ],
  [
    "cgroup",
    /one driver/,
    start(
      'unable to apply cgroup configuration: failed to write "99": write /sys/fs/cgroup/cpuset/x/cpuset.cpus: numerical result out of range',
    ),
  ],
  [
    "cgroup",
    /one driver/,
    init(
      "error setting cgroup config for procHooks process: cannot set hugetlb limit: container could not join or create cgroup",
    ),
  ],
  ["cgroup", /one driver/, init("error setting cgroup config for procHooks process: unable to freeze")],
  [
    "cgroup",
    /room for groups/,
    start("unable to apply cgroup configuration: mkdir /sys/fs/cgroup/memory/x: no space left on device"),
  ],
  [
    "cgroup",
    /one driver/,
    start(
      'unable to apply cgroup configuration: unable to start unit "cri-containerd-x.scope": Message recipient disconnected',
    ),
  ],
  [
    "apparmor",
    /apparmor_parser/,
    init(
      "unable to apply apparmor profile: apparmor failed to apply profile: write /proc/self/attr/exec: invalid argument",
    ),
  ],
  ["selinux", /seLinuxOptions/, runc("selinux label is specified in config, but selinux is disabled or not supported")],
  ["seccomp", /seccompProfile/, runc("string SCMP_ARCH_FOO is not a valid arch for seccomp")],
  [
    "seccomp",
    /seccompProfile/,
    start(
      "failed to connect with seccomp agent specified in the seccomp profile: dial unix /nosuch.sock: connect: no such file or directory",
    ),
  ],
  [
    "seccomp",
    /seccomp\/ of the agent's root directory/,
    'failed to generate container "c" spec: failed to generate seccomp spec opts: cannot load seccomp profile "/var/lib/kubelet/seccomp/x.json": open /var/lib/kubelet/seccomp/x.json: no such file or directory',
  ],
  ["user", /runAsUser/, start("unable to setup user: uids and gids must be in range 0-2147483647")],
  [
    "user",
    /runAsUser/,
    "failed to create containerd container: mount callback failed on /tmp/containerd-mount1: no users found",
  ],
  ["user", /runAsUser/, start("unable to find user foo: no matching entries in passwd file")],
  ["sysctl", /sysctls/, runc('sysctl "vm.swappiness" is not in a separate kernel namespace')],
  ["sysctl", /sysctls/, init("open /proc/sys/net/nosuch: no such file or directory")],
  ["hook", /runtime's log/, init("error running hook #0: fork/exec /nosuch/hook: no such file or directory")],
  ["device", /plugin that gave it/, runc('invalid device type "q"')],
  [
    "device",
    /plugin that gave it/,
    'failed to generate container "c" spec: failed to generate spec: error gathering device information while adding custom device "/dev/kvm0": no such file or directory',
  ],
  ["device", /\/etc\/cdi/, "CDI device injection failed: unresolvable CDI devices vendor.example/gpu=1"],
  ["image", /pulled anew/, runc("invalid rootfs: stat /run/x/rootfs: no such file or directory")],
  [
    "runtime",
    /Install the runtime's own program/,
    'failed to create containerd task: failed to create shim task: OCI runtime create failed: unable to retrieve OCI runtime error (open /run/x/log.json: no such file or directory): exec: "runc": executable file not found in $PATH: unknown',
  ],
  ["runtime", /runtimeClassName/, 'failed to get sandbox runtime: no runtime for "kata" is configured'],
  // runc 1.3.3
  ["command", /interpreter/, init('exec: "nosuch": executable file not found in $PATH')],
  ["mount", /must be on the node/, init("failed to fulfil mount request: open /nosuch/src: no such file or directory")],
  [
    "mount",
    /A file is mounted on a directory/,
    init(
      'error mounting "/etc/hostname" to rootfs at "/bin": mount src=/etc/hostname, dst=/bin, dstFd=/proc/thread-self/fd/49, flags=MS_BIND: not a directory',
    ),
  ],
  [
    "apparmor",
    /apparmor_parser/,
    init(
      "unable to apply apparmor profile: apparmor failed to apply profile: write fsmount:fscontext:proc/thread-self/attr/exec: invalid argument",
    ),
  ],
  [
    "sysctl",
    /sysctls/,
    init(
      "open sysctl net.nosuch file: unsafe procfs detected: openat2 fsmount:fscontext:proc/./sys/net/nosuch: no such file or directory",
    ),
  ],
  ["user", /runAsUser/, init("unable to setup user: cannot setuid to unmapped uid 4294967295 in user namespace")],
  [
    "hook",
    /runtime's log/,
    init("error running createRuntime hook #0: fork/exec /nosuch/hook: no such file or directory"),
  ],
  ["space", /df -i/, "failed to create containerd container: write /var/lib/containerd/x: no space left on device"],
  ["exhausted", /TasksMax=/, "failed to start shim: fork/exec /usr/bin/x: resource temporarily unavailable"],
  ["name", /tries again by itself/, 'failed to reserve container name "a_b_0": name "a_b_0" is reserved for "123"'],
  ["silence", /does not answer/, "context deadline exceeded"],
];
for (const [kind, remedy, text] of texts) {
  Deno.test(`a runtime's failure about ${kind}: ${text.slice(-90)}`, () => {
    const found = explainRuntimeError(text);
    assert.equal(found?.kind, kind, text);
    assert.match(found?.remedy ?? "", remedy);
    if (kind !== "command") assert.doesNotMatch(found?.remedy ?? "", /command or args/);
  });
}

Deno.test("words that are not known get no remedy, and a text without end costs nothing", () => {
  assert.equal(explainRuntimeError("no"), undefined);
  assert.equal(explainRuntimeError(""), undefined);
  assert.equal(explainRuntimeError("mounting x ".repeat(200_000)), undefined);
  assert.equal(explainRuntimeError(`${"x".repeat(100_000)}: seccomp`)?.kind, "seccomp");
});
