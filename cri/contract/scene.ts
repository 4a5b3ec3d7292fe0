import type { ContainerConfigInit, ImageService, MutatingOptions, RuntimeService, SandboxConfigInit } from "../api.ts";
import { RuntimeError } from "../api.ts";
import type { Flavour } from "../fake/state.ts";
import type { ExecReply, Program } from "../fake/program.ts";
import type { ContainerStatus } from "../gen/runtime_pb.ts";

/** What the contract suite runs against: a runtime, real or fake, that has the images below. */
export interface Harness {
  readonly runtime: RuntimeService;
  readonly images: ImageService;
  readonly flavour: Flavour;
  /** Lets `ms` milliseconds go by, and waits until what they brought about is over. */
  pass(ms: number): Promise<void>;
  /** Waits for a call that takes time. */
  settle<T>(call: Promise<T>): Promise<T>;
  now(): number;
  /** Ends the runtime without warning, and starts it again `ms` milliseconds later. */
  restart(ms: number): Promise<void>;
  /** A directory that exists where the runtime runs. */
  readonly directory: string;
}

/** Images that were imported from a file: `spare` may be removed by the suite. */
export const image = { main: "localhost/busybox:1", spare: "localhost/web:1", absent: "localhost/none:1" } as const;
/** A registry where nobody listens. */
export const unreachable = "127.0.0.1:9/none:1";

/** A config as it is written by hand, not as a message. */
type Plain<T> = Exclude<T, { $typeName: string }>;

/** One behaviour that every CRI runtime of ours shows. */
export interface Case {
  readonly name: string;
  run(scene: Scene): Promise<void>;
}

interface Part {
  readonly command: readonly string[];
  readonly program: Program;
}

const shell = (script: string) => ["/bin/sh", "-c", script];
const loop = "while :; do sleep 0.05; done";

/** Commands of ExecSync, for the real runtime, and what they do, for the fake. */
export const commands = {
  talk: { command: shell("echo out; echo err >&2; exit 4"), reply: { stdout: "out\n", stderr: "err\n", exitCode: 4 } },
  slow: { command: ["/bin/sleep", "30"], reply: { ms: 30_000 } },
  absent: { command: ["/no/such/command"], reply: { startError: "stat /no/such/command: no such file or directory" } },
} satisfies Record<string, { command: readonly string[]; reply: ExecReply }>;

function exec(command: string[]): ExecReply {
  return Object.values(commands).find((c) => c.command.join() === command.join())?.reply ?? {};
}

/** Programs of containers: a command for the real runtime, and what it does, for the fake. */
export const programs = {
  obedient: {
    command: shell(`trap 'exit 7' TERM; ${loop}`),
    program: { onStop: "exits", stopExitCode: 7, exec },
  },
  deaf: { command: shell(`trap '' TERM; ${loop}`), program: { onStop: "ignores" } },
  quick: { command: ["/bin/true"], program: { onStop: "exits", runMs: 10 } },
  failing: { command: shell("exit 3"), program: { onStop: "exits", runMs: 10, exitCode: 3 } },
  later: { command: shell("sleep 1; exit 5"), program: { onStop: "exits", runMs: 1_000, exitCode: 5 } },
  killed: { command: shell("kill -9 $$"), program: { onStop: "exits", runMs: 10, exitCode: 137 } },
  greedy: {
    command: ["/bin/tail", "/dev/zero"],
    program: { onStop: "exits", runMs: 10, exitCode: 137, reason: "OOMKilled" },
  },
  absent: {
    command: ["/no/such/program"],
    program: { onStop: "exits", startError: "exec: stat /no/such/program: no such file or directory" },
  },
} satisfies Record<string, Part>;

export type ProgramName = keyof typeof programs;

/** The fake's programs for the suite's commands. */
export function programOf(command: readonly string[]): Program {
  const parts: Part[] = Object.values(programs);
  return parts.find((p) => p.command.join() === command.join())?.program ?? { onStop: "exits" };
}

/** Every call of the suite has the same reason. */
export const options: MutatingOptions = { because: { reason: "Contract", message: "the contract suite" } };

let pods = 0;

/** One pod of one case; everything made in it is removed at its end. */
export class Scene implements AsyncDisposable {
  readonly uid = `u-${++pods}`;
  readonly #sandboxes: string[] = [];

  constructor(readonly harness: Harness) {}

  config(more: Plain<SandboxConfigInit> = {}): Plain<SandboxConfigInit> {
    return {
      metadata: { name: "web", namespace: "contract", uid: this.uid, attempt: 0 },
      logDirectory: this.harness.directory,
      labels: { app: "web", uid: this.uid },
      annotations: { note: "kept as it is" },
      linux: { cgroupParent: "/denolet-contract", securityContext: { namespaceOptions: {} } },
      ...more,
    };
  }

  async sandbox(more: Plain<SandboxConfigInit> = {}): Promise<string> {
    const id = await this.harness.runtime.runPodSandbox(this.config(more), "", options);
    this.#sandboxes.push(id);
    return id;
  }

  async container(
    sandboxId: string,
    program: ProgramName = "obedient",
    more: Plain<ContainerConfigInit> = {},
  ): Promise<string> {
    return await this.harness.runtime.createContainer({
      sandboxId,
      config: {
        metadata: { name: program, attempt: 0 },
        image: { image: image.main },
        command: [...programs[program].command],
        labels: { part: program, uid: this.uid },
        ...more,
      },
      sandboxConfig: this.config(),
    }, options);
  }

  /** A container that has been started; `ms` go by so that it is on its way, or over. */
  async started(
    sandboxId: string,
    program: ProgramName = "obedient",
    more?: Plain<ContainerConfigInit>,
  ): Promise<string> {
    const id = await this.container(sandboxId, program, more);
    await this.harness.runtime.startContainer(id, options);
    await this.harness.pass(400);
    return id;
  }

  async status(id: string): Promise<ContainerStatus> {
    const { status } = await this.harness.runtime.containerStatus(id);
    if (!status) throw new TypeError(`ContainerStatus ${id} has no status`);
    return status;
  }

  async [Symbol.asyncDispose](): Promise<void> {
    for (const id of this.#sandboxes) await this.harness.runtime.removePodSandbox(id, options);
  }
}

/** A value that has to be there. */
export function present<T>(value: T | undefined): T {
  if (value === undefined) throw new TypeError("expected a value");
  return value;
}

/** The gRPC status and words of a call that has to fail. */
export async function failureOf(call: Promise<unknown>): Promise<{ status: number; details: string }> {
  try {
    await call;
  } catch (thrown) {
    if (thrown instanceof RuntimeError) return { status: thrown.status, details: thrown.details };
    throw thrown;
  }
  throw new Error("the call succeeded");
}
