import { actedOn } from "./acted_on.ts";
import type { ActedOn, FieldSpec } from "./field_spec.ts";
import { evictionFields } from "./fields/eviction.ts";
import { nodeFields } from "./fields/node.ts";
import { podsFields } from "./fields/pods.ts";
import { processFields } from "./fields/process.ts";
import { resourcesFields } from "./fields/resources.ts";
import { runtimeFields } from "./fields/runtime.ts";
import { serverFields } from "./fields/server.ts";

/** The fields by theme, in the order that help and explain show them. */
export const fieldGroups: readonly { readonly title: string; readonly fields: readonly FieldSpec[] }[] = [
  { title: "Pods, sources, networks and volumes", fields: podsFields },
  { title: "Container runtime, images and logs", fields: runtimeFields },
  { title: "Cgroups, CPU, memory and reservations", fields: resourcesFields },
  { title: "Eviction", fields: evictionFields },
  { title: "Node and API server", fields: nodeFields },
  { title: "Server, authentication and diagnostics", fields: serverFields },
  { title: "Process", fields: processFields },
];

/** Every field of the configuration file. */
export const allFields: readonly FieldSpec[] = fieldGroups.flatMap((group) => group.fields);

const byPath = new Map(allFields.map((field) => [field.path, field]));

/** The field at a path. */
export function fieldAt(path: string): FieldSpec | undefined {
  return byPath.get(path);
}

/** Whether the agent acts on a field (acted_on.ts). */
export function isActedOn(path: string): ActedOn {
  return Object.hasOwn(actedOn, path) ? actedOn[path] ?? false : false;
}

/** A field as messages name it: `maxPods (--max-pods)`. */
export function fieldName(path: string): string {
  const flag = byPath.get(path)?.flag;
  return flag === undefined ? path : `${path} (--${flag.name})`;
}
