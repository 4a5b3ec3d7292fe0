import type { Container, EphemeralContainer, HTTPGetAction, LifecycleHandler, Probe } from "../types.ts";
import { defaultPullPolicy } from "./image_tag.ts";
import { roundResources } from "./resources.ts";

/** Sets the defaults of a container of any kind, in place (pkg/apis/core/v1/defaults.go). */
export function defaultContainer(container: Container | EphemeralContainer): void {
  container.resources ??= {};
  container.imagePullPolicy ||= defaultPullPolicy(container.image ?? "");
  container.terminationMessagePath ||= "/dev/termination-log";
  container.terminationMessagePolicy ||= "File";
  for (const port of container.ports ?? []) port.protocol ||= "TCP";
  for (const { valueFrom } of container.env ?? []) {
    if (valueFrom?.fieldRef) valueFrom.fieldRef.apiVersion ||= "v1";
    if (valueFrom?.fileKeyRef) valueFrom.fileKeyRef.optional ??= false;
  }
  roundResources(container.resources);
  for (const probe of [container.livenessProbe, container.readinessProbe, container.startupProbe]) {
    if (probe) defaultProbe(probe);
  }
  defaultHandler(container.lifecycle?.postStart);
  defaultHandler(container.lifecycle?.preStop);
}

function defaultProbe(probe: Probe): void {
  probe.timeoutSeconds ||= 1;
  probe.periodSeconds ||= 10;
  probe.successThreshold ||= 1;
  probe.failureThreshold ||= 3;
  if (probe.httpGet) defaultHttpGet(probe.httpGet);
  if (probe.grpc) probe.grpc.service ??= "";
}

function defaultHandler(handler: LifecycleHandler | undefined): void {
  if (handler?.httpGet) defaultHttpGet(handler.httpGet);
}

function defaultHttpGet(get: HTTPGetAction): void {
  get.path ||= "/";
  get.scheme ||= "HTTP";
}
