import type { Clock } from "../../../base/clock.ts";
import { type Random, randomHex } from "../../../base/random.ts";
import type { ObjectMeta, Pod } from "../../types.ts";
import { apiVersionOf, resources } from "../resources.ts";
import { ApiError, type KubeObject, type ObjectName, type PatchType, type ResourceType } from "../types.ts";
import { failures } from "./failures.ts";
import { isObject, type JsonObject, sameJson } from "./json.ts";
import { kindRules } from "./kinds.ts";
import { jsonPatch, mergePatch } from "./patch.ts";
import { nameOf, ObjectStore } from "./store.ts";
import { MergeKeyError, PatchError, strategicMerge } from "./strategic_merge.ts";

/** Which object is to be deleted, and how. */
export interface Deletion {
  readonly gracePeriodSeconds?: number;
  readonly uid?: string;
  readonly resourceVersion?: string;
}

/** What an API server does with requests, without the wire, users and faults: names, versions, rules of the kinds. */
export class ObjectServer {
  readonly store = new ObjectStore();
  readonly #clock: Clock;
  readonly #random: Random;

  constructor(options: { clock: Clock; random: Random }) {
    this.#clock = options.clock;
    this.#random = options.random;
  }

  /** A UID as a server makes them. */
  newUid(): string {
    const hex = randomHex(this.#random, 16);
    return [hex.slice(0, 8), hex.slice(8, 12), `4${hex.slice(13, 16)}`, `8${hex.slice(17, 20)}`, hex.slice(20)].join(
      "-",
    );
  }

  #time(ms = this.#clock.now()): string {
    return new Date(ms).toISOString().replace(/\.\d+Z$/, "Z");
  }

  get(resource: ResourceType, name: ObjectName): KubeObject {
    const found = this.store.get(resource, name);
    if (!found) throw failures.notFound(resource, name.name);
    return found;
  }

  create(resource: ResourceType, given: KubeObject): KubeObject {
    const { generateName, ...rest } = given.metadata ?? {};
    const name = rest.name ?? (generateName === undefined ? undefined : `${generateName}${randomHex(this.#random, 3)}`);
    if (name === undefined || name === "") {
      throw failures.invalid(resource, "", "metadata.name: Required value: name or generateName is required");
    }
    if (resource.namespaced && !rest.namespace) {
      throw failures.badRequest("an empty namespace may not be set during creation");
    }
    const metadata: ObjectMeta = {
      ...rest,
      name,
      ...(generateName === undefined ? {} : { generateName }),
      uid: this.newUid(),
      creationTimestamp: this.#time(),
    };
    delete metadata.resourceVersion;
    delete metadata.deletionTimestamp;
    delete metadata.deletionGracePeriodSeconds;
    const rules = kindRules(resource);
    const object = rules.created({ ...named(resource, given), metadata });
    if (rules.generation) object.metadata = { ...object.metadata, generation: 1 };
    if (this.store.get(resource, nameOf(object))) throw failures.alreadyExists(resource, nameOf(object).name);
    return this.store.put(resource, object);
  }

  /** Replaces the object, or what belongs to its subresource. A request that changes nothing makes no version. */
  replace(resource: ResourceType, given: KubeObject, subresource?: string): KubeObject {
    const name = nameOf(given);
    const before = this.get(resource, name);
    const { uid, resourceVersion } = given.metadata ?? {};
    if (uid) this.#preconditions(resource, before, { uid });
    if (!resourceVersion && kindRules(resource).versionNeeded) {
      throw failures.invalid(
        resource,
        name.name,
        "metadata.resourceVersion: Invalid value: 0: must be specified for an update",
      );
    }
    if (resourceVersion) this.#preconditions(resource, before, { resourceVersion });
    return this.#store(resource, before, given, subresource);
  }

  patch(
    resource: ResourceType,
    name: ObjectName,
    patch: unknown,
    how: { readonly type: PatchType; readonly subresource?: string },
  ): KubeObject {
    const before = this.get(resource, name);
    let after: KubeObject;
    try {
      after = apply(resource, before, patch, how.type);
    } catch (thrown) {
      if (thrown instanceof MergeKeyError) throw failures.internal(thrown.message);
      if (thrown instanceof PatchError) throw failures.badRequest(thrown.message);
      throw thrown;
    }
    const stated = isObject(patch) && isObject(patch.metadata) ? patch.metadata : {};
    if (typeof stated.uid === "string" && stated.uid !== before.metadata?.uid) {
      // Not a conflict, as it is for a replacement: the patch is taken for one that changes the UID.
      const why = `metadata.uid: Invalid value: "${stated.uid}": field is immutable`;
      throw failures.invalid(resource, name.name, why);
    }
    this.#preconditions(resource, before, {
      ...(typeof stated.resourceVersion === "string" ? { resourceVersion: stated.resourceVersion } : {}),
    });
    if (after.metadata?.name !== before.metadata?.name) {
      throw failures.badRequest("the name of the object does not match the name on the URL");
    }
    return this.#store(resource, before, after, how.subresource);
  }

  #preconditions(resource: ResourceType, before: KubeObject, asked: Deletion): void {
    const { name = "", uid, resourceVersion } = before.metadata ?? {};
    if (asked.uid !== undefined && asked.uid !== uid) {
      throw failures.conflict(
        resource,
        name,
        `Precondition failed: UID in precondition: ${asked.uid}, UID in object meta: ${uid}`,
      );
    }
    if (asked.resourceVersion !== undefined && asked.resourceVersion !== resourceVersion) {
      throw failures.conflict(
        resource,
        name,
        "the object has been modified; please apply your changes to the latest version and try again",
      );
    }
  }

  #store(resource: ResourceType, before: KubeObject, given: KubeObject, subresource: string | undefined): KubeObject {
    const rules = kindRules(resource);
    const after = rules.updated(before, named(resource, given), subresource);
    const kept = before.metadata ?? {};
    const metadata: ObjectMeta = { ...after.metadata };
    // These are the server's own, whatever a request says.
    const own = ["uid", "resourceVersion", "creationTimestamp", "generation", "deletionTimestamp"] as const;
    for (const key of [...own, "deletionGracePeriodSeconds"] as const) {
      if (kept[key] === undefined) delete metadata[key];
      else Object.assign(metadata, { [key]: kept[key] });
    }
    if (metadata.deletionTimestamp !== undefined && metadata.finalizers !== undefined) {
      const added = metadata.finalizers.find((one) => !kept.finalizers?.includes(one));
      if (added !== undefined) {
        throw failures.forbidden(
          resource,
          nameOf(before),
          "admin",
          `may not add the finalizer ${added} to what is deleted`,
        );
      }
    }
    const object = { ...after, metadata };
    if (sameJson(object, before)) return before;
    if (rules.generation && !sameJson(spec(object), spec(before))) metadata.generation = (kept.generation ?? 0) + 1;
    if (
      metadata.deletionTimestamp !== undefined && !metadata.finalizers?.length && !metadata.deletionGracePeriodSeconds
    ) {
      // The last finalizer of an object that is to go has gone.
      this.store.remove(resource, nameOf(object));
      return object;
    }
    return this.store.put(resource, object);
  }

  /** Deletes at once, or marks the object where its kind ends in its own time or finalizers hold it. */
  delete(resource: ResourceType, name: ObjectName, how: Deletion): void {
    const before = this.get(resource, name);
    this.#preconditions(resource, before, how);
    const rules = kindRules(resource);
    const asked = rules.grace(before, how.gracePeriodSeconds);
    const { finalizers = [], deletionTimestamp, deletionGracePeriodSeconds: left, generation } = before.metadata ?? {};
    const atOnce = asked === 0 && finalizers.length === 0;
    // A second delete may only hasten the first one.
    const hastens = deletionTimestamp === undefined || left === undefined || asked < left;
    if (hastens && !(atOnce && !rules.graceful)) {
      const began = deletionTimestamp === undefined
        ? this.#clock.now()
        : Date.parse(deletionTimestamp) - (left ?? 0) * 1000;
      const counted = generation !== undefined && deletionTimestamp === undefined;
      this.store.put(resource, {
        ...before,
        metadata: {
          ...before.metadata,
          deletionTimestamp: this.#time(began + asked * 1000),
          deletionGracePeriodSeconds: asked,
          ...(counted ? { generation: generation + 1 } : {}),
        },
      });
    }
    if (atOnce) this.store.remove(resource, name);
  }

  /** Binds a pod to a node, as the scheduler does. Throws Conflict when it has one. */
  bind(name: ObjectName, node: string): void {
    const pod: Pod = this.get(resources.pods, name);
    const { nodeName, containers = [] } = pod.spec ?? {};
    if (nodeName) {
      throw failures.conflict(
        resources.pods,
        name.name,
        `pod ${name.name} is already assigned to node "${nodeName}"`,
      );
    }
    const conditions = [{ type: "PodScheduled", status: "True", lastTransitionTime: this.#time() }];
    this.store.put(resources.pods, {
      ...pod,
      spec: { ...pod.spec, containers, nodeName: node },
      status: { ...pod.status, conditions },
    } as Pod);
  }
}

function apply(resource: ResourceType, before: KubeObject, patch: unknown, type: PatchType): KubeObject {
  if (type === "json") return jsonPatch(before as JsonObject, patch);
  if (!isObject(patch)) throw new PatchError("a patch is an object");
  switch (type) {
    case "merge":
      return mergePatch(before, patch) as KubeObject;
    case "strategic-merge":
      return strategicMerge(resource.kind, before as JsonObject, patch);
    case "apply":
      throw new ApiError("server-side apply is not part of the fake", { status: 415, reason: "UnsupportedMediaType" });
  }
}

function named(resource: ResourceType, object: KubeObject): KubeObject {
  return { ...object, apiVersion: apiVersionOf(resource), kind: resource.kind };
}

function spec(object: KubeObject): unknown {
  return (object as { spec?: unknown }).spec;
}
