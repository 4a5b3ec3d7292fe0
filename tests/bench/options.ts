import { optionsOf, UsageError } from "../../scripts/lib/script.ts";

export const usage = `deno task bench [OPTIONS]
Measures the agent on a private containerd against the floor: the bare CRI calls for the same pods, in the same run.
Prints what it measured, and each figure with its limit. Needs root. Takes about seven minutes, the part memory as
long again; on a machine that does other work the figures tell of that too.

  --program WHAT   sources, or the path of an executable (default: dist/kubelet when it is there and no source is
                   newer, as deno task compile leaves it; else sources)
  --rounds N       rounds of one pod (default: 7)
  --bursts N       rounds of many pods at once (default: 3)
  --pods N         pods of a burst (default: 50)
  --idle SECONDS   how long the idle agent is watched (default: 30)
  --probing SECONDS  how long probes are watched (default: 30)
  --only PART      one, burst, idle, scrape, start, probes, follow or memory; may be given several times
                   (default: all but memory)
  --churn N        pods that start and end in the part memory (default: 2000)
  --containerd V   debian (default) or v2
  --name NAME      makes several benches differ (default: bench)
  --json FILE      writes the figures to a file too
  --check          exit 1 when a figure is over its limit`;

export const parts = ["one", "burst", "idle", "scrape", "start", "probes", "follow", "memory"] as const;
export type Part = typeof parts[number];

export interface Options {
  /** Path of an executable, or "sources"; undefined for whichever is up to date. */
  readonly program: string | undefined;
  readonly rounds: number;
  readonly bursts: number;
  readonly pods: number;
  readonly idleMs: number;
  readonly probingMs: number;
  /** Pods of the part memory. */
  readonly churn: number;
  readonly only: ReadonlySet<Part>;
  readonly containerd: "debian" | "v2";
  readonly name: string;
  readonly json: string | undefined;
  readonly check: boolean;
}

/** Reads the command line; undefined when only help was asked for. Throws UsageError when it is wrong. */
export function readOptions(args: readonly string[]): Options | undefined {
  const values = optionsOf(args, {
    program: { type: "string" },
    rounds: { type: "string", default: "7" },
    bursts: { type: "string", default: "3" },
    pods: { type: "string", default: "50" },
    idle: { type: "string", default: "30" },
    probing: { type: "string", default: "30" },
    churn: { type: "string", default: "2000" },
    only: { type: "string", multiple: true, default: parts.filter((part) => part !== "memory") },
    containerd: { type: "string", default: "debian" },
    name: { type: "string", default: "bench" },
    json: { type: "string" },
    check: { type: "boolean", default: false },
    help: { type: "boolean", short: "h", default: false },
  });
  if (values.help) return undefined;
  const number = (option: "rounds" | "bursts" | "pods" | "idle" | "probing" | "churn", most = 1000): number => {
    const value = Number(values[option]);
    if (!Number.isInteger(value) || value < 1 || value > most) throw new UsageError(`--${option}: want 1 to ${most}`);
    return value;
  };
  const { containerd } = values;
  if (containerd !== "debian" && containerd !== "v2") throw new UsageError("--containerd: want debian or v2");
  const only = values.only.map((value) => {
    const part = parts.find((one) => one === value);
    if (!part) throw new UsageError(`--only ${value}: want ${parts.join(", ")}`);
    return part;
  });
  return {
    program: values.program,
    rounds: number("rounds"),
    bursts: number("bursts"),
    pods: number("pods"),
    idleMs: number("idle") * 1000,
    probingMs: number("probing") * 1000,
    churn: number("churn", 1_000_000),
    only: new Set(only),
    containerd,
    name: values.name,
    json: values.json,
    check: values.check,
  };
}
