import type { ContainerConfig, PodSandboxConfig } from "../gen/runtime_pb.ts";
import type { RuntimeError } from "../api.ts";

/** What a command run by ExecSync does. */
export interface ExecReply {
  exitCode?: number;
  stdout?: string;
  stderr?: string;
  /** Milliseconds that it takes; Infinity for one that never ends by itself. Default 0. */
  ms?: number;
  /** When given, the command cannot be run at all (no such file) and ExecSync fails with these words. */
  startError?: string;
}

/** What a container's process does with its life. */
export interface Program {
  /** Milliseconds after which it exits by itself; absent when it runs for ever. */
  runMs?: number;
  /** The code that it exits with by itself. Default 0. */
  exitCode?: number;
  /** The runtime's reason for that exit (`OOMKilled`); by default the runtime says Completed or Error. */
  reason?: string;
  /** Whether it exits on the stop signal, or has to be killed when the grace period is over. */
  onStop: "exits" | "ignores";
  /** Milliseconds from the stop signal to the exit. Default 0. */
  stopMs?: number;
  /** The code that it exits with on the stop signal. Default 0. */
  stopExitCode?: number;
  /** `hangs`: even SIGKILL does not end it (a process in uninterruptible sleep). Default `exits`. */
  onKill?: "exits" | "hangs";
  /** When given, StartContainer fails with these words and the container becomes exited: 128, StartError. */
  startError?: string;
  /** Told when the process starts. */
  onStart?: () => void;
  /** Answers ExecSync. Default: exit code 0 and no output. */
  exec?: (command: string[]) => ExecReply | Promise<ExecReply>;
}

/** Chooses a container's program from what it was created with. */
export type Programs = (config: ContainerConfig, sandbox: PodSandboxConfig) => Program;

/** A disturbance of one call. */
export interface Fault {
  /** Milliseconds before the runtime begins the work. */
  delayMs?: number;
  /** Fails the call with this; without `loseAnswer` nothing is done. */
  error?: RuntimeError;
  /** Nothing is done and no answer comes until the caller gives up: abort, deadline or the runtime's restart. */
  hang?: true;
  /** The work is done, whatever the caller does meanwhile; then the call fails with `error`, or else Unavailable. */
  loseAnswer?: true;
}

/** Asked at each call; `call` is the CRI method (`StopContainer`), `target` the id or the name acted on. */
export type Faults = (call: string, target: string | undefined) => Fault | undefined;

/** One call that the runtime got. */
export interface CallRecord {
  readonly call: string;
  readonly target: string | undefined;
  /** Wall time in milliseconds. */
  readonly at: number;
  /** The reason of a mutating call. */
  readonly because?: string;
  endedAt?: number;
  error?: string;
}
