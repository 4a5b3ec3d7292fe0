import { pullSecretKeyring } from "../../../managers/images/credentials/keyring.ts";
import { createPodObjects } from "../../../managers/objects/manager.ts";
import type { ChangeStrategy, PodObjects } from "../../../managers/objects/types.ts";
import { clusterTrustBundles, TrustBundles } from "../../../managers/objects/trust_bundles.ts";
import { PodCertificates } from "../../../managers/pod_certificates/manager.ts";
import { podCertificateRequests } from "../../../managers/pod_certificates/types.ts";
import { createEnvSource } from "../../../managers/runtime/env_source.ts";
import { ServiceAccountTokens } from "../../../managers/tokens/manager.ts";
import { apiProjections } from "../../../managers/volumes/api_projections.ts";
import { configMapPlugin, secretPlugin } from "../../../managers/volumes/api_volumes.ts";
import { knowsNoswap } from "../../../managers/volumes/empty_dir.ts";
import { awaitFirstList } from "../../kube/api/first_list.ts";
import { createInformer } from "../../kube/api/informer.ts";
import { resources } from "../../kube/api/resources.ts";
import type { Informer, KubeObject } from "../../kube/api/types.ts";
import { isStatic } from "../../kube/pod.ts";
import { parseQuantity, valueBig } from "../../kube/quantity.ts";
import type { BoundPod, Node, ObjectMeta, Service } from "../../kube/types.ts";
import { serviceEnv } from "../../pod/config/service_env.ts";
import type { ServedAgent } from "../agent_types.ts";
import type { ClusterContext, ClusterPart, ClusterParts } from "./types.ts";

/** The server is asked to keep the watch of one object for so long at least, in seconds: there can be hundreds. */
const objectWatchSeconds = 1800;
/** How long a container waits for the first list of services, in milliseconds. */
const servicesWaitMs = 2000;

/** Secrets, ConfigMaps, tokens of service accounts and services: what pods are made of besides themselves. */
export function objectsPart(context: ClusterContext): ClusterPart {
  const { clients: { main: client }, config, clock, random, log, scope, host, events, facts, gates, nodeName } =
    context;
  let agent: ServedAgent | undefined;
  let node: ClusterParts["node"];
  const objects = createPodObjects({
    strategy: config.configMapAndSecretChangeDetectionStrategy as ChangeStrategy,
    client,
    watch: (resource) => ({ namespace, name, onChange, onList, onFailure }) =>
      createInformer({
        client,
        resource,
        namespace,
        fieldSelector: `metadata.name=${name}`,
        watchSeconds: objectWatchSeconds,
        keep: whatPodsNeed,
        clock,
        random,
        log,
        onChange,
        onList,
        onFailure,
      }),
    clock,
    log,
    scope,
    resyncMs: config.syncFrequencyMs,
    ttlMs: () => objectTtlMs(node?.()),
    onChange: (uid, volumes) => agent?.podChanged(uid, { volumes }),
  });
  const tokens = new ServiceAccountTokens({
    client,
    clock,
    random,
    log,
    onDue: (uid) => agent?.podChanged(uid, { volumes: true }),
  });
  const trust = new TrustBundles({
    watch: (onChange) => {
      const bundles = createInformer({ client, resource: clusterTrustBundles, clock, random, log, onChange });
      scope.spawn("trust bundles", (signal) => bundles.run(signal));
      return bundles;
    },
    onChange: (uid) => agent?.podChanged(uid, { volumes: true }),
  });
  const certificates = new PodCertificates({
    client,
    watch: (onChange) => {
      const requests = createInformer({
        client,
        resource: podCertificateRequests,
        fieldSelector: `spec.nodeName=${nodeName}`,
        clock,
        random,
        log,
        onChange,
      });
      scope.spawn("pod certificate requests", (signal) => requests.run(signal));
      return requests;
    },
    accountUid: async (namespace, name, signal) =>
      (await client.get(resources.serviceAccounts, { namespace, name }, { signal })).metadata?.uid ?? "",
    node: () => ({ name: nodeName, uid: node?.()?.metadata?.uid }),
    clock,
    random,
    log,
    events,
    scope,
    onChange: (uid) => agent?.podChanged(uid, { volumes: true }),
  });
  if (context.certificates) context.certificates.podCertificates = () => certificates.states();
  const services = createInformer({ client, resource: resources.services, clock, random, log, keep: whatEnvNeeds });
  const memory = {
    allocatableMemory: () => valueBig(parseQuantity(facts.allocatable.memory ?? "0")),
    noswap: knowsNoswap(facts.kernelVersion),
  };
  return {
    podObjects: {
      register: (pod: BoundPod) => objects.register(pod),
      unregister: (uid: string) => {
        objects.unregister(uid);
        tokens.forget(uid);
        trust.forget(uid);
        certificates.forget(uid);
      },
    } satisfies Pick<PodObjects, "register" | "unregister">,
    environment: createEnvSource({
      host,
      log,
      objects,
      services: (pod, signal) => servicesOf(context, services, pod, signal),
    }),
    keyring: pullSecretKeyring({ objects, events, log }),
    serviceAccounts: {
      get: async (namespace, name, signal) => {
        const { metadata } = await client.get(resources.serviceAccounts, { namespace, name }, { signal });
        return { uid: metadata?.uid ?? "", annotations: metadata?.annotations ?? {} };
      },
      token: (wanted, signal) => tokens.token(wanted, signal),
    },
    volumePlugins: [secretPlugin(objects, memory), configMapPlugin(objects)],
    projections: apiProjections({
      objects,
      tokens,
      trust: gates?.enabled("ClusterTrustBundleProjection")
        ? (projection, pod) => trust.anchors(projection, pod)
        : undefined,
      certificates: gates?.enabled("PodCertificateRequest")
        ? (pod, volume, source) => certificates.bundle(pod, volume, source)
        : undefined,
    }),
    start(started, cluster): void {
      agent = started;
      node = cluster.node;
      scope.spawn("services", (signal) => services.run(signal));
      scope.spawn("service account tokens", (signal) => tokens.run(signal));
    },
  };
}

/** How long objects count as fresh by the node's annotation, in milliseconds; undefined when it says nothing. */
function objectTtlMs(node: Node | undefined): number | undefined {
  const text = node?.metadata?.annotations?.["node.alpha.kubernetes.io/ttl"] ?? "";
  return /^\d{1,9}$/.test(text) ? Number(text) * 1000 : undefined;
}

/** Variables of services; a static pod does not wait for the API server (runtime-contract.md section 12). */
async function servicesOf(
  { clock }: ClusterContext,
  services: Informer<Service>,
  pod: BoundPod,
  signal: AbortSignal,
): Promise<ReadonlyMap<string, string>> {
  const late = "services have not yet been read at least once, cannot construct envvars";
  if (!isStatic(pod)) await awaitFirstList(services, { clock, ms: servicesWaitMs, signal, late });
  return serviceEnv(pod, services.all());
}

/** An object without what only its owners look at: `kubectl apply` alone doubles a ConfigMap by an annotation. */
function whatPodsNeed<T extends KubeObject>(object: T): T {
  return { ...object, metadata: identityOf(object) };
}

function identityOf({ metadata }: KubeObject): ObjectMeta {
  const { name, namespace, uid, resourceVersion } = metadata ?? {};
  const kept = { name, namespace, uid, resourceVersion };
  return Object.fromEntries(Object.entries(kept).filter(([, value]) => value !== undefined));
}

/** A cluster can have thousands of services: only what variables are made of is kept. */
function whatEnvNeeds(service: Service): Service {
  const { spec } = service;
  return {
    metadata: identityOf(service),
    spec: {
      ...(spec?.clusterIP === undefined ? {} : { clusterIP: spec.clusterIP }),
      ports: (spec?.ports ?? []).map(({ name, protocol, port }) => ({
        ...(name === undefined ? {} : { name }),
        ...(protocol === undefined ? {} : { protocol }),
        port,
      })),
    },
  };
}
