import assert from "@assert";
import { withDefaults } from "../defaults/pod.ts";
import type { BoundPod, Container, PodSpec } from "../types.ts";
import { validatePod } from "./pod.ts";
import { formatProblems } from "./problem.ts";

/** A container that is fine, with changes; for tests. */
export function container(extra: Partial<Container> = {}): Container {
  return { name: "c", image: "busybox:1", ...extra };
}

/** A pod that is fine, with changes and its defaults; for tests. */
export function pod(spec: Partial<PodSpec> = {}, metadata: Partial<BoundPod["metadata"]> = {}): BoundPod {
  const bare = { metadata: { name: "web", namespace: "default", uid: "1", ...metadata } };
  const filled = withDefaults({ spec: { containers: [container()], ...spec } });
  return { ...bare, spec: filled.spec ?? { containers: [] } };
}

/** One row: what is changed, and the paths of all problems that it makes; for tests. */
export type Row = readonly [Partial<PodSpec>, ...string[]];

/** Checks that each pod has the problems that its row tells, no more and no less; for tests. */
export function checkRows(rows: readonly Row[]): void {
  for (const [spec, ...paths] of rows) {
    const problems = validatePod(pod(spec));
    const shown = `${JSON.stringify(spec).slice(0, 300)}: ${formatProblems(problems)}`;
    assert.deepEqual(problems.map(({ path }) => path).sort(), [...paths].sort(), shown);
    assert.ok(problems.every(({ problem, remedy }) => problem !== "" && remedy !== ""), shown);
  }
}

/** As checkRows, for changes of the pod's one container; paths are below that container. */
export function checkContainerRows(
  rows: readonly (readonly [Partial<Container>, ...string[]])[],
  rest: Partial<PodSpec> = {},
): void {
  checkRows(rows.map(([extra, ...paths]) => [
    { ...rest, containers: [container(extra)] },
    ...paths.map((path) => `spec.containers[0].${path}`),
  ]));
}
