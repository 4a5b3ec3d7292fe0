import assert from "@assert";
import { objectRemedy } from "./objects.ts";

Deno.test("remedies for Secrets, ConfigMaps, tokens and services that a pod needs", () => {
  const cases: [string, RegExp | undefined][] = [
    ['secret "s" not found', /^Make the Secret s in the pod's namespace/],
    ['[configmap "m" not found, secret "s" not found]', /^Make the ConfigMap m /],
    ["couldn't find key k in Secret ns/s", /^Add the key k to the Secret ns\/s/],
    ["references non-existent secret key: k", /^Add the key to the object/],
    ["configmap references non-existent config key: k", /^Add the key to the object/],
    ['failed to fetch token: serviceaccounts "x" not found', /^Check that the pod's service account is there/],
    ["failed to sync secret cache: timed out waiting for the condition", /^Check that the node reaches the API server/],
    ["services have not yet been read at least once, cannot construct envvars", /^Check that the node reaches/],
    ["hostPath type check failed: /srv is not a directory", undefined],
  ];
  for (const [message, expected] of cases) {
    const remedy = objectRemedy(message);
    if (expected) assert.match(remedy ?? "", expected, message);
    else assert.equal(remedy, undefined, message);
  }
});
