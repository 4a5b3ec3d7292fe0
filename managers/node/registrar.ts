import type { Clock } from "../../mod/base/clock.ts";
import { messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import { type ApiClient, ApiError, isAlreadyExists } from "../../mod/kube/api/types.ts";
import type { EventSink } from "../../mod/kube/events.ts";
import type { Node } from "../../mod/kube/types.ts";
import { nodePatch } from "./patch.ts";
import { initialNode, reconciled } from "./registration.ts";
import type { NodeProfile, NodeSituation } from "./types.ts";

/** Waits between two tries: the first, and the longest, in milliseconds (runtime-contract.md section 9). */
const firstWaitMs = 100;
const longestWaitMs = 7000;

export interface RegistrarOptions {
  readonly client: ApiClient;
  readonly profile: NodeProfile;
  readonly situation: (signal: AbortSignal) => Promise<NodeSituation>;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: Pick<EventSink, "node">;
  /** Told of each try, and when the object was created; one that was there is not told. */
  readonly meter?: { attempted(): void; created(): void };
}

/**
 * Registers the node: creates its object, or brings an existing one into line (features.md F1). Tries until it has
 * succeeded; rejects only with Aborted. Resolves with the object as the API server has it.
 */
export async function registerNode(options: RegistrarOptions, signal: AbortSignal): Promise<Node> {
  const { clock, log, profile, events } = options;
  let complaint = "";
  for (let wait = firstWaitMs, first = true;; wait = Math.min(wait * 2, longestWaitMs), first = false) {
    try {
      const initial = initialNode(profile, await options.situation(signal), clock.now());
      // Each try would tell them anew.
      if (first) { for (const event of initial.events) events.node(event); }
      options.meter?.attempted();
      const node = await tryRegister(options, initial.node, signal);
      log.info("the node is registered", { node: profile.name });
      return node;
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      const error = messageOf(thrown);
      const line = { node: profile.name, error };
      if (error === complaint) log.detail(2, "the node is still not registered", line);
      else log.error("the node cannot be registered yet; it is tried again", line);
      complaint = error;
      await clock.sleep(wait, signal);
    }
  }
}

async function tryRegister({ client, profile, log, meter }: RegistrarOptions, initial: Node, signal: AbortSignal) {
  try {
    const node = await client.create(resources.nodes, initial, { signal });
    meter?.created();
    return node;
  } catch (thrown) {
    // Who may not create nodes may still find his own.
    if (!isAlreadyExists(thrown) && !(thrown instanceof ApiError && thrown.status === 403)) throw thrown;
    let existing: Node;
    try {
      existing = await client.get(resources.nodes, { name: profile.name }, { signal });
    } catch (second) {
      // That it must not be created is the cause; that it is not there is not.
      throw isAlreadyExists(thrown) || signal.aborted ? second : thrown;
    }
    log.info("the node was registered before", { node: profile.name, uid: existing.metadata?.uid });
    const patch = nodePatch(existing, reconciled(existing, initial, profile));
    if (!patch) return existing;
    return await client.patch(resources.nodes, { name: profile.name }, patch, {
      signal,
      type: "strategic-merge",
      subresource: "status",
    });
  }
}
