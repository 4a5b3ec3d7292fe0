import type { Fault } from "../../cri/fake/program.ts";
import { FakeRuntime } from "../../cri/fake/runtime.ts";
import { Backoff } from "../../mod/base/backoff.ts";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { Journal } from "../../mod/base/journal.ts";
import { silent } from "../../mod/base/log.ts";
import { seeded } from "../../mod/base/random.ts";
import { Scope } from "../../mod/base/scope.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import type { BoundPod, Container, PodStatus } from "../../mod/kube/types.ts";
import type { PodActions, StartContainer } from "../../mod/pod/actions.ts";
import { type ObservedContainer, type ObservedPod, unobserved } from "../../mod/pod/observed.ts";
import type { GroupKiller } from "../cgroups/types.ts";
import type { ImageManager } from "../images/types.ts";
import { ExitWatch } from "./exit_watch.ts";
import type { HookRunner } from "../lifecycle/types.ts";
import { Killer } from "./kill.ts";
import { PodRunner } from "./runner.ts";
import { Starter } from "./start.ts";
import type { PodBuilder } from "./types.ts";

const why = { reason: "Test", message: "test" };
const image = "localhost/busybox:1";
const container = (name: string, more: Partial<Container> = {}): Container => ({ name, image, resources: {}, ...more });
const nothing: PodActions = { kill: [], remove: [], start: [], held: [], finished: false };
const start = (kind: StartContainer["kind"], name: string, more: Partial<StartContainer> = {}): StartContainer => ({
  kind,
  name,
  ...why,
  ...more,
});

function makePod(spec: Partial<BoundPod["spec"]> = {}): BoundPod {
  return {
    metadata: { name: "p", namespace: "default", uid: "1" },
    spec: { containers: [container("a"), container("b")], ...spec },
  };
}

function setUp(
  options: {
    pod?: BoundPod;
    imageError?: (name: string) => Error | undefined;
    hookFails?: boolean;
    hook?: (id: string, signal: AbortSignal) => Promise<void>;
    /** Processes in the pod's group. */
    leftovers?: number[];
  } = {},
) {
  const clock = new FakeClock();
  const pod = options.pod ?? makePod();
  let fault: (call: string) => Fault | undefined = () => undefined;
  const runtime = new FakeRuntime({
    clock,
    random: seeded(1),
    images: [{ name: image }],
    faults: (call) => fault(call),
  });
  const events = new RecordingEvents();
  const scope = new Scope("test");
  const links: string[] = [];
  const sandboxIps: (readonly string[])[] = [];
  const targets: (string | undefined)[] = [];
  const hooks: HookRunner = {
    run: ({ containerId, signal }) =>
      options.hook?.(containerId, signal) ??
        (options.hookFails ? Promise.reject(new Error("hook says no")) : Promise.resolve()),
  };
  const images: ImageManager = {
    ensure: ({ container }) => {
      const error = options.imageError?.(container.name);
      return error ? Promise.reject(error) : Promise.resolve({ imageRef: image, uid: 0 });
    },
    heldMs: () => 0,
  };
  const sandbox = (attempt: number) => ({
    metadata: { name: "p", namespace: "default", uid: "1", attempt },
    labels: { "io.kubernetes.pod.uid": "1" },
    logDirectory: "/logs",
  });
  const builder: PodBuilder = {
    handlerOf: () => Promise.resolve(""),
    sandbox: (_pod, attempt) => Promise.resolve(sandbox(attempt)),
    container: (request) => {
      targets.push(request.targetContainerId);
      const { name } = request.container.spec;
      return Promise.resolve({
        metadata: { name, attempt: request.restartCount },
        image: { image: request.image.imageRef },
        logPath: `${name}/${request.restartCount}.log`,
      });
    },
  };
  const exits = new ExitWatch();
  const journal = new Journal({ clock });
  const groups: GroupKiller = {
    processesOf: () => Promise.resolve(options.leftovers ?? []),
    killProcesses: () => Promise.resolve(options.leftovers ?? []),
  };
  const killer = new Killer({ runtime, hooks, groups, journal, clock, events, log: silent });
  const backoff = new Backoff({ clock, initial: 10_000, max: 300_000 });
  const starter = new Starter({
    exits,
    runtime,
    images,
    builder,
    hooks,
    killer,
    clock,
    events,
    log: silent,
    scope,
    logs: {
      prepare: () => Promise.resolve(),
      nextRestartCount: () => Promise.resolve(7),
      link: (_pod, name, _id, count) => {
        links.push(`${name}/${count}`);
        return Promise.resolve();
      },
    },
  });
  const removed: string[] = [];
  const tries: string[] = [];
  const settled = { at: 0 };
  const runner = new PodRunner({
    runtime,
    builder,
    clock,
    sandboxStopMs: 50_000,
    killer,
    starter,
    backoff,
    onBackoff: () => {},
    events,
    log: silent,
    onSandbox: (_pod, ips) => sandboxIps.push(ips),
    onStart: (kind, failed) => tries.push(`${kind} ${failed ?? "started"}`),
    removeContainer: (id, { keepLogs, because }) => {
      removed.push(`${id} ${keepLogs} ${because.reason}`);
      return Promise.resolve();
    },
  });
  const apply = async (
    actions: Partial<PodActions>,
    observed: ObservedPod = unobserved(pod, 0),
    status?: PodStatus,
  ) => {
    const applying = runner.apply(pod, observed, { ...nothing, ...actions }, {
      situation: { volumes: new Map(), podIPs: [], status },
      signal: new AbortController().signal,
    }).then((result) => ({ result, error: undefined }), (error: Error) => ({ result: undefined, error }))
      .finally(() => settled.at = clock.now());
    await clock.advance(60_000);
    return await applying;
  };
  const calls = () => runtime.calls.map((c) => c.call).filter((c) => !/Status|List/.test(c));
  return {
    clock,
    runtime,
    events,
    links,
    sandboxIps,
    targets,
    removed,
    /** Starts of containers as the metrics are told of them. */
    tries,
    exits,
    backoff,
    apply,
    calls,
    scope,
    journal,
    killPod: async (observed: ObservedPod) => {
      const killing = runner.killPod(pod, observed, { why, podIP: undefined, signal: new AbortController().signal })
        .then(() => undefined, (error: Error) => error);
      await clock.advance(300_000);
      return await killing;
    },
    fail: (f: typeof fault) => fault = f,
    /** When the last pass ended. */
    settled,
  };
}

const seen = (id: string, name: string, more: Partial<ObservedContainer> = {}): ObservedContainer => ({
  id,
  name,
  restartCount: 0,
  sandboxId: "s",
  state: "exited",
  createdAt: 1,
  startedAt: 1,
  finishedAt: 2,
  exitCode: 1,
  reason: "Error",
  message: "",
  image,
  imageRef: image,
  hash: undefined,
  annotations: {},
  logPath: "",
  mounts: [],
  ...more,
});

export { container, image, makePod, nothing, seen, setUp, start, why };
