import { FakeApi } from "../../mod/kube/api/fake/fake_api.ts";
import type { Call } from "../../mod/kube/api/fake/faults.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import type { KubeObject } from "../../mod/kube/api/types.ts";
import { configHash, isMirror } from "../../mod/kube/pod.ts";
import type { BoundPod, Node, Pod, PodStatus } from "../../mod/kube/types.ts";
import { isOwnCondition } from "../../mod/pod/status/conditions.ts";
import { registerNode } from "./member.ts";
import { SimObjects } from "./sim_objects.ts";
import { short } from "./trace.ts";
import { simulatedFacts, type World } from "./world.ts";

const ranks: Record<string, number> = { Pending: 0, Running: 1, Succeeded: 2, Failed: 2 };

/** What the API server last showed of a pod. */
interface Shown {
  readonly phase: string;
  readonly counts: ReadonlyMap<string, number>;
  readonly observed: number;
}

/** Where the node's token is. */
const tokenFile = "/etc/kubernetes/token";

/** The cluster that a simulated node is a member of, and what must hold as its API server sees it. */
export class SimCluster {
  readonly api: FakeApi;
  readonly #world: World;
  readonly #shown = new Map<string, Shown>();
  readonly #wanted = new Map<string, { key: string; pod: BoundPod }>();
  #seen = 0;
  /** True while the world itself writes, as a user or a controller. */
  #own = false;

  #token = 1;
  readonly objects: SimObjects;
  readonly tokenFile = tokenFile;

  constructor(world: World) {
    const { dice, clock } = world;
    this.#world = world;
    this.api = new FakeApi({ clock });
    this.api.knows = (authorization) => authorization === `Bearer token-${this.#token}`;
    this.api.pageSize = dice.pick([1, 3, Infinity]);
    this.objects = new SimObjects(this.api, dice);
    this.writeToken();
    if (dice.chance(0.7)) registerNode(this.api);
    if (dice.chance(0.2)) this.api.reach = dice.pick(["refused", "silent"]);
    this.api.server.store.listen(resources.pods, ({ object, removed }) => this.#onPod(object as Pod, removed));
  }

  /** Pods of the API's own that are to run on the node. */
  pods(): BoundPod[] {
    return this.api.list<Pod>(resources.pods).map((pod) => pod as BoundPod).filter((pod) => !isMirror(pod));
  }

  /** The pods that are wanted; one whose definition did not change is the very same object. */
  wanted(): BoundPod[] {
    return this.pods().filter(({ metadata }) => metadata.deletionTimestamp === undefined).map((pod) => {
      const { uid, labels, annotations } = pod.metadata;
      const key = JSON.stringify([pod.spec, labels, annotations]);
      const known = this.#wanted.get(uid);
      if (known?.key === key) return known.pod;
      this.#wanted.set(uid, { key, pod });
      return pod;
    });
  }

  /** Does something as a user or controller does it: without faults, and without the agent's invariants. */
  asUser(work: () => void): void {
    this.#own = true;
    try {
      work();
    } finally {
      this.#own = false;
    }
  }

  /** The server does not know the token any more that the node has. */
  expireToken(): void {
    this.#token++;
  }

  /** @param text the token that the server knows when not given */
  writeToken(text = `token-${this.#token}\n`): void {
    this.#world.host.put(tokenFile, text);
  }

  get node(): Node | undefined {
    return this.api.get(resources.nodes, { name: simulatedFacts.name });
  }

  /** Somebody else makes the node's object, when there is none. */
  registerNode(): void {
    if (this.node) return;
    this.#world.trace.note("api: somebody makes the node's object");
    this.asUser(() => registerNode(this.api));
  }

  /** What belongs to a node that is not there any more goes, as the garbage collector has it. */
  collectGarbage(): void {
    const uid = this.node?.metadata?.uid;
    const orphan = ({ metadata }: KubeObject) =>
      metadata?.ownerReferences?.some((owner) => owner.kind === "Node" && owner.uid !== uid) ?? false;
    this.asUser(() => {
      for (const resource of [resources.leases, resources.pods, resources.csiNodes]) {
        for (const object of this.api.list<KubeObject>(resource).filter(orphan)) {
          const { name = "", namespace } = object.metadata ?? {};
          this.#world.trace.note(`api: ${resource.kind} ${name} of a node that is gone is collected`);
          this.api.remove(resource, { name, ...(namespace === undefined ? {} : { namespace }) });
        }
      }
    });
  }

  /** Everything works again. */
  clear(): void {
    this.api.reach = "up";
    this.api.faults.clear();
    this.api.tamper = undefined;
    this.writeToken();
    this.asUser(() => this.objects.complete());
    this.collectGarbage();
  }

  get stormy(): boolean {
    return this.api.reach !== "up";
  }

  /** What the agent did to the API's pods since the last look. */
  collect(): Call[] {
    const calls = this.api.calls.slice(this.#seen);
    this.#seen = this.api.calls.length;
    for (const call of calls) {
      if (call.resource !== "pods" || (call.verb !== "patch" && call.verb !== "delete")) continue;
      this.#world.trace.note(`api ${call.verb} ${call.name} ${JSON.stringify(call.body)}`);
    }
    return calls;
  }

  /** What is wrong with the node's object and its lease. */
  #nodeProblems(): string[] {
    const { name } = simulatedFacts;
    const problems: string[] = [];
    const conditions = this.api.get(resources.nodes, { name })?.status?.conditions ?? [];
    const ready = conditions.find(({ type }) => type === "Ready");
    if (ready?.status !== "True") problems.push(`the node is not ready: ${ready?.message ?? "nothing is told"}`);
    const lease = this.api.get(resources.leases, { namespace: "kube-node-lease", name });
    const age = this.#world.clock.now() - Date.parse(lease?.spec?.renewTime ?? "");
    // A renewal each ten seconds, with some slack for one that is under way.
    if (!(age <= 20_000)) problems.push(`the node's lease was renewed ${age} ms ago`);
    return problems;
  }

  /** Invariants 2, 4, 5 and 9 of the design, as whoever watches the API sees them. */
  #onPod(pod: Pod, removed: boolean): void {
    const { uid = "", name = "" } = pod.metadata ?? {};
    const { status = {} } = pod;
    const world = this.#world;
    if (removed) {
      if (!this.#own && !isMirror(pod as BoundPod)) this.#mayGo(pod);
      this.#shown.delete(uid);
      return;
    }
    const now = shownOf(status);
    const before = this.#shown.get(uid);
    this.#shown.set(uid, now);
    if (this.#own || !before || isMirror(pod as BoundPod)) return;
    const what = `${name} ${short(uid)}`;
    world.trace.note(`api shows ${what}: ${now.phase} ${[...now.counts].map(([n, c]) => `${n}/${c}`).join(" ")}`);
    const rank = (phase: string) => ranks[phase] ?? 0;
    if (rank(before.phase) === 2 && now.phase !== before.phase) {
      world.fail("api: phase forward", `${what} went from ${before.phase} to ${now.phase}`);
    }
    // An init container that runs again in a new sandbox makes the pod pending once more (section 13).
    if (rank(now.phase) < rank(before.phase) && (pod.spec?.initContainers?.length ?? 0) === 0) {
      world.fail("api: phase forward", `${what} went from ${before.phase} to ${now.phase}`);
    }
    const running = world.runtime.snapshot().containers.filter((c) => c.uid === uid && c.state === "running");
    if (rank(now.phase) === 2 && rank(before.phase) !== 2 && running.length > 0) {
      world.fail("api: terminal phase", `${what} is ${now.phase} while ${running.map((c) => c.name)} run(s)`);
    }
    for (const [container, count] of now.counts) {
      const last = before.counts.get(container) ?? 0;
      if (count < last) world.fail("api: restart counts", `${what}/${container} went from ${last} to ${count}`);
    }
    if (now.observed < before.observed) {
      world.fail("api: order", `${what}: observedGeneration went from ${before.observed} to ${now.observed}`);
    }
  }

  /** A pod goes for good only when nothing of it runs, is mounted or has a control group. */
  #mayGo({ metadata = {} }: Pod): void {
    const { uid = "", name = "" } = metadata;
    const { runtime, host } = this.#world;
    const holds = [
      ...runtime.snapshot().containers.filter((c) => c.uid === uid && c.state === "running").map((c) => c.name),
      ...host.mountTargets("/var/lib/kubelet").filter((target) => target.includes(uid)),
      ...host.tree(host.cgroupRoot).filter((path) => path.endsWith(`/pod${uid}/`)),
    ];
    if (metadata.deletionTimestamp === undefined) this.#world.fail("api: deletion", `${name} was not to be deleted`);
    if (holds.length > 0) this.#world.fail("api: deletion", `${name} is gone, but there is ${holds.join(", ")}`);
  }

  /** What the API server does not show as the agent has it, once nothing happens any more. */
  problems(
    told: readonly { readonly pod: BoundPod; readonly status: PodStatus | undefined }[],
    restless: ReadonlySet<string>,
  ): string[] {
    const problems: string[] = this.#nodeProblems();
    const all = new Map(
      this.api.list<Pod>(resources.pods).map((pod) => [`${pod.metadata?.namespace}/${pod.metadata?.name}`, pod]),
    );
    for (const { pod, status } of told) {
      const name = `${pod.metadata.namespace}/${pod.metadata.name}`;
      const shown = all.get(name);
      all.delete(name);
      const own = shown?.metadata?.uid === pod.metadata.uid || isMirrorOf(shown, pod);
      if (!own) problems.push(`${name}: the API server has no such pod`);
      else if (!restless.has(pod.metadata.uid) && gist(shown?.status) !== gist(status)) {
        problems.push(`${name}: the API server shows ${gist(shown?.status)}, the agent has ${gist(status)}`);
      }
      if (!restless.has(pod.metadata.uid) && status?.phase === "Running") {
        problems.push(...this.objects.problems(pod, this.#world.host, this.#world.clock.now()));
      }
      const owner = shown?.metadata?.ownerReferences?.find((one) => one.kind === "Node");
      if (shown && isMirror(shown as BoundPod) && owner?.uid !== this.node?.metadata?.uid) {
        problems.push(`${name}: its mirror belongs to node ${owner?.uid}`);
      }
    }
    for (const [name, pod] of all) {
      if (pod.spec?.nodeName === simulatedFacts.name) problems.push(`${name}: is on the API server, not on the node`);
    }
    return problems;
  }
}

function isMirrorOf(shown: Pod | undefined, pod: BoundPod): boolean {
  return shown !== undefined && isMirror(shown as BoundPod) &&
    shown.metadata?.annotations?.[configHash] === pod.metadata.annotations?.[configHash];
}

function statusesOf(status: PodStatus) {
  return [...status.initContainerStatuses ?? [], ...status.containerStatuses ?? []];
}

function shownOf(status: PodStatus): Shown {
  return {
    phase: status.phase ?? "Pending",
    counts: new Map(statusesOf(status).map((s) => [s.name, s.restartCount])),
    observed: status.observedGeneration ?? 0,
  };
}

/** What of a status must arrive: the phase, the containers, and the agent's own conditions. */
function gist(status: PodStatus | undefined): string {
  const conditions = (status?.conditions ?? []).filter((c) => isOwnCondition(c.type));
  return JSON.stringify([
    status?.phase,
    status?.reason,
    statusesOf(status ?? {}).map((s) => [s.name, s.restartCount, s.ready, s.containerID]),
    conditions.map((c) => `${c.type}=${c.status}`).sort(),
  ]);
}
