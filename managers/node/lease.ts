import type { Clock } from "../../mod/base/clock.ts";
import { messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import { jitter, type Random } from "../../mod/base/random.ts";
import { apiVersionOf, resources } from "../../mod/kube/api/resources.ts";
import { type ApiClient, isApiNotFound, isConflict } from "../../mod/kube/api/types.ts";
import type { Lease } from "../../mod/kube/types.ts";

/** Where nodes' leases are. */
export const leaseNamespace = "kube-node-lease";

/** The contract's figures (runtime-contract.md section 11): share of the duration after which it is renewed, and more. */
const renewShare = 0.25;
const renewJitter = 0.04;
const mostUpdates = 5;
const firstWaitMs = 200;
const longestWaitMs = 7000;

export interface NodeLeaseOptions {
  /** The client of heartbeats. */
  readonly client: ApiClient;
  readonly nodeName: string;
  /** nodeLeaseDurationSeconds. */
  readonly durationSeconds: number;
  /** UID of the node's object; undefined while it is not there: then the lease is not made. */
  readonly nodeUid: (signal: AbortSignal) => Promise<string | undefined>;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
}

/** A time as leases have it: microseconds. */
export function microTime(ms: number): string {
  return new Date(ms).toISOString().replace("Z", "000Z");
}

/** Tells the cluster that the node lives, by a lease that it renews (features.md F3). */
export class NodeLease {
  readonly #o: NodeLeaseOptions;
  /** The lease as the API server has last answered it. */
  #latest: Lease | undefined;

  constructor(options: NodeLeaseOptions) {
    this.#o = options;
  }

  /** Renews until the signal aborts; then rejects with Aborted. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, random, durationSeconds } = this.#o;
    while (!signal.aborted) {
      await this.renew(signal);
      await clock.sleep(jitter(random, durationSeconds * 1000 * renewShare, renewJitter), signal);
    }
  }

  /** One renewal; makes the lease when it is not there. Rejects only when aborted. */
  async renew(signal: AbortSignal): Promise<void> {
    if (this.#latest && await this.#update(this.#latest, signal)) return;
    const { lease, created } = await this.#ensure(signal);
    this.#latest = lease;
    if (lease && !created && !await this.#update(lease, signal)) this.#latest = undefined;
  }

  /** Writes the lease with a new time; false when that failed as often as it may. */
  async #update(base: Lease, signal: AbortSignal): Promise<boolean> {
    const { client, log } = this.#o;
    let failure = "";
    for (let tries = 0; tries < mostUpdates; tries++) {
      try {
        this.#latest = await client.replace(resources.leases, await this.#renewed(base, signal), { signal });
        return true;
      } catch (thrown) {
        if (signal.aborted) throw thrown;
        failure = messageOf(thrown);
        if (isApiNotFound(thrown)) break;
        if (isConflict(thrown)) {
          const { lease } = await this.#ensure(signal);
          if (!lease) return false;
          base = lease;
          continue;
        }
      }
    }
    log.warn("the node's lease could not be renewed; it is tried again", { error: failure });
    return false;
  }

  /** The lease as it is, or made anew; none while the node's object is not there. Waits while the server is away. */
  async #ensure(signal: AbortSignal): Promise<{ lease: Lease | undefined; created: boolean }> {
    const { client, clock, log, nodeName } = this.#o;
    for (let wait = firstWaitMs, said = false;; wait = Math.min(wait * 2, longestWaitMs)) {
      try {
        try {
          const name = { namespace: leaseNamespace, name: nodeName };
          return { lease: await client.get(resources.leases, name, { signal }), created: false };
        } catch (thrown) {
          if (!isApiNotFound(thrown)) throw thrown;
        }
        const fresh = await this.#renewed(undefined, signal);
        if (!fresh.metadata?.ownerReferences) return { lease: undefined, created: false };
        return { lease: await client.create(resources.leases, fresh, { signal }), created: true };
      } catch (thrown) {
        if (signal.aborted) throw thrown;
        const line = { error: messageOf(thrown) };
        if (said) log.detail(2, "the node's lease still cannot be made sure of", line);
        else log.error("the node's lease cannot be made sure of; it is tried again", line);
        said = true;
        await clock.sleep(wait, signal);
      }
    }
  }

  /** A lease as it is to be written now. One without an owner gets the node as soon as that is there. */
  async #renewed(base: Lease | undefined, signal: AbortSignal): Promise<Lease> {
    const { nodeName, durationSeconds, clock } = this.#o;
    const owned = (base?.metadata?.ownerReferences ?? []).length > 0;
    const uid = owned ? undefined : await this.#o.nodeUid(signal);
    return {
      ...base,
      apiVersion: apiVersionOf(resources.leases),
      kind: resources.leases.kind,
      metadata: {
        ...(base?.metadata ?? { name: nodeName, namespace: leaseNamespace }),
        ...(uid === undefined ? {} : { ownerReferences: [{ apiVersion: "v1", kind: "Node", name: nodeName, uid }] }),
      },
      spec: {
        ...(base?.spec ?? { holderIdentity: nodeName }),
        leaseDurationSeconds: durationSeconds,
        renewTime: microTime(clock.now()),
      },
    };
  }
}
