import type { FaultKind } from "../../mod/kube/api/fake/faults.ts";
import { resources } from "../../mod/kube/api/resources.ts";
import { ApiError } from "../../mod/kube/api/types.ts";
import type { Simulation } from "./run.ts";
import type { SimCluster } from "./sim_cluster.ts";
import { strangeAnswer } from "./strange.ts";
import { simulatedFacts } from "./world.ts";

/** What goes wrong with the API server, with what is between it and the agent, and with the node as it has it. */
export const apiFaults = {
  /** Requests fail, one after another. */
  faults: (s: Simulation, { api }: SimCluster) => {
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
      status(503, "ServiceUnavailable", dice.span(1, 20_000)),
      status(429, "TooManyRequests", dice.span(1, 20_000)),
      status(429, "TooManyRequests", 1e15),
      status(401, "Unauthorized"),
      status(403, "Forbidden"),
      status(409, "Conflict"),
      status(410, "Expired"),
      status(422, "Invalid"),
    ]);
    const verb = dice.pick(["all", "get", "update", "patch", "delete", "create", "list", "watch"] as const);
    const resource = dice.pick(["all", "all", "all", "pods", "nodes", "leases", "secrets"] as const);
    const times = dice.int(1, 20);
    const code = fault.kind === "status" ? ` ${fault.error.status}` : "";
    trace.note(`step api: ${fault.kind}${code} for ${verb} of ${resource}, ${times} times`);
    api.faults.add(fault, { ...(verb === "all" ? {} : { verb }), ...(resource === "all" ? {} : { resource }) }, times);
  },

  /** The server is away, or cut off, until it comes back by a later step. */
  reach: (s: Simulation, { api }: SimCluster) => {
    api.reach = s.world.dice.pick(["up", "up", "refused", "silent"]);
    s.world.trace.note(`step api: ${api.reach}`);
  },

  /** The server goes and comes back with an empty memory of what happened. */
  restarted: (s: Simulation, { api }: SimCluster) => {
    const { dice, trace, clock } = s.world;
    const ms = dice.span(10, 120_000);
    trace.note(`step api: the server restarts, away for ${ms} ms`);
    api.reach = "refused";
    clock.after(ms, () => {
      trace.note("api: the server is back");
      api.compact();
      api.reach = "up";
    });
  },

  /** Open watches end, or break off; sometimes their versions are forgotten. */
  watches: (s: Simulation, { api }: SimCluster) => {
    const { dice, trace } = s.world;
    trace.note("step api: watches are cut");
    if (dice.chance(0.4)) api.compact();
    api.cutWatches(dice.pick(["end", "break"]));
  },

  /** Some of the next answers are nonsense. */
  strange: (s: Simulation, { api }: SimCluster) => {
    const { dice, trace } = s.world;
    const tamper = strangeAnswer(dice);
    const share = dice.pick([0.1, 0.5, 1]);
    let left = dice.int(1, 20);
    trace.note(`step api: ${share} of the answers are strange, ${left} times`);
    // Some that meets the watches: they are begun anew.
    if (dice.chance(0.5)) api.cutWatches("break");
    api.tamper = (answer, shape, resource) => {
      if (!dice.chance(share)) return undefined;
      if (left-- <= 1) api.tamper = undefined;
      const text = tamper(answer, shape, resource);
      trace.note(`  strange ${shape} of ${resource.plural}: ${text?.slice(0, 200)}`);
      return text;
    };
  },

  /** The node's token is known no more; its file gets the new one some time later, or nonsense before. */
  credentials: (s: Simulation, cluster: SimCluster) => {
    const { dice, trace, clock } = s.world;
    const ms = dice.span(1, 200_000);
    trace.note(`step api: the node's token expires, the next one comes in ${ms} ms`);
    cluster.expireToken();
    if (dice.chance(0.3)) cluster.writeToken(dice.pick(["", "\n", "not\u0000a\ntoken"]));
    clock.after(ms, () => cluster.writeToken());
  },

  /** The node's object is deleted; what it owns goes some time later, its pods sometimes, too. */
  node: (s: Simulation, cluster: SimCluster) => {
    const { dice, trace, clock } = s.world;
    trace.note("step api: the node's object is deleted");
    cluster.asUser(() => cluster.api.remove(resources.nodes, { name: simulatedFacts.name }));
    clock.after(dice.span(1, 60_000), () => cluster.collectGarbage());
    if (dice.chance(0.3)) {
      clock.after(dice.span(1, 60_000), () => {
        if (cluster.node) return;
        trace.note("api: pods of a node that is not there are deleted");
        cluster.asUser(() => {
          for (const { metadata: { name, namespace } } of cluster.pods()) {
            cluster.api.delete(resources.pods, { name, namespace }, { gracePeriodSeconds: 0 });
          }
        });
        s.manifestsChanged();
      });
    }
    if (dice.chance(0.5)) clock.after(dice.span(1, 120_000), () => cluster.registerNode());
  },

  /** The machine's clock is set. */
  clock: (s: Simulation) => s.stepClock(),
};
