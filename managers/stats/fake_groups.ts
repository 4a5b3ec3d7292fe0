import type { FakeHost } from "../../mod/base/fake_host.ts";
import type { StatHierarchies } from "./group_source.ts";

/** Figures that a fake group tells. */
export interface FakeFigures {
  readonly cpuMs: number;
  /** Bytes. */
  readonly usage: number;
  readonly inactiveFile: number;
  readonly rss: number;
  readonly limit?: number;
  readonly pids?: number;
}

const v1Roots = ["cpu", "cpuacct", "memory", "pids", "blkio"] as const;
const v1None = 9_223_372_036_854_771_712n;

/** Hierarchies of a fake machine; groups are put in with `putGroup`. */
export function fakeHierarchies(host: FakeHost, version: 1 | 2): StatHierarchies {
  const names = version === 1 ? v1Roots : ["cpu", "memory", "pids"];
  return {
    version,
    roots: new Map(names.map((n) => [n, version === 1 ? `${host.cgroupRoot}/${n}` : host.cgroupRoot])),
  };
}

/** Writes the files that a kernel shows of a group. */
export function putGroup(host: FakeHost, version: 1 | 2, path: string, figures: FakeFigures): void {
  const { cpuMs, usage, inactiveFile, rss, limit, pids = 1 } = figures;
  const suffix = path === "/" ? "" : path;
  const put = (controller: string, file: string, text: string) =>
    host.put(`${host.cgroupRoot}${version === 1 ? `/${controller}` : ""}${suffix}/${file}`, `${text}\n`);
  if (version === 1) {
    put("cpuacct", "cpuacct.usage", String(cpuMs * 1_000_000));
    put("cpuacct", "cpuacct.stat", "user 7\nsystem 3");
    put("cpu", "cpu.shares", "1024");
    put("cpu", "cpu.cfs_period_us", "100000");
    put("cpu", "cpu.cfs_quota_us", "-1");
    put("memory", "memory.usage_in_bytes", String(usage));
    put(
      "memory",
      "memory.stat",
      `cache 1\nrss 2\npgfault 11\npgmajfault 1\ntotal_cache ${inactiveFile}\ntotal_rss ${rss}\n` +
        `total_swap 0\ntotal_pgfault 22\ntotal_pgmajfault 2\ntotal_inactive_file ${inactiveFile}\ntotal_active_file 0`,
    );
    put("memory", "memory.limit_in_bytes", String(limit ?? v1None));
    put("memory", "memory.memsw.limit_in_bytes", String(limit ?? v1None));
    put("pids", "pids.current", String(pids));
    put("memory", "cgroup.procs", "");
    return;
  }
  put("", "cpu.stat", `usage_usec ${cpuMs * 1000}\nuser_usec 70000\nsystem_usec 30000`);
  put(
    "",
    "memory.stat",
    `anon ${rss}\nfile ${usage - rss}\npgfault 11\npgmajfault 1\ninactive_file ${inactiveFile}\nactive_file 0`,
  );
  for (const kind of ["cpu", "memory", "io"]) {
    put(
      "",
      `${kind}.pressure`,
      "some avg10=1.50 avg60=0.20 avg300=0.00 total=2000\nfull avg10=0.00 avg60=0.00 avg300=0.00 total=1000",
    );
  }
  put("", "pids.current", String(pids));
  if (path === "/") return;
  put("", "cgroup.procs", "");
  put("", "memory.current", String(usage));
  put("", "memory.swap.current", "0");
  put("", "memory.swap.max", "max");
  put("", "memory.max", limit === undefined ? "max" : String(limit));
  put("", "cpu.weight", "39");
  put("", "cpu.max", "50000 100000");
}
