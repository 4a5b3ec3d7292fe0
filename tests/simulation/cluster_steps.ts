import { resources } from "../../mod/kube/api/resources.ts";
import type { BoundPod, Pod } from "../../mod/kube/types.ts";
import { apiFaults } from "./api_faults.ts";
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
    const made = cluster.objects.equip(s.maker.pod(name));
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
  objects: (s, cluster) => {
    let done = "";
    cluster.asUser(() => done = cluster.objects.change());
    s.world.trace.note(`step api: ${done}`);
  },
  ...apiFaults,
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
  restarted: 0.7,
  strange: 3,
  credentials: 0.7,
  node: 0.4,
  clock: 0.7,
  objects: 2,
  exits: 2,
};

/** Something happens in the cluster. */
export function chooseClusterStep(simulation: Simulation, cluster: SimCluster): void {
  const step: Step = steps[simulation.world.dice.weighted(weights)];
  step(simulation, cluster);
}
