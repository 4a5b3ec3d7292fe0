import type { Container, PodSpec } from "../types.ts";
import { checkEnv, checkEnvFrom } from "./env.ts";
import { checkMounts } from "./mounts.ts";
import { checkLabel } from "./names.ts";
import { checkHostNetworkPorts, checkHostPorts, checkPorts } from "./ports.ts";
import { checkProbesAndHooks, refuseProbesAndHooks } from "./probes.ts";
import type { Problems } from "./problem.ts";
import { checkClaims, checkResources } from "./resources.ts";
import { checkResizePolicy, checkRestartRules } from "./restart.ts";
import { checkSecurityContext } from "./security.ts";
import { pullPolicies } from "./volumes.ts";

/** Checks regular and init containers, each by the rules of its kind, and all of them against one another. */
export function checkContainers(p: Problems, spec: PodSpec): void {
  const init = spec.initContainers ?? [];
  if (spec.containers.length === 0) p.required("spec.containers", "give the pod at least one container");
  const names = new Set<string>();
  const checkName = (path: string, name: string) => {
    checkLabel(p, path, name);
    if (name && names.has(name)) p.add(path, name, "is used twice in the pod", "give each container its own name");
    names.add(name);
  };
  spec.containers.forEach((container, i) => {
    const at = `spec.containers[${i}]`;
    checkName(`${at}.name`, container.name);
    checkContainer(p, at, container, spec);
    checkProbesAndHooks(p, at, container, spec);
  });
  checkHostPorts(p, "spec.containers", spec.containers.map((own, at) => ({ at, spec: own })));
  if (spec.hostNetwork) checkHostNetworkPorts(p, "spec.containers", spec.containers);
  init.forEach((container, i) => {
    const at = `spec.initContainers[${i}]`;
    checkName(`${at}.name`, container.name);
    checkContainer(p, at, container, spec);
    // Init containers run one by one, so only a container's own ports can collide.
    checkHostPorts(p, "spec.initContainers", [{ at: i, spec: container }]);
    if (container.restartPolicy === "Always") {
      checkProbesAndHooks(p, at, container, spec);
      return;
    }
    refuseProbesAndHooks(p, at, container, "for an init container without restartPolicy Always");
    container.resizePolicy?.forEach(({ restartPolicy }, r) => {
      if (restartPolicy !== "RestartContainer") return;
      p.add(`${at}.resizePolicy[${r}].restartPolicy`, restartPolicy, "is not for init containers", "use NotRequired");
    });
  });
  // Ephemeral containers come through their own subresource, never with a new pod.
  if (spec.ephemeralContainers?.length) p.forbidden("spec.ephemeralContainers", "when a pod is made");
}

function checkContainer(p: Problems, at: string, container: Container, spec: PodSpec): void {
  const { image, securityContext } = container;
  if (!image) p.required(`${at}.image`, "name the image");
  else if (image !== image.trim()) p.add(`${at}.image`, image, "has spaces around it", "remove them");
  const volumes = spec.volumes ?? [];
  const claims = new Set(spec.resourceClaims?.map(({ name }) => name));
  p.oneOf(`${at}.terminationMessagePolicy`, container.terminationMessagePolicy, ["File", "FallbackToLogsOnError"]);
  p.oneOf(`${at}.imagePullPolicy`, container.imagePullPolicy, pullPolicies);
  checkPorts(p, `${at}.ports`, container.ports);
  checkEnv(p, `${at}.env`, container.env, volumes);
  checkEnvFrom(p, `${at}.envFrom`, container.envFrom);
  checkMounts(p, at, container, volumes);
  checkResources(p, `${at}.resources`, container.resources, "container");
  checkClaims(p, `${at}.resources.claims`, container, claims);
  checkResizePolicy(p, `${at}.resizePolicy`, container, spec.restartPolicy ?? "Always");
  checkRestartRules(p, at, container);
  checkSecurityContext(p, `${at}.securityContext`, securityContext, spec.hostUsers !== false);
}
