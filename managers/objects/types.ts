import type { BoundPod, ConfigMap, Secret } from "../../mod/kube/types.ts";

/** How changes of ConfigMaps and Secrets are noticed (configMapAndSecretChangeDetectionStrategy). */
export type ChangeStrategy = "Watch" | "Cache" | "Get";

/**
 * Reads the objects that pods of this node refer to. Rejects with ApiError when the API server says that there is none
 * (`isApiNotFound`) or that it may not be read, with code Network or Timeout when nobody can say, with Aborted.
 */
export interface ObjectReader {
  secret(namespace: string, name: string, signal: AbortSignal): Promise<Secret>;
  configMap(namespace: string, name: string, signal: AbortSignal): Promise<ConfigMap>;
}

/** Keeps the ConfigMaps and Secrets of this node's pods (features.md H30). */
export interface PodObjects extends ObjectReader {
  /** The pod may now read what it refers to. Called again it takes over a changed definition. */
  register(pod: BoundPod): void;
  /** Nothing is kept for the pod any more. */
  unregister(podUid: string): void;
}

/** Objects of one kind, kept for those who refer to them. */
export interface ObjectStore<T> {
  /** @param live true when a change must be told at once, as for a volume's contents */
  reference(namespace: string, name: string, podUid: string, live: boolean): void;
  release(namespace: string, name: string, podUid: string): void;
  get(namespace: string, name: string, signal: AbortSignal): Promise<T>;
}
