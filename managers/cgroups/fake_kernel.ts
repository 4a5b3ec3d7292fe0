import { errno, type FakeHost } from "../../mod/base/fake_host.ts";

const v1Files: Record<string, Record<string, string>> = {
  cpu: { "cpu.shares": "1024\n", "cpu.cfs_quota_us": "-1\n", "cpu.cfs_period_us": "100000\n" },
  cpuset: { "cpuset.cpus": "", "cpuset.mems": "" },
  memory: { "memory.limit_in_bytes": "9223372036854771712\n", "memory.usage_in_bytes": "4096\n" },
  pids: { "pids.max": "max\n" },
  hugetlb: { "hugetlb.2MB.limit_in_bytes": "9223372036854771712\n" },
};

const v2Files: Record<string, Record<string, string>> = {
  cpu: { "cpu.weight": "100\n", "cpu.max": "max 100000\n" },
  cpuset: { "cpuset.cpus": "", "cpuset.mems": "" },
  memory: { "memory.max": "max\n", "memory.current": "4096\n", "memory.min": "0\n", "memory.low": "0\n" },
  pids: { "pids.max": "max\n" },
  hugetlb: { "hugetlb.2MB.max": "max\n" },
};

/** A write to a control file: process ids add up, everything else replaces. */
function store(host: FakeHost, path: string, data: string): string {
  return path.endsWith("/cgroup.procs") ? `${host.text(path) ?? ""}${data.trim()}\n` : `${data.trim()}\n`;
}

/** Gives a fake machine cgroup v1 hierarchies, each a mount of its own below the host's cgroupRoot. */
export function fakeCgroupV1(
  host: FakeHost,
  controllers: readonly string[] = ["cpu", "cpuacct", "cpuset", "memory", "pids", "systemd"],
): void {
  for (const name of controllers) {
    const root = `${host.cgroupRoot}/${name}`;
    host.putKernelFs(root, "cgroup", {
      files: (path) => ({
        "cgroup.procs": "",
        ...v1Files[name],
        ...(name === "cpuset" && path === root ? { "cpuset.cpus": "0-3\n", "cpuset.mems": "0\n" } : {}),
      }),
      onWrite: (path, data) => store(host, path, data),
    });
  }
}

/** Gives a fake machine one unified hierarchy; a group has the controllers that its parent hands down. */
export function fakeCgroupV2(
  host: FakeHost,
  controllers: readonly string[] = ["cpuset", "cpu", "io", "memory", "hugetlb", "pids"],
): void {
  const root = host.cgroupRoot;
  host.putKernelFs(root, "cgroup2", {
    files: (path) => {
      const parent = path.slice(0, path.lastIndexOf("/"));
      const has = path === root ? [...controllers] : words(host.text(`${parent}/cgroup.subtree_control`));
      return Object.assign(
        { "cgroup.procs": "", "cgroup.controllers": has.join(" ") + "\n", "cgroup.subtree_control": "\n" },
        path === root ? { "cpuset.cpus.effective": "0-3\n" } : {},
        ...(path === root ? [] : has.map((name) => v2Files[name] ?? {})),
      );
    },
    onWrite: (path, data) => {
      const directory = path.slice(0, path.lastIndexOf("/"));
      if (!path.endsWith("/cgroup.subtree_control")) {
        const controller = path.slice(directory.length + 1).split(".")[0] ?? "";
        const has = words(host.text(`${directory}/cgroup.controllers`));
        if (controller !== "cgroup" && !has.includes(controller)) throw errno("ENOENT");
        // No process may be in a group that hands controllers down.
        const inner = directory !== root && words(host.text(`${directory}/cgroup.subtree_control`)).length > 0;
        if (path.endsWith("/cgroup.procs") && inner) throw errno("EBUSY");
        return store(host, path, data);
      }
      if (directory !== root && words(host.text(`${directory}/cgroup.procs`)).length > 0) throw errno("EBUSY");
      const offered = words(host.text(`${directory}/cgroup.controllers`));
      const enabled = new Set(words(host.text(path)));
      for (const word of words(data)) {
        if (!offered.includes(word.slice(1))) throw errno("ENOENT");
        if (word.startsWith("+")) enabled.add(word.slice(1));
        else enabled.delete(word.slice(1));
      }
      // Groups below that are there already get the controllers' files too.
      for (const child of host.tree(directory).filter((p) => /^[^/]+\/$/.test(p))) {
        host.put(`${directory}/${child}cgroup.controllers`, [...enabled].join(" ") + "\n");
        for (const [file, text] of Object.entries(Object.assign({}, ...[...enabled].map((n) => v2Files[n] ?? {})))) {
          if (!host.exists(`${directory}/${child}${file}`)) host.put(`${directory}/${child}${file}`, String(text));
        }
      }
      return [...enabled].join(" ") + "\n";
    },
  });
}

/** Makes kills take a process out of every group. */
export function processesDie(host: FakeHost): void {
  host.onKill = (pid) => {
    for (const path of host.tree(host.cgroupRoot).filter((p) => p.endsWith("cgroup.procs"))) {
      const full = `${host.cgroupRoot}/${path}`;
      const left = words(host.text(full)).filter((word) => word !== String(pid));
      host.put(full, left.map((word) => `${word}\n`).join(""));
    }
  };
}

function words(text: string | undefined): string[] {
  return (text ?? "").split(/\s+/).filter((w) => w !== "");
}
