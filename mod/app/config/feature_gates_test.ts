import assert from "@assert";
import { gateDependencies } from "./feature_gates_dependencies.ts";
import { resolveGates } from "./feature_gates.ts";
import { knownGates } from "./feature_gates_table.ts";

Deno.test("the defaults have no problem", () => {
  const { problems, warnings, gates } = resolveGates({});
  assert.deepEqual(problems, []);
  assert.deepEqual(warnings, []);
  assert.equal(gates.enabled("SidecarContainers"), true);
  assert.equal(gates.enabled("EventedPLEG"), false);
  assert.throws(() => gates.enabled("Nonsense"), /not known/);
});

// features.md section 10.
const facts: [name: string, on: boolean, stage: string, locked: boolean][] = [
  ["DynamicResourceAllocation", true, "GA", true],
  ["NodeSwap", true, "GA", true],
  ["ContainerCheckpoint", true, "BETA", false],
  ["ComponentFlagz", true, "BETA", false],
  ["SELinuxMount", false, "BETA", false],
  ["MemoryQoS", false, "ALPHA", false],
  ["DisableNodeKubeProxyVersion", true, "DEPRECATED", true],
  ["GitRepoVolumeDriver", false, "DEPRECATED", true],
  ["AllowDNSOnlyNodeCSR", false, "DEPRECATED", false],
  ["LoggingAlphaOptions", false, "ALPHA", false],
  ["WatchListClient", true, "BETA", false],
];
for (const [name, on, stage, locked] of facts) {
  Deno.test(`gate ${name}`, () => {
    assert.deepEqual(knownGates[name], { stage, on, ...(locked ? { locked } : {}) });
  });
}

Deno.test("what a gate needs is a known gate", () => {
  for (const [name, needs] of Object.entries(gateDependencies)) {
    for (const gate of [name, ...needs]) assert(Object.hasOwn(knownGates, gate), gate);
  }
});

const bad: [settings: Record<string, boolean>, problem: RegExp][] = [
  [{ MemoryQos: true }, /unknown gate "MemoryQos"; did you mean MemoryQoS/],
  [{ constructor: true }, /unknown gate "constructor"/],
  [JSON.parse('{"__proto__": true}'), /unknown gate "__proto__"/],
  [{ NodeSwap: false }, /NodeSwap=false is not possible, the gate is locked to true/],
  [{ GitRepoVolumeDriver: true }, /locked to false/],
  [{ GracefulNodeShutdown: false }, /GracefulNodeShutdownBasedOnPodPriority is on but needs GracefulNodeShutdown/],
  [{ ResourceHealthStatus: false }, /ResourceHealthStatusMessage is on but needs ResourceHealthStatus/],
];
for (const [settings, problem] of bad) {
  Deno.test(`gates ${JSON.stringify(settings)}`, () => {
    assert.match(resolveGates(settings).problems.join("\n"), problem);
  });
}

Deno.test("AllAlpha and AllBeta set what is not set by name", () => {
  const alpha = resolveGates({ AllAlpha: true, MemoryQoS: false }).gates;
  assert.equal(alpha.enabled("EventedPLEG"), true);
  assert.equal(alpha.enabled("MemoryQoS"), false);
  const beta = resolveGates({ AllBeta: false, GracefulNodeShutdown: true });
  assert.equal(beta.gates.enabled("ContainerCheckpoint"), false);
  assert.equal(beta.gates.enabled("GracefulNodeShutdown"), true);
  assert.deepEqual(beta.problems, []);
  assert.deepEqual(resolveGates({ AllAlpha: true, AllBeta: true }).problems, []);
});

Deno.test("GA and deprecated gates are warned of", () => {
  assert.match(resolveGates({ NodeSwap: true }).warnings.join(), /NodeSwap is GA/);
  assert.match(resolveGates({ AllowDNSOnlyNodeCSR: true }).warnings.join(), /deprecated/);
});
