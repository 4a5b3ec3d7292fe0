import type { FsSpace } from "../../../base/host.ts";

/** How one thing of the machine stands. */
export interface CheckResult {
  readonly level: "ok" | "warn" | "fail";
  /** What was looked at, a word or two. */
  readonly what: string;
  /** What was found. */
  readonly text: string;
  /** What to do; empty when all is well. */
  readonly remedy: string;
}

/** What was found out of the machine; where something could not be looked at, the text says why. */
export interface CheckFacts {
  /** Why the configuration cannot be used; the rest is then judged with the flags' defaults. */
  readonly configProblem?: string;
  /** What the agent's start warns of in its configuration, such as unknown fields: file, field and what becomes of it. */
  readonly configWarnings: readonly string[];
  /** Fields without effect, or not with all of it, in words. */
  readonly configUnused: readonly string[];
  /** True when an agent runs with this root directory: ports and lock are then its own. */
  readonly agentRuns: boolean;
  readonly isRoot: boolean;
  readonly runtime:
    | {
      readonly endpoint: string;
      readonly name: string;
      readonly version: string;
      /** Conditions that are not well: what the runtime says. */
      readonly notReady?: string;
      readonly noNetwork?: string;
      /** What is said about the cgroup driver, when it is not as the configuration has it. */
      readonly driverComplaint?: { readonly fatal: boolean; readonly text: string };
    }
    | { readonly endpoint: string; readonly error: string };
  readonly cgroups:
    | {
      readonly version: 1 | 2;
      readonly controllers: readonly string[];
      readonly failV1: boolean;
      readonly root: string;
      readonly rootThere: boolean;
    }
    | { readonly error: string };
  readonly swap: { readonly devices: readonly string[]; readonly failOn: boolean };
  /** Ports that the configuration asks for; `error` where one cannot be had. */
  readonly ports: readonly {
    readonly what: string;
    readonly address: string;
    readonly port: number;
    readonly error?: string;
  }[];
  readonly rootDir: {
    readonly path: string;
    /** The nearest directory that is there. */
    readonly nearest: string;
    readonly kind: string;
    readonly readOnly: boolean;
    readonly noexec: boolean;
    readonly shared: boolean;
    /** A mount below it, which keeps the agent from making it a shared one; absent when there is none. */
    readonly mountBelow?: string;
    readonly space?: FsSpace;
    /** nodefs thresholds that its file system does not meet, in words. */
    readonly short: readonly string[];
  };
  /** Kernel settings by path below /proc/sys; undefined: not there. */
  readonly tunables: Readonly<Record<string, string | undefined>>;
  readonly protectKernelDefaults: boolean;
  /** What keeps the clock, as far as can be told. */
  readonly timeKeeper: string | undefined;
  /** Programs that are not there. */
  readonly missingPrograms: readonly string[];
}
