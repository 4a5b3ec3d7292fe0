import { ApiError } from "../../mod/kube/api/types.ts";
import type { FaultKind } from "../../mod/kube/api/fake/faults.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import type { BoundPod, Pod } from "../../mod/kube/types.ts";
import type { Simulation } from "./run.ts";
import type { SimCluster } from "./sim_cluster.ts";
import { simulatedFacts } from "./world.ts";

type Step = (simulation: Simulation, cluster: SimCluster) => void;

const nameOf = ({ metadata: { name, namespace } }: BoundPod) => ({ name, namespace });

function change(s: Simulation, cluster: SimCluster, what: string, work: () => void): void {
  s.world.trace.note(`step api: ${what}`);
  cluster.asUser(work);
  s.manifestsChanged();
}

function anyPod(s: Simulation, cluster: SimCluster): BoundPod | undefined {
  const pods = cluster.pods();
  return pods.length === 0 ? undefined : s.world.dice.pick(pods);
}

function replace(cluster: SimCluster, pod: BoundPod): void {
  cluster.api.server.replace(resources.pods, pod);
}

const steps = {
  add: (s, cluster) => {
    const name = `q${s.world.dice.int(1, 7)}`;
    if (cluster.api.get(resources.pods, { name, namespace: "default" })) return;
    const made = s.maker.pod(name);
    const { uid: _, ...metadata } = made.metadata ?? {};
    change(s, cluster, `add ${name}`, () => {
      cluster.api.create<Pod>(resources.pods, { ...made, metadata: { ...metadata, namespace: "default" } });
      cluster.api.bind({ name, namespace: "default" }, simulatedFacts.name);
    });
  },
  image: (s, cluster) => {
    const pod = anyPod(s, cluster);
    const [first, ...more] = pod?.spec.containers ?? [];
    if (!pod || !first) return;
    const image = first.image === "registry.sim/app:1" ? "registry.sim/app:2" : "registry.sim/app:1";
    change(
      s,
      cluster,
      `image of ${pod.metadata.name}`,
      () => replace(cluster, { ...pod, spec: { ...pod.spec, containers: [{ ...first, image }, ...more] } }),
    );
  },
  label: (s, cluster) => {
    const pod = anyPod(s, cluster);
    if (!pod) return;
    const labels = { edit: String(s.world.dice.int(1, 1000)) };
    change(
      s,
      cluster,
      `label of ${pod.metadata.name}`,
      () => replace(cluster, { ...pod, metadata: { ...pod.metadata, labels } }),
    );
  },
  delete: (s, cluster) => {
    const pod = anyPod(s, cluster);
    if (!pod) return;
    const grace = s.world.dice.pick([30, 30, 0, 1, 5, 60]);
    change(
      s,
      cluster,
      `delete ${pod.metadata.name} grace ${grace}`,
      () => cluster.api.delete(resources.pods, nameOf(pod), grace === undefined ? {} : { gracePeriodSeconds: grace }),
    );
  },
  overwrite: (s, cluster) => {
    const pod = anyPod(s, cluster);
    if (!pod) return;
    const status = s.world.dice.pick([
      { message: "somebody was here" },
      { conditions: [] },
      { podIP: "1.2.3.4", podIPs: [{ ip: "1.2.3.4" }] },
      { containerStatuses: [] },
    ]);
    change(
      s,
      cluster,
      `status of ${pod.metadata.name} overwritten`,
      () => cluster.api.merge<Pod>(resources.pods, nameOf(pod), { status }),
    );
  },
  mirror: (s, cluster) => {
    const mirrors = cluster.api.list<Pod>(resources.pods).filter((pod) => pod.metadata?.name?.endsWith("-node1"));
    if (mirrors.length === 0) return;
    const { name = "", namespace = "" } = s.world.dice.pick(mirrors).metadata ?? {};
    const gracePeriodSeconds = s.world.dice.pick([0, 30]);
    change(
      s,
      cluster,
      `delete the mirror ${name}`,
      () => cluster.api.delete(resources.pods, { name, namespace }, { gracePeriodSeconds }),
    );
  },
  faults: (s, { api }) => {
    const { dice, trace } = s.world;
    const status = (code: number, reason: string, retryAfterMs?: number): FaultKind => ({
      kind: "status",
      error: new ApiError(reason, { status: code, reason, retryAfterMs }),
    });
    const fault = dice.pick<FaultKind>([
      { kind: "unreachable" },
      { kind: "hang" },
      { kind: "slow", ms: dice.span(1, 60_000) },
      { kind: "lost" },
      status(500, "InternalError"),
      status(429, "TooManyRequests", dice.span(1, 20_000)),
      status(403, "Forbidden"),
      status(410, "Expired"),
    ]);
    const verb = dice.pick(["all", "patch", "delete", "create", "list", "watch"] as const);
    const times = dice.int(1, 20);
    trace.note(`step api: ${fault.kind} for ${verb}, ${times} times`);
    api.faults.add(fault, verb === "all" ? {} : { verb }, times);
  },
  reach: (s, { api }) => {
    api.reach = s.world.dice.pick(["up", "up", "refused", "silent"]);
    s.world.trace.note(`step api: ${api.reach}`);
  },
  watches: (s, { api }) => {
    const { dice, trace } = s.world;
    trace.note("step api: watches are cut");
    if (dice.chance(0.4)) api.compact();
    api.cutWatches(dice.pick(["end", "break"]));
  },
  exits: (s) => {
    const running = s.world.runtime.snapshot().containers.filter((c) => c.state === "running");
    if (running.length > 0) s.world.runtime.exitContainer(s.world.dice.pick(running).id, s.world.dice.pick([0, 1]), "");
  },
} satisfies Record<string, Step>;

const weights: Record<keyof typeof steps, number> = {
  add: 8,
  image: 2,
  label: 1,
  delete: 5,
  overwrite: 1,
  mirror: 1,
  faults: 3,
  reach: 1.5,
  watches: 1.5,
  exits: 2,
};

/** Something happens in the cluster. */
export function chooseClusterStep(simulation: Simulation, cluster: SimCluster): void {
  const step: Step = steps[simulation.world.dice.weighted(weights)];
  step(simulation, cluster);
}
