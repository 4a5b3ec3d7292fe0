import { ContainerState, RuntimeService } from "../../cri/gen/runtime_pb.ts";
import type { Container as CriContainer, ContainerStatus as CriStatus, PodSandbox } from "../../cri/gen/runtime_pb.ts";
import type { Container, ContainerStatus, Pod, PodSpec, PodStatus } from "../../mod/kube/types.ts";
import { systemClock } from "../../mod/base/clock.ts";
import { exists, namesIn, repository, unlessMissing } from "../../scripts/lib/files.ts";
import { waitFor } from "../../scripts/lib/wait.ts";
import { BareCri } from "../../scripts/node/bare_cri.ts";
import { cgroupRoots } from "../../scripts/node/cgroups.ts";
import { pathsOf } from "../../scripts/node/containerd_config.ts";
import { mountsBelow } from "../../scripts/node/mounts.ts";
import type { NodeOptions, TestNode } from "./harness.ts";
import { withNode } from "./harness.ts";

const method = RuntimeService.method;

/** How long a test waits for something that should come soon, in milliseconds: the machine may be busy. */
export const patience = Number(Deno.env.get("DENOLET_TEST_PATIENCE") ?? 60_000);

/** A command that goes on until it is told to end, and then ends at once. */
export const untilEnded = ["sh", "-c", "trap 'exit 0' TERM; sleep 86400 & wait $!"];

/** A container of the busybox image; it runs until it is ended unless `command` is given. */
export function box(name: string, more: Partial<Container> = {}): Container {
  return { name, image: "localhost/busybox:1", imagePullPolicy: "IfNotPresent", command: untilEnded, ...more };
}

/** A container that runs a line of shell. */
export function shell(name: string, line: string, more: Partial<Container> = {}): Container {
  return box(name, { command: ["sh", "-c", line], ...more });
}

/** A manifest; a second of grace unless the spec says otherwise. */
export function pod(name: string, spec: PodSpec, metadata: Pod["metadata"] = {}): Pod {
  return {
    apiVersion: "v1",
    kind: "Pod",
    metadata: { name, namespace: "default", ...metadata },
    spec: { terminationGracePeriodSeconds: 1, ...spec },
  };
}

/** An event as the agent's log shows it. */
export interface SeenEvent {
  readonly pod: string;
  readonly reason: string;
  readonly message: string;
  readonly fieldPath?: string;
}

/** The words of a line of the agent's log (JSON format). */
export type LogRecord = Readonly<Record<string, unknown>>;

/** What a test sees of a node besides its pods: the agent's log with statuses and events, and the runtime itself. */
export class Observer implements Disposable {
  readonly #cri: BareCri;
  readonly #records: LogRecord[] = [];
  #read = 0;
  #rest = "";

  /** `nodeName`: static pods get it behind their name; tests give pods by the names in their manifests. */
  constructor(readonly node: TestNode, readonly nodeName: string) {
    this.#cri = new BareCri(node.containerd.socket);
  }

  /** A static pod's name on this node. */
  full(name: string): string {
    return `${name}-${this.nodeName}`;
  }

  get cri(): BareCri {
    return this.#cri;
  }

  /** Every line of the agent's log until now; what is no JSON has only `text`. */
  async records(): Promise<readonly LogRecord[]> {
    using file = await unlessMissing(Deno.open(this.node.agent.paths.log));
    if (!file) return this.#records;
    await file.seek(this.#read, Deno.SeekMode.Start);
    const bytes = new Uint8Array(await new Response(file.readable).arrayBuffer());
    this.#read += bytes.length;
    const lines = (this.#rest + new TextDecoder().decode(bytes)).split("\n");
    this.#rest = lines.pop() ?? "";
    for (const line of lines) this.#records.push(parsed(line));
    return this.#records;
  }

  /** Waits as waitFor does; the error of a wait in vain has the last lines of the agent's log. */
  async #wait<T>(
    what: string,
    look: () => Promise<T | undefined | false> | T | undefined | false,
    within = patience,
  ): Promise<T> {
    try {
      return await waitFor(what, look, { within });
    } catch (thrown) {
      const said = (await this.records()).filter((one) => one.msg !== "Pod status").slice(-15);
      const text = said.map((one) => JSON.stringify(one).slice(0, 400)).join("\n");
      throw new Error(`${thrown instanceof Error ? thrown.message : thrown}\nthe agent said last:\n${text}`, {
        cause: thrown,
      });
    }
  }

  /** Waits for a line of the log that `look` accepts. */
  async logged(what: string, look: (record: LogRecord) => boolean, after = 0): Promise<LogRecord> {
    return await this.#wait(`the log to say: ${what}`, async () => {
      return (await this.records()).slice(after).find(look);
    });
  }

  /** The events of a pod, oldest first. */
  async events(name: string): Promise<SeenEvent[]> {
    return (await this.records()).filter((one) => one.msg === "event" && one.pod === `${this.full(name)}_default`)
      .map((one) => one as unknown as SeenEvent);
  }

  /** Waits for an event of a pod. */
  async event(name: string, reason: string, text: RegExp = /./): Promise<SeenEvent> {
    return await this.#wait(
      `the event ${reason} of ${name} that matches ${text}`,
      async () => (await this.events(name)).find((one) => one.reason === reason && text.test(one.message)),
    );
  }

  /** The newest status of a pod of this name; undefined before there is one. */
  async status(name: string): Promise<PodStatus | undefined> {
    const found = (await this.records()).findLast((one) =>
      one.msg === "Pod status" && one.pod === `${this.full(name)}_default`
    );
    return found?.status as PodStatus | undefined;
  }

  /** Waits until a pod's status is as `look` wants it; the error has the status. */
  async until(
    name: string,
    what: string,
    look: (status: PodStatus) => boolean,
    within = patience,
  ): Promise<PodStatus> {
    let last: PodStatus | undefined;
    try {
      return await this.#wait(`${name}: ${what}`, async () => {
        last = await this.status(name);
        return last && look(last) ? last : undefined;
      }, within);
    } catch (thrown) {
      const said = (await this.events(name)).slice(-8).map((one) => `${one.reason}: ${one.message}`);
      throw new Error(
        `${thrown instanceof Error ? thrown.message : thrown}\nstatus: ${JSON.stringify(last)}\nevents: ${
          said.join(" | ")
        }`,
        { cause: thrown },
      );
    }
  }

  /** Waits until a pod is ready. */
  async ready(name: string): Promise<PodStatus> {
    return await this.until(
      name,
      "to be ready",
      (status) => status.conditions?.some((one) => one.type === "Ready" && one.status === "True") ?? false,
    );
  }

  /** Waits until a pod has the phase. */
  async phase(name: string, phase: string): Promise<PodStatus> {
    return await this.until(name, `to be ${phase}`, (status) => status.phase === phase);
  }

  /** The status of one container, init or regular. */
  static of(status: PodStatus, container: string): ContainerStatus {
    const found = [...status.initContainerStatuses ?? [], ...status.containerStatuses ?? []]
      .find((one) => one.name === container);
    if (!found) throw new Error(`no status of the container ${container}`);
    return found;
  }

  /** Every container of a pod that the runtime has, oldest first. */
  async containers(name: string, container?: string): Promise<CriContainer[]> {
    const { containers } = await this.#cri.call(method.listContainers, {
      filter: {
        labelSelector: {
          "io.kubernetes.pod.name": this.full(name),
          ...(container === undefined ? {} : { "io.kubernetes.container.name": container }),
        },
      },
    });
    return containers.sort((a, b) => Number(a.createdAt - b.createdAt));
  }

  /** The running container of a pod. */
  async running(name: string, container = "main"): Promise<CriContainer> {
    const found = (await this.containers(name, container)).filter((one) =>
      one.state === ContainerState.CONTAINER_RUNNING
    );
    const [only] = found;
    if (!only || found.length > 1) throw new Error(`${name}/${container}: ${found.length} run, not 1`);
    return only;
  }

  /** Runs a line of shell in a container; what it wrote, and its exit code. */
  async exec(name: string, line: string, container = "main"): Promise<{ out: string; code: number }> {
    const { id } = await this.running(name, container);
    const answer = await this.#cri.call(method.execSync, {
      containerId: id,
      cmd: ["sh", "-c", line],
      timeout: 20n,
    }, 30_000);
    const text = new TextDecoder().decode(answer.stdout) + new TextDecoder().decode(answer.stderr);
    return { out: text.trimEnd(), code: answer.exitCode };
  }

  /** What a line of shell in a container writes; throws when it fails. */
  async out(name: string, line: string, container = "main"): Promise<string> {
    const { out, code } = await this.exec(name, line, container);
    if (code !== 0) throw new Error(`${name}/${container}: ${line}: exit code ${code}: ${out}`);
    return out;
  }

  /** The lines of a container's log, without their heads. */
  async log(name: string, container = "main", restarts = 0): Promise<string[]> {
    const uid = await this.uid(name);
    const path = `${this.node.agent.paths.logs}/default_${this.full(name)}_${uid}/${container}/${restarts}.log`;
    const text = await unlessMissing(Deno.readTextFile(path)) ?? "";
    return text.split("\n").filter((line) => line !== "").map((line) => line.split(" ").slice(3).join(" "));
  }

  /** The UID of the pod of this name whose sandbox is the newest. */
  async uid(name: string): Promise<string> {
    const found = (await this.sandboxes(name)).at(-1);
    if (!found?.metadata) throw new Error(`${name}: no sandbox`);
    return found.metadata.uid;
  }

  /** The sandboxes of a pod, oldest first. */
  async sandboxes(name: string): Promise<PodSandbox[]> {
    const { items } = await this.#cri.call(method.listPodSandbox, {
      filter: { labelSelector: { "io.kubernetes.pod.name": this.full(name) } },
    });
    return items.sort((a, b) => Number(a.createdAt - b.createdAt));
  }

  /** A container's status with what the runtime tells besides: its pid and the OCI specification. */
  async detail(id: string): Promise<{ status: CriStatus; info: { pid: number; runtimeSpec: RuntimeSpec } }> {
    const { status, info } = await this.#cri.call(method.containerStatus, { containerId: id, verbose: true });
    if (!status) throw new Error(`container ${id} has no status`);
    const told: unknown = JSON.parse(info.info ?? "{}");
    return { status, info: told as { pid: number; runtimeSpec: RuntimeSpec } };
  }

  /** Waits until neither the runtime nor the directories have anything of a pod. */
  async gone(name: string, uid: string): Promise<void> {
    const { kubelet, logs } = this.node.agent.paths;
    await this.#wait(`${name} to be gone`, async () => {
      const left = [
        ...(await this.sandboxes(name)).filter((one) => one.metadata?.uid === uid).map((one) => one.id),
        ...(await this.containers(name)).filter((one) => one.labels["io.kubernetes.pod.uid"] === uid).map((one) =>
          one.id
        ),
        ...(await namesIn(`${kubelet}/pods`)).filter((one) => one === uid),
        ...(await namesIn(logs)).filter((one) => one.endsWith(uid)),
      ];
      if (left.length > 0) throw new Error(`left: ${left.join(", ")}`);
      return true;
    });
  }

  /**
   * What is left of pods anywhere on the node; to be empty once no pod is wanted. Processes of the runtime itself don't
   * count: containerd 2 leaves a shim of which it knows nothing when its client dies in the middle of RunPodSandbox, and
   * no agent can name that to have it ended.
   */
  async remains(): Promise<string[]> {
    const { kubelet, logs, cgroup } = this.node.agent.paths;
    const left: string[] = [];
    for (const { id } of (await this.#cri.call(method.listPodSandbox, {})).items) left.push(`sandbox ${id}`);
    for (const { id } of (await this.#cri.call(method.listContainers, {})).containers) left.push(`container ${id}`);
    for (const directory of [`${kubelet}/pods`, logs, `${kubelet}/log-links`]) {
      for (const name of await namesIn(directory)) left.push(`${directory}/${name}`);
    }
    left.push(...mountsBelow(await Deno.readTextFile("/proc/self/mountinfo"), `${kubelet}/pods`));
    const { layout } = this.node.containerd;
    for (const link of await namesIn(`/sys/class/net/${layout.bridge}/brif`)) left.push(`network link ${link}`);
    const { addresses, network } = pathsOf(layout);
    const given = (await namesIn(`${addresses}/${network}`)).filter((name) => /^[0-9a-f]+[.:]/.test(name));
    left.push(...given.map((name) => `pod address ${name}`));
    for (const root of await cgroupRoots()) {
      for (const qos of ["", "/burstable", "/besteffort"]) {
        const names = await namesIn(`${root}${cgroup}/kubepods${qos}`);
        left.push(...names.filter((name) => name.startsWith("pod")).map((name) => `${root}${cgroup}${qos}/${name}`));
      }
    }
    return left;
  }

  /** Waits until nothing of any pod is left. */
  async nothingLeft(): Promise<void> {
    await this.#wait("nothing to be left of the pods", async () => {
      const left = await this.remains();
      if (left.length > 0) throw new Error(left.join("\n"));
      return true;
    });
  }

  [Symbol.dispose](): void {
    this.#cri[Symbol.dispose]();
  }
}

/** The parts of an OCI runtime specification that tests look at. */
export interface RuntimeSpec {
  readonly process: {
    readonly oomScoreAdj?: number;
    readonly noNewPrivileges?: boolean;
    readonly user: { uid: number; gid: number; additionalGids?: number[] };
    readonly capabilities?: Readonly<Record<string, string[]>>;
  };
  readonly linux: {
    readonly cgroupsPath: string;
    readonly seccomp?: object;
    readonly maskedPaths?: string[];
    readonly sysctl?: Readonly<Record<string, string>>;
    readonly resources?: { cpu?: { shares?: number; quota?: number; period?: number }; memory?: { limit?: number } };
  };
  readonly mounts: readonly { destination: string; source: string; options?: string[] }[];
}

function parsed(line: string): LogRecord {
  try {
    const value: unknown = JSON.parse(line);
    if (typeof value === "object" && value !== null) return value as LogRecord;
  } catch (thrown) {
    if (!(thrown instanceof SyntaxError)) throw thrown;
  }
  return { text: line };
}

/** `withNode` with an agent whose log can be read by program, and an observer. */
export async function withObserver(
  options: NodeOptions,
  test: (seen: Observer) => Promise<void>,
): Promise<void> {
  await withNode({
    ...options,
    config: { logging: { format: "json", verbosity: 4 }, ...options.config },
  }, async (node) => {
    using seen = new Observer(node, options.name);
    await test(seen);
  });
}

/** The first line of a control group's file in the hierarchy of a controller; undefined when there is none. */
export async function cgroupValue(controller: string, path: string, file: string): Promise<string | undefined> {
  for (const root of await cgroupRoots()) {
    if (!(root.split("/").at(-1) ?? "").split(",").includes(controller)) continue;
    const text = await unlessMissing(Deno.readTextFile(`${root}${path}/${file}`));
    if (text !== undefined) return text.trim();
  }
  return undefined;
}

/** Waits until a path is there. */
export async function appears(path: string): Promise<void> {
  await waitFor(`${path} to appear`, () => exists(path), { within: patience });
}

/** Lets so many milliseconds pass in which nothing should happen. */
export function quiet(ms: number): Promise<void> {
  return systemClock.sleep(ms);
}

/** Runs an agent beside the node's own to its end, with the node's configuration and root directory. */
export async function runAgent(
  { node, nodeName }: Observer,
  flags: readonly string[],
  options: { stdin?: string; within?: number } = {},
): Promise<{ code: number; stdout: string; stderr: string }> {
  const { paths } = node.agent;
  const all = ["--config", paths.config, "--root-dir", paths.kubelet, "--hostname-override", nodeName, ...flags];
  return await agentProgram(all, { run: paths.run, ...options });
}

/** Runs an agent with these flags alone to its end. `run`: where scripts/agent.sh binds what it needs. */
export async function agentProgram(
  flags: readonly string[],
  options: { run: string; stdin?: string; within?: number },
): Promise<{ code: number; stdout: string; stderr: string }> {
  const child = new Deno.Command("/bin/sh", {
    args: [`${repository}/scripts/agent.sh`, ...flags],
    cwd: "/",
    env: { DENOLET_RUN: options.run, DENOLET_DENO: Deno.execPath(), NO_COLOR: "1" },
    stdin: options.stdin === undefined ? "null" : "piped",
    stdout: "piped",
    stderr: "piped",
    signal: AbortSignal.timeout(options.within ?? patience),
  }).spawn();
  if (options.stdin !== undefined) {
    const writer = child.stdin.getWriter();
    await writer.write(new TextEncoder().encode(options.stdin));
    await writer.close();
  }
  const { code, stdout, stderr } = await child.output();
  const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
  return { code, stdout: text(stdout), stderr: text(stderr) };
}
