import type { Clock } from "../../mod/base/clock.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Scope } from "../../mod/base/scope.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import type { ApiClient, ResourceType } from "../../mod/kube/api/types.ts";
import type { BoundPod, ConfigMap, Secret } from "../../mod/kube/types.ts";
import { CachedObjects, DirectObjects } from "./fetched_objects.ts";
import { podReferences, type References } from "./references.ts";
import type { ChangeStrategy, ObjectStore, PodObjects } from "./types.ts";
import { type KeptObject, WatchedObjects, type WatchOne } from "./watched_objects.ts";

export interface PodObjectsOptions {
  readonly strategy: ChangeStrategy;
  readonly client: Pick<ApiClient, "get">;
  /** Makes the watch of one object of a kind. */
  readonly watch: <T extends KeptObject>(resource: ResourceType<T>) => WatchOne<T>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly scope: Scope;
  /** The period of looks at a pod (syncFrequency), in milliseconds. */
  readonly resyncMs: number;
  /** Time to live of the node's annotation, for strategy Cache, in milliseconds. */
  readonly ttlMs: () => number | undefined;
  /** An object that the pod was told of has changed, or is there at last. @param live the pod's volumes show it */
  readonly onChange: (podUid: string, live: boolean) => void;
}

interface Registered {
  readonly namespace: string;
  readonly secrets: References;
  readonly configMaps: References;
}

/** Keeps the ConfigMaps and Secrets that the registered pods refer to, by one of three strategies (features.md H30). */
export function createPodObjects(options: PodObjectsOptions): PodObjects {
  const secrets = storeOf(options, resources.secrets, "secret");
  const configMaps = storeOf(options, resources.configMaps, "configmap");
  const pods = new Map<string, Registered>();
  if (options.strategy !== "Watch") lookRegularly(options, pods);
  return {
    register(pod: BoundPod): void {
      const { uid, namespace } = pod.metadata;
      const before = pods.get(uid);
      const now: Registered = { namespace, ...podReferences(pod) };
      pods.set(uid, now);
      follow(secrets, uid, namespace, before?.secrets, now.secrets);
      follow(configMaps, uid, namespace, before?.configMaps, now.configMaps);
    },
    unregister(uid: string): void {
      const before = pods.get(uid);
      if (!before) return;
      pods.delete(uid);
      follow(secrets, uid, before.namespace, before.secrets, new Map());
      follow(configMaps, uid, before.namespace, before.configMaps, new Map());
    },
    secret: (namespace, name, signal): Promise<Secret> => secrets.get(namespace, name, signal),
    configMap: (namespace, name, signal): Promise<ConfigMap> => configMaps.get(namespace, name, signal),
  };
}

/** Nobody tells of changes: volumes are brought up to date once a period. */
function lookRegularly({ scope, clock, resyncMs, onChange }: PodObjectsOptions, pods: Map<string, Registered>): void {
  scope.spawn("regular look at Secrets and ConfigMaps", async (signal) => {
    while (!signal.aborted) {
      await clock.sleep(resyncMs, signal);
      for (const [uid, { secrets, configMaps }] of pods) {
        if ([...secrets.values(), ...configMaps.values()].some((live) => live)) onChange(uid, true);
      }
    }
  });
}

function storeOf<T extends KeptObject>(o: PodObjectsOptions, resource: ResourceType<T>, word: string): ObjectStore<T> {
  const { client, clock, log, scope, resyncMs, onChange } = o;
  switch (o.strategy) {
    case "Watch":
      return new WatchedObjects({ word, watch: o.watch(resource), clock, log, scope, resyncMs, onChange });
    case "Cache":
      return new CachedObjects({ read: (name, options) => client.get(resource, name, options), clock, ttlMs: o.ttlMs });
    case "Get":
      return new DirectObjects((name, options) => client.get(resource, name, options));
  }
}

/** Refers to what is new before it lets go of what is not, and leaves alone what stays. */
function follow(
  store: ObjectStore<unknown>,
  uid: string,
  namespace: string,
  before: References = new Map(),
  now: References,
): void {
  for (const [name, live] of now) if (before.get(name) !== live) store.reference(namespace, name, uid, live);
  for (const name of before.keys()) if (!now.has(name)) store.release(namespace, name, uid);
}
