import { line } from "../explain/words.ts";
import type { CheckFacts, CheckResult } from "./types.ts";

type Level = CheckResult["level"];

function result(level: Level, what: string, text: string, remedy = ""): CheckResult {
  return { level, what, text: line(text, 1000), remedy };
}

const kernelWants: Readonly<Record<string, string>> = {
  "vm/overcommit_memory": "1",
  "vm/panic_on_oom": "0",
  "kernel/panic": "10",
  "kernel/panic_on_oops": "1",
};
/** Settings without which pods have no network beyond their node, or few processes. */
const helpful: readonly { path: string; good: (value: number) => boolean; why: string; want: string }[] = [
  { path: "net/ipv4/ip_forward", good: (n) => n === 1, why: "pods reach nothing beyond this node", want: "1" },
  { path: "fs/inotify/max_user_instances", good: (n) => n >= 256, why: "many pods soon use them up", want: "8192" },
  { path: "kernel/pid_max", good: (n) => n >= 32768, why: "many pods soon use them up", want: "4194304" },
];

/** Judges the machine: every line that `kubelet check` prints, in order. Pure. */
export function judgeMachine(facts: CheckFacts): CheckResult[] {
  return [
    ...configuration(facts),
    ...runtime(facts),
    ...cgroups(facts),
    swap(facts),
    ...facts.ports.map((port) => portCheck(port, facts.agentRuns)),
    ...rootDir(facts),
    ...kernel(facts),
    time(facts),
    programs(facts),
  ];
}

function configuration(facts: CheckFacts): CheckResult[] {
  const { configProblem, configWarnings, configUnused, isRoot, agentRuns } = facts;
  const what = "configuration";
  const found: CheckResult[] = [];
  if (configProblem !== undefined) {
    const remedy = "Correct it; kubelet explain config FIELD tells what a field takes.";
    found.push(result("fail", what, configProblem, remedy));
  } else if (configWarnings.length === 0) found.push(result("ok", what, "can be used"));
  for (const warning of configWarnings) {
    const remedy =
      "Correct it or leave it out: kubelet explain config lists the fields. The agent starts in spite of it.";
    found.push(result("warn", what, warning, remedy));
  }
  for (const unused of configUnused) {
    found.push(
      result(
        "warn",
        what,
        unused,
        "Leave it out, or do without: kubelet explain config FIELD tells what a field does.",
      ),
    );
  }
  if (!isRoot) found.push(result("fail", "user", "not root", "Run the agent, and this check, as root."));
  if (agentRuns) found.push(result("ok", "agent", "runs with this root directory"));
  return found;
}

function runtime({ runtime }: CheckFacts): CheckResult[] {
  if ("error" in runtime) {
    return [result(
      "fail",
      "runtime",
      `${runtime.endpoint} does not answer: ${runtime.error}`,
      "Start it (systemctl start containerd), switch on its CRI plugin (disabled_plugins in /etc/containerd/config.toml), or set containerRuntimeEndpoint.",
    )];
  }
  const { name, version, notReady, noNetwork, driverComplaint } = runtime;
  const found = [
    notReady === undefined ? result("ok", "runtime", `${name} ${version} answers at ${runtime.endpoint}`) : result(
      "fail",
      "runtime",
      `${name} ${version} is not ready: ${notReady}`,
      `Look at its log (journalctl -u ${name}).`,
    ),
    noNetwork === undefined ? result("ok", "network", "the runtime says that it is ready") : result(
      "fail",
      "network",
      noNetwork,
      "Install a network plugin: a configuration in /etc/cni/net.d and its programs in /opt/cni/bin. Pods with hostNetwork start without.",
    ),
  ];
  if (driverComplaint) {
    const { fatal, text } = driverComplaint;
    found.push(
      result(fatal ? "fail" : "warn", "cgroup driver", text, "Make cgroupDriver and the runtime's setting the same."),
    );
  } else found.push(result("ok", "cgroup driver", "as the runtime has it"));
  return found;
}

function cgroups({ cgroups }: CheckFacts): CheckResult[] {
  if ("error" in cgroups) {
    return [result("fail", "cgroups", cgroups.error, "Mount the cgroup file system and switch its controllers on.")];
  }
  const { version, controllers, failV1, root, rootThere } = cgroups;
  const found: CheckResult[] = [];
  if (version === 2) found.push(result("ok", "cgroups", "version 2"));
  else {
    found.push(
      failV1
        ? result(
          "fail",
          "cgroups",
          "version 1, which failCgroupV1 (true by default) refuses",
          "Boot with systemd.unified_cgroup_hierarchy=1, or set failCgroupV1: false.",
        )
        : result("warn", "cgroups", "version 1, which is on its way out", "Move the node to cgroup v2."),
    );
  }
  const missing = ["cpu", "cpuset", "memory", "pids"].filter((name) => !controllers.includes(name));
  if (missing.length > 0) {
    found.push(result(
      "fail",
      "controllers",
      `${missing.join(", ")} missing`,
      "Switch them on: cgroup_enable=NAME on the kernel's command line, or cgroup.subtree_control above.",
    ));
  } else found.push(result("ok", "controllers", controllers.join(", ")));
  if (!rootThere) {
    found.push(result("fail", "cgroupRoot", `${root} is not there`, `Make the group ${root}, or correct cgroupRoot.`));
  }
  return found;
}

function swap({ swap: { devices, failOn } }: CheckFacts): CheckResult {
  if (devices.length === 0) return result("ok", "swap", "off");
  return failOn
    ? result(
      "fail",
      "swap",
      `on (${devices.join(", ")}), which failSwapOn (true by default) refuses`,
      "swapoff -a and take it out of /etc/fstab, or set failSwapOn: false.",
    )
    : result("ok", "swap", `on (${devices.join(", ")}), as failSwapOn: false allows`);
}

function portCheck(port: CheckFacts["ports"][number], agentRuns: boolean): CheckResult {
  const where = `${port.address}:${port.port}`;
  const what = `port ${port.port}`;
  if (port.error === undefined) return result("ok", what, `${where} is free (${port.what})`);
  if (agentRuns) return result("ok", what, `${where} is in use (${port.what}), as the agent runs`);
  return result(
    "fail",
    what,
    `${where} cannot be had (${port.what}): ${port.error}`,
    `See who has it (ss -ltnp sport = :${port.port}), and stop that: another kubelet? Or choose another ${port.what}.`,
  );
}

function gib(bytes: number): string {
  return `${(bytes / 2 ** 30).toFixed(1)} GiB`;
}

function rootDir({ rootDir: dir }: CheckFacts): CheckResult[] {
  const { path, nearest, kind, readOnly, noexec, shared, mountBelow, space, short } = dir;
  const found: CheckResult[] = [];
  if (kind !== "directory") {
    return [result("fail", "root directory", `${nearest} is no directory`, "Move it away, or set --root-dir.")];
  }
  if (readOnly) {
    found.push(
      result("fail", "root directory", `${path} lies on a read-only mount`, "Mount it for writing, or set --root-dir."),
    );
  } else {
    const room = space === undefined ? "" : `; ${gib(space.available)} of ${gib(space.total)} free`;
    found.push(
      short.length > 0
        ? result(
          "warn",
          "root directory",
          `${path} has little room: ${short.join(", ")}${room}`,
          "Free room, or lower the thresholds in evictionHard: below them the agent ends pods.",
        )
        : result("ok", "root directory", `${path}${nearest === path ? "" : ` (will be made in ${nearest})`}${room}`),
    );
  }
  if (noexec) {
    found.push(
      result(
        "warn",
        "root directory",
        `${path} is mounted noexec`,
        "Programs in pods' volumes will not run: mount it exec.",
      ),
    );
  }
  if (shared) found.push(result("ok", "mount propagation", `${path} is on a shared mount`));
  else if (mountBelow === undefined) {
    found.push(
      result(
        "ok",
        "mount propagation",
        `${path} is on a private mount; the agent mounts it over itself as a shared one`,
      ),
    );
  } else {
    found.push(result(
      "warn",
      "mount propagation",
      `${path} is on a private mount, and ${mountBelow} below it keeps the agent from making it a shared one`,
      "End the pods and unmount it, then start the agent; or make the mount shared: mount --make-rshared /.",
    ));
  }
  return found;
}

function kernel({ tunables, protectKernelDefaults }: CheckFacts): CheckResult[] {
  const name = (path: string) => path.replaceAll("/", ".");
  const wrong = Object.entries(kernelWants).filter(([path, want]) =>
    tunables[path] !== undefined && tunables[path] !== want
  );
  const found = wrong.map(([path, want]) =>
    result(
      protectKernelDefaults ? "fail" : "warn",
      "kernel",
      `${name(path)} is ${tunables[path]}, a kubelet wants ${want}`,
      `sysctl -w ${name(path)}=${want}, and in /etc/sysctl.d to keep it.`,
    )
  );
  for (const { path, good, why, want } of helpful) {
    const value = tunables[path];
    if (value === undefined || good(Number(value))) continue;
    found.push(result("warn", "kernel", `${name(path)} is ${value}: ${why}`, `sysctl -w ${name(path)}=${want}`));
  }
  return found.length > 0 ? found : [result("ok", "kernel", "settings are as a kubelet wants them")];
}

function time({ timeKeeper }: CheckFacts): CheckResult {
  return timeKeeper === undefined
    ? result(
      "warn",
      "time",
      "nothing is seen that keeps the clock right",
      "Run systemd-timesyncd, chrony or ntpd (a virtual machine may get its time otherwise): certificates and logs need it.",
    )
    : result("ok", "time", `kept by ${timeKeeper}`);
}

function programs({ missingPrograms }: CheckFacts): CheckResult {
  return missingPrograms.length === 0 ? result("ok", "programs", "all there") : result(
    "fail",
    "programs",
    `${missingPrograms.join(", ")} missing`,
    "Install util-linux and coreutils (apt-get install mount coreutils).",
  );
}

/** The lines for people. */
export function checkText(results: readonly CheckResult[]): string {
  const width = Math.max(...results.map(({ what }) => what.length));
  const lines = results.map(({ level, what, text, remedy }) => {
    const head = `${level.padEnd(4)}  ${what.padEnd(width)}  ${text}`;
    return remedy === "" ? head : `${head}\n${" ".repeat(8 + width)}Remedy: ${remedy}`;
  });
  const count = (level: Level) => results.filter((each) => each.level === level).length;
  const failed = count("fail");
  const verdict = failed > 0 ? "this machine can't be a node like this" : "this machine can be a node";
  return `${lines.join("\n")}\n\n${failed} failed, ${count("warn")} warnings: ${verdict}\n`;
}
