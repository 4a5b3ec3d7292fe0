import assert from "@assert";
import type { StatusEntry } from "../../../managers/status/status_manager.ts";
import type { PodSource } from "../../sources/source.ts";
import { composeCluster } from "./cluster.ts";
import type { ClusterContext } from "./types.ts";

const context = {} as ClusterContext;
const agent = {} as Parameters<ReturnType<typeof composeCluster>["start"]>[0];
const source = (): PodSource => ({ name: "api", run: () => Promise.resolve(), problems: new Map() });

Deno.test("parts are put together: lists joined, every part told, started in order", () => {
  const told: string[] = [];
  const one = source();
  const cluster = composeCluster(context, [
    () => ({ sources: [one], onStatus: () => told.push("a"), start: () => told.push("start a") }),
    () => ({ nodeTroubles: () => ["x"] }),
    () => ({ nodeTroubles: () => ["y"] }),
    () => ({ hostIPs: () => ["10.0.0.1"], onStatus: () => told.push("b"), start: () => told.push("start b") }),
  ]);
  cluster.onStatus?.({} as StatusEntry);
  cluster.start(agent);
  assert.deepEqual(told, ["a", "b", "start a", "start b"]);
  assert.deepEqual(cluster.sources, [one]);
  assert.deepEqual(cluster.hostIPs?.(), ["10.0.0.1"]);
  assert.deepEqual(cluster.nodeTroubles?.(), ["x", "y"]);
  assert.equal(cluster.node, undefined);
  assert(!("environment" in cluster));
});

Deno.test("two parts that give what there can be only one of are a fault", () => {
  const part = () => ({ hostIPs: () => [] });
  assert.throws(() => composeCluster(context, [part, part]), /two parts .* hostIPs/);
});
