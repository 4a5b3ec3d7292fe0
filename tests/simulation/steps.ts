import type { Container, Pod } from "../../mod/kube/types.ts";
import { badManifest } from "./pods.ts";
import type { Simulation } from "./run.ts";
import { short } from "./trace.ts";
import { type Answer, manifestDir, type Weather } from "./world.ts";

type Step = (simulation: Simulation) => Promise<void> | void;

const fine: Weather = { cri: 0, criKinds: [], disk: 0, diskError: "EIO", diskPath: "/", diskMs: 0 };

function put(s: Simulation, path: string, text: string, what: string): void {
  s.world.trace.note(`step ${what} ${path.slice(manifestDir.length + 1)}`);
  s.world.writeManifest(path, text);
  s.manifestsChanged();
}

/** A manifest that is there, with its pod when its text is one. */
function anyManifest(s: Simulation): { path: string; pod: Pod | undefined } | undefined {
  const { manifests, dice } = s.world;
  if (manifests.size === 0) return undefined;
  const [path, text] = dice.pick([...manifests]);
  try {
    return { path, pod: JSON.parse(text) as Pod };
  } catch {
    return { path, pod: undefined };
  }
}

function fresh(s: Simulation): { path: string; pod: Pod } {
  const { dice } = s.world;
  // Few names, so that some pods come again and some manifests quarrel.
  const name = `p${dice.int(1, 7)}`;
  return { path: `${manifestDir}/${dice.chance(0.85) ? name : `${name}-too`}.json`, pod: s.maker.pod(name) };
}

/** Changes a pod's definition a little. */
function edited(s: Simulation, pod: Pod): Pod {
  const { dice } = s.world;
  const copy = structuredClone(pod);
  const container: Container | undefined = copy.spec?.containers[0];
  switch (dice.weighted({ image: 4, label: 2, grace: 1, replace: 2 })) {
    case "image":
      if (container) {
        container.image = container.image === "registry.sim/app:1" ? "registry.sim/app:2" : "registry.sim/app:1";
      }
      return copy;
    case "label":
      copy.metadata = { ...copy.metadata, labels: { edit: String(dice.int(1, 1000)) } };
      return copy;
    case "grace":
      if (copy.spec) copy.spec.terminationGracePeriodSeconds = dice.int(0, 40);
      return copy;
    case "replace":
      return s.maker.pod(pod.metadata?.name ?? "p1");
  }
}

const steps = {
  add: (s) => {
    const { path, pod } = fresh(s);
    put(s, path, JSON.stringify(pod), "add");
  },
  edit: (s) => {
    const found = anyManifest(s);
    if (found?.pod?.spec) put(s, found.path, JSON.stringify(edited(s, found.pod)), "edit");
  },
  remove: async (s) => {
    const found = anyManifest(s);
    if (!found) return;
    s.world.trace.note(`step remove ${found.path.slice(manifestDir.length + 1)}`);
    await s.world.removeManifest(found.path);
    s.manifestsChanged();
  },
  rename: async (s) => {
    const found = anyManifest(s);
    const to = `${manifestDir}/r${s.world.dice.int(1, 5)}.json`;
    if (!found || s.world.manifests.has(to)) return;
    s.world.trace.note(
      `step rename ${found.path.slice(manifestDir.length + 1)} to ${to.slice(manifestDir.length + 1)}`,
    );
    await s.world.renameManifest(found.path, to);
    s.manifestsChanged();
  },
  bad: (s) => {
    const found = s.world.dice.chance(0.5) ? anyManifest(s) : undefined;
    put(s, found?.path ?? `${manifestDir}/bad${s.world.dice.int(1, 2)}.json`, badManifest(s.world.dice), "bad");
  },
  half: async (s) => {
    const { path, pod } = fresh(s);
    const text = JSON.stringify(pod);
    put(s, path, text.slice(0, s.world.dice.int(1, text.length - 1)), "half of");
    await s.advance(s.world.dice.span(1, 2000));
    put(s, path, text, "all of");
  },
  exit: (s) => {
    const { runtime, dice, trace } = s.world;
    const running = runtime.snapshot().containers.filter((c) => c.state === "running");
    if (running.length === 0) return;
    const { id, podName, name } = dice.pick(running);
    const oom = dice.chance(0.25);
    const code = oom ? 137 : dice.pick([0, 1, 3, 255]);
    trace.note(`step exit ${podName}/${name} ${short(id)} with ${code}`);
    runtime.exitContainer(id, code, oom ? "OOMKilled" : "");
  },
  sandbox: (s) => {
    const { runtime, dice, trace } = s.world;
    const ready = runtime.snapshot().sandboxes.filter((b) => b.ready);
    if (ready.length === 0) return;
    const { id, podName } = dice.pick(ready);
    trace.note(`step sandbox of ${podName} ${short(id)} ends`);
    runtime.exitSandbox(id);
  },
  probe: (s) => {
    const { answers, dice, manifests, trace } = s.world;
    const text = [...manifests.values()].join("\n");
    const keys = [...text.matchAll(/\\"key\\":\\"(k\d+)\\"/g)].map((m) => m[1] ?? "");
    if (keys.length === 0) return;
    const key = `${dice.pick(keys)}/${dice.pick(["liveness", "readiness", "startup", "tcp", "preStop", "postStart"])}`;
    const answer: Answer = dice.pick(["ok", "bad", "bad", "slow", "hangs"]);
    trace.note(`step ${key} answers ${answer}`);
    answers.set(key, answer);
  },
  criFaults: (s) => {
    const { dice, trace } = s.world;
    const kinds = (["slow", "error", "hang", "lost"] as const).filter(() => dice.chance(0.5));
    s.world.weather = { ...s.world.weather, cri: dice.pick([0.02, 0.1, 0.3]), criKinds: kinds };
    trace.note(`step weather: CRI ${s.world.weather.cri} ${kinds}`);
  },
  diskFaults: (s) => {
    const { dice, trace } = s.world;
    const disk = dice.pick([0.02, 0.2, 1]);
    const diskError = dice.pick(["ENOSPC", "EIO", "EROFS"] as const);
    const diskPath = dice.pick(["/var", "/var/lib/kubelet", "/var/log", "/etc/kubernetes", "/sys/fs/cgroup", "/"]);
    s.world.weather = { ...s.world.weather, disk, diskError, diskPath };
    trace.note(`step weather: disk ${disk} ${diskError} below ${diskPath}`);
  },
  slowDisk: (s) => {
    s.world.weather = { ...s.world.weather, diskMs: s.world.dice.span(1, 5000) };
    s.world.trace.note(`step weather: disk up to ${s.world.weather.diskMs} ms`);
  },
  pressure: (s) => {
    s.world.trace.note("step process ids run short");
    s.world.pressed = true;
  },
  relief: (s) => {
    s.world.trace.note("step process ids suffice");
    s.world.pressed = false;
  },
  latency: (s) => {
    s.world.latency = s.world.dice.pick([0, 0, 1, 20, 300]);
  },
  fair: (s) => {
    s.world.weather = fine;
    s.world.clear();
    s.world.trace.note("step fair weather");
  },
  runtimeRestart: (s) => {
    const ms = s.world.dice.span(10, 90_000);
    s.world.trace.note(`step the runtime restarts, away for ${ms} ms`);
    s.world.runtime.restart(ms);
  },
  notReady: (s) => {
    const { runtime, dice, trace } = s.world;
    trace.note("step the runtime says that it is not ready");
    if (dice.chance(0.7)) runtime.notReady.network = "cni plugin not initialized";
    else runtime.notReady.runtime = "not yet";
  },
  kill: (s) => {
    s.world.trace.note("step kill");
    s.kill();
  },
  fuse: (s) => {
    const { dice, trace } = s.world;
    const steps = dice.span(1, 400);
    trace.note(`step kill after ${steps} awaits`);
    s.lightFuse(steps);
  },
  stop: (s) => s.stop(),
  reboot: async (s) => {
    s.world.trace.note("step reboot");
    s.kill();
    await s.world.reboot();
  },
  clock: (s) => s.stepClock(),
  nothing: () => {},
} satisfies Record<string, Step>;

const weights: Record<keyof typeof steps, number> = {
  add: 6,
  edit: 4,
  remove: 3,
  rename: 1,
  bad: 1,
  half: 0.7,
  exit: 4,
  sandbox: 1.2,
  probe: 3,
  criFaults: 1.5,
  diskFaults: 1,
  slowDisk: 0.7,
  pressure: 0.5,
  relief: 1,
  latency: 0.7,
  fair: 2.5,
  runtimeRestart: 0.8,
  notReady: 0.3,
  kill: 0.8,
  fuse: 2,
  stop: 0.6,
  reboot: 0.25,
  clock: 0.5,
  nothing: 1,
};

/** Something happens to the world. */
export async function chooseStep(simulation: Simulation): Promise<void> {
  const step: Step = steps[simulation.world.dice.weighted(weights)];
  await step(simulation);
  simulation.invariants.collect();
}
