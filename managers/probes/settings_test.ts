import assert from "@assert";
import type { Probe } from "../../mod/kube/types.ts";
import { probeSettings } from "./settings.ts";

Deno.test("settings: defaults, and values that are no settings", () => {
  const defaults = { initialDelayMs: 0, timeoutMs: 1000, periodMs: 10_000, successThreshold: 1, failureThreshold: 3 };
  const cases: [Probe, Partial<typeof defaults>][] = [
    [{}, {}],
    [{ initialDelaySeconds: 0, timeoutSeconds: 0, periodSeconds: 0, failureThreshold: 0 }, {}],
    [{ periodSeconds: -5, timeoutSeconds: NaN, failureThreshold: Infinity, initialDelaySeconds: -1 }, {}],
    [{ periodSeconds: 3, timeoutSeconds: 2, initialDelaySeconds: 7 }, {
      periodMs: 3000,
      timeoutMs: 2000,
      initialDelayMs: 7000,
    }],
    [{ successThreshold: 2, failureThreshold: 5 }, { successThreshold: 2, failureThreshold: 5 }],
  ];
  for (const [probe, want] of cases) assert.deepEqual(probeSettings(probe), { ...defaults, ...want });
});
