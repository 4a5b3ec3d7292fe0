/** containerd 1.6 of Debian 12, or containerd 2. */
export type ContainerdVersion = "debian" | "v2";

/** Where a private containerd keeps everything; all below its own two directories. */
export interface Layout {
  readonly name: string;
  /** Images and metadata. */
  readonly root: string;
  /** Sockets, mounts, pids; short, for a unix socket's path has room for 107 bytes. */
  readonly run: string;
  readonly bridge: string;
  /** IPv4 subnet of the pods, such as 10.88.0.0/16. */
  readonly subnet: string;
}

/** Paths and names that follow from a layout. */
export interface LayoutPaths {
  /** The file that marks a directory as made by us. */
  marker(directory: string): string;
  readonly config: string;
  readonly socket: string;
  readonly state: string;
  readonly bundles: string;
  readonly runc: string;
  readonly cni: string;
  readonly addresses: string;
  readonly pid: string;
  /** Tells which process of ours uses the layout. */
  readonly owner: string;
  readonly log: string;
  readonly data: string;
  /** Name of the CNI network. */
  readonly network: string;
}

/** Paths inside a layout. */
export function pathsOf(layout: Layout): LayoutPaths {
  const { root, run } = layout;
  return {
    marker: (directory: string) => `${directory}/.denolet-node`,
    config: `${run}/containerd.toml`,
    socket: `${run}/containerd.sock`,
    state: `${run}/state`,
    bundles: `${run}/state/io.containerd.runtime.v2.task/k8s.io`,
    runc: `${run}/runc`,
    cni: `${run}/net.d`,
    addresses: `${run}/ipam`,
    pid: `${run}/containerd.pid`,
    owner: `${run}/owner`,
    log: `${root}/containerd.log`,
    data: `${root}/data`,
    network: `denolet-${layout.name}`,
  };
}

/** Throws an Error that names the field when a layout cannot be used. */
export function checkLayout(layout: Layout): void {
  const bad = (field: keyof Layout, why: string) =>
    new Error(`private containerd: ${field} ${JSON.stringify(layout[field])} ${why}`);
  if (!/^[a-z0-9]([a-z0-9-]{0,30}[a-z0-9])?$/.test(layout.name)) {
    throw bad("name", "must be 1 to 32 of a-z, 0-9 and '-', not starting or ending with '-'");
  }
  for (const field of ["root", "run"] as const) {
    if (!/^(\/[A-Za-z0-9_.-]+){2,}$/.test(layout[field]) || layout[field].includes("/..")) {
      throw bad(field, "must be an absolute plain path at least two levels deep");
    }
  }
  if (layout.run.length > 80) throw bad("run", "is too long for a unix socket below it (80 bytes)");
  if (layout.root === layout.run) throw bad("run", "must not be the root directory");
  if (!/^[a-z][a-z0-9-]{0,14}$/.test(layout.bridge)) throw bad("bridge", "must be 1 to 15 of a-z, 0-9 and '-'");
  if (!/^\d{1,3}(\.\d{1,3}){3}\/\d{1,2}$/.test(layout.subnet)) throw bad("subnet", "must be like 10.88.0.0/16");
}

/** The text of containerd's configuration file: version 2 for 1.6, version 3 for containerd 2. */
export function containerdConfig(version: ContainerdVersion, layout: Layout): string {
  const paths = pathsOf(layout);
  const common = `root = "${paths.data}"
state = "${paths.state}"
${version === "debian" ? "" : 'disabled_plugins = ["io.containerd.nri.v1.nri"]\n'}[grpc]
  address = "${paths.socket}"
[plugins."io.containerd.internal.v1.opt"]
  path = "${paths.data}/opt"
`;
  // Several side by side: the network namespaces and runc's own state lie in common places unless told otherwise.
  // No CAP_SYS_RESOURCE in many sandboxes: an OOM score below the current one must not fail a container.
  const cri = `  restrict_oom_score_adj = true
  netns_mounts_under_state_dir = true
`;
  const runc = (plugin: string) =>
    `  [plugins."${plugin}".containerd.runtimes.runc]
    runtime_type = "io.containerd.runc.v2"
    [plugins."${plugin}".containerd.runtimes.runc.options]
      Root = "${paths.runc}"
`;
  if (version === "debian") {
    const plugin = "io.containerd.grpc.v1.cri";
    return `version = 2
${common}[plugins."${plugin}"]
${cri}  sandbox_image = "localhost/pause:1"
  [plugins."${plugin}".cni]
    bin_dir = "/usr/lib/cni"
    conf_dir = "${paths.cni}"
${runc(plugin)}`;
  }
  const plugin = "io.containerd.cri.v1.runtime";
  return `version = 3
${common}[plugins."${plugin}"]
${cri}  [plugins."${plugin}".cni]
    bin_dirs = ["/usr/lib/cni"]
    conf_dir = "${paths.cni}"
${runc(plugin)}[plugins."io.containerd.cri.v1.images".pinned_images]
  sandbox = "localhost/pause:1"
`;
}

/** The CNI network: a bridge of its own with addresses of the subnet, and host ports. */
export function cniConfig(layout: Layout, options: { masquerade: boolean }): string {
  const paths = pathsOf(layout);
  return JSON.stringify({
    cniVersion: "1.0.0",
    name: paths.network,
    plugins: [
      {
        type: "bridge",
        bridge: layout.bridge,
        isGateway: true,
        ipMasq: options.masquerade,
        hairpinMode: true,
        ipam: {
          type: "host-local",
          dataDir: paths.addresses,
          ranges: [[{ subnet: layout.subnet }]],
          routes: [{ dst: "0.0.0.0/0" }],
        },
      },
      { type: "portmap", capabilities: { portMappings: true } },
    ],
  });
}
