import type { Pod } from "../../mod/kube/types.ts";
import { lifeScenarios } from "./scenarios_life.ts";
import { viewScenarios } from "./scenarios_view.ts";
import { faultScenarios } from "./scenarios_fault.ts";
import type { Scenario } from "./scenario.ts";

/** Every pod that parity compares, on the node of this name. */
export function scenarios(nodeName: string): Scenario[] {
  const bound = (pod: Pod): Pod => ({ ...pod, spec: { containers: [], nodeName, ...pod.spec } });
  return [...lifeScenarios, ...viewScenarios, ...faultScenarios].map((one) =>
    one.static ? one : { ...one, pod: bound(one.pod) }
  );
}

/** Objects that the pods use: the same ones for both kubelets. */
export const objects: readonly (readonly [path: string, object: object])[] = [
  ["/api/v1/namespaces/default/configmaps", {
    metadata: { name: "parity" },
    data: { "app.conf": "level=3\n", word: "config", "1-begins-with-digit": "x" },
    binaryData: { bytes: "AAEC" },
  }],
  ["/api/v1/namespaces/default/secrets", {
    metadata: { name: "parity" },
    stringData: { user: "one", password: "two" },
  }],
  ["/api/v1/namespaces/default/services", {
    metadata: { name: "parity-db" },
    spec: { clusterIP: "10.96.77.7", ports: [{ name: "sql", port: 5432 }], selector: { app: "none" } },
  }],
];
