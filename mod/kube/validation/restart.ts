import type { Container } from "../types.ts";
import type { Problems } from "./problem.ts";

/** Checks a container's own restart policy and rules (gates ContainerRestartRules, RestartAllContainersOnContainerExits). */
export function checkRestartRules(p: Problems, path: string, container: Container): void {
  const { restartPolicy, restartPolicyRules: rules = [] } = container;
  const policies = ["Always", "OnFailure", "Never"];
  if (restartPolicy !== undefined) p.oneOf(`${path}.restartPolicy`, restartPolicy, policies);
  else if (rules.length > 0) p.required(`${path}.restartPolicy`, "rules need one; use Always, OnFailure or Never");
  if (rules.length > 20) p.add(`${path}.restartPolicyRules`, rules.length, "are too many rules", "use at most 20");
  rules.forEach((rule, i) => {
    const at = `${path}.restartPolicyRules[${i}]`;
    p.oneOf(`${at}.action`, rule.action, ["Restart", "RestartAllContainers"]);
    if (!rule.exitCodes) {
      p.required(`${at}.exitCodes`, "say for which exit codes the rule is");
      return;
    }
    p.oneOf(`${at}.exitCodes.operator`, rule.exitCodes.operator, ["In", "NotIn"]);
    const count = rule.exitCodes.values?.length ?? 0;
    if (count > 255) p.add(`${at}.exitCodes.values`, count, "are too many exit codes", "use at most 255");
  });
}

/** Checks which resources a container may be resized in, and whether that restarts it. */
export function checkResizePolicy(p: Problems, path: string, container: Container, podRestartPolicy: string): void {
  const seen = new Set<string>();
  container.resizePolicy?.forEach(({ resourceName, restartPolicy }, i) => {
    const at = `${path}[${i}]`;
    if (seen.has(resourceName)) p.add(`${at}.resourceName`, resourceName, "is given twice", "remove one");
    seen.add(resourceName);
    p.oneOf(`${at}.resourceName`, resourceName, ["cpu", "memory"]);
    p.oneOf(`${at}.restartPolicy`, restartPolicy, ["NotRequired", "RestartContainer"]);
    if (podRestartPolicy === "Never" && restartPolicy === "RestartContainer") {
      p.add(`${at}.restartPolicy`, restartPolicy, "can't be in a pod that never restarts", "use NotRequired");
    }
  });
}
