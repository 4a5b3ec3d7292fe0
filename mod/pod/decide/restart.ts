import type { BoundPod, Container, ContainerRestartRule } from "../../kube/types.ts";
import { newest, type ObservedContainer, type ObservedPod } from "../observed.ts";

/** The first rule of the container's `restartPolicyRules` that matches the exit code. */
export function matchingRule(container: Container, exitCode: number): ContainerRestartRule | undefined {
  return container.restartPolicyRules?.find(({ exitCodes }) => {
    const listed = exitCodes?.values?.includes(exitCode) ?? false;
    if (exitCodes?.operator === "In") return listed;
    if (exitCodes?.operator === "NotIn") return !listed;
    return false;
  });
}

function byPolicy(policy: string, exitCode: number): boolean {
  if (policy === "Never") return false;
  return policy === "OnFailure" ? exitCode !== 0 : true;
}

/**
 * Whether a container that exited with this code is started again (runtime-contract.md section 9, rules 3 to 5). The
 * rules count only where the container has a policy of its own.
 */
export function restartsAfterExit(pod: BoundPod, container: Container, exitCode: number): boolean {
  const own = container.restartPolicy;
  if (own !== undefined) {
    const action = matchingRule(container, exitCode)?.action;
    if (action === "Restart" || action === "RestartAllContainers") return true;
    if (own === "Always" || own === "OnFailure" || own === "Never") return byPolicy(own, exitCode);
  }
  return byPolicy(pod.spec.restartPolicy ?? "Always", exitCode);
}

/**
 * Whether the container should be started, `latest` being its newest instance (section 9, all rules). False while it
 * runs; an instance whose state is unknown counts as not running, so it must be killed first.
 */
export function shouldStart(pod: BoundPod, container: Container, latest: ObservedContainer | undefined): boolean {
  if (pod.metadata.deletionTimestamp !== undefined) return false;
  switch (latest?.state) {
    case undefined:
    case "unknown":
    case "created":
      return true;
    case "running":
      return false;
    case "exited":
      return restartsAfterExit(pod, container, latest.exitCode);
  }
}

/**
 * Whether a container that is killed while it runs (a failed probe, an unknown state) is started again. There is no
 * exit code, so the rules are not looked at.
 */
export function restartsAfterKill(pod: BoundPod, container: Container): boolean {
  return (container.restartPolicy ?? pod.spec.restartPolicy) !== "Never";
}

/** True when this instance exited with a code whose rule is to restart every container of the pod. */
export function triggersRestartAll(container: Container, instance: ObservedContainer): boolean {
  return instance.state === "exited" &&
    matchingRule(container, instance.exitCode)?.action === "RestartAllContainers";
}

/** The container that asks for every container of the pod to be restarted, or undefined. */
export function restartAllSource(pod: BoundPod, observed: ObservedPod): Container | undefined {
  if (pod.metadata.deletionTimestamp !== undefined) return undefined;
  return [...pod.spec.initContainers ?? [], ...pod.spec.containers].find((container) => {
    const latest = newest(observed, container.name);
    return latest !== undefined && triggersRestartAll(container, latest);
  });
}

/** True when some rule of the pod could restart every container. */
export function canRestartAll(pod: BoundPod): boolean {
  return [...pod.spec.initContainers ?? [], ...pod.spec.containers]
    .some((c) => c.restartPolicyRules?.some((rule) => rule.action === "RestartAllContainers") ?? false);
}
