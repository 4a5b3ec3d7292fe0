import { fnv1a32 } from "../../base/hash.ts";
import { canonicalQuantity } from "../../kube/quantity.ts";
import type { ResourceRequirements } from "../../kube/types.ts";
import type { PodResourceInfo } from "./allocation.ts";

/** Resources by pod UID. */
export type PodResourceTable = Map<string, PodResourceInfo>;

const byKey = <T>(entries: Iterable<[string, T]>) =>
  Object.fromEntries([...entries].sort(([a], [b]) => a < b ? -1 : a > b ? 1 : 0));

/** Resources as the reference writes them: limits first, names in order, quantities in their canonical form. */
export function writtenResources({ limits, requests, claims }: ResourceRequirements): ResourceRequirements {
  const list = (of: Record<string, string> | undefined) =>
    of && Object.keys(of).length > 0 &&
    byKey(Object.entries(of).map(([name, text]) => [name, canonicalQuantity(text)]));
  const [max, min] = [list(limits), list(requests)];
  return {
    ...(max ? { limits: max } : {}),
    ...(min ? { requests: min } : {}),
    ...(claims && claims.length > 0 ? { claims } : {}),
  };
}

function checksumOf(data: string): number {
  return fnv1a32(`(string)${data}`);
}

/** The text of a state file (features.md section 12), in the very form of the reference's. */
export function encodeCheckpoint(table: PodResourceTable): string {
  const entries = byKey([...table].map(([uid, { containers, pod }]) => [uid, {
    ContainerResources: byKey([...containers].map(([name, resources]) => [name, writtenResources(resources)])),
    PodLevelResources: pod ? writtenResources(pod) : null,
  }]));
  const data = JSON.stringify(table.size > 0 ? { entries } : {});
  return JSON.stringify({ data, checksum: checksumOf(data) });
}

const isObject = (value: unknown): value is Record<string, unknown> =>
  typeof value === "object" && value !== null && !Array.isArray(value);

function readResources(value: unknown, where: string): ResourceRequirements {
  if (!isObject(value)) throw new Error(`${where} is no object`);
  const list = (side: "limits" | "requests") => {
    const of = value[side];
    if (of === undefined || of === null) return {};
    if (!isObject(of)) throw new Error(`${where}.${side} is no object`);
    return {
      [side]: Object.fromEntries(
        Object.entries(of).map(([name, text]) => {
          if (typeof text !== "string") throw new Error(`${where}.${side}.${name} is no quantity`);
          return [name, canonicalQuantity(text, { what: `${where}.${side}.${name}` })];
        }),
      ),
    };
  };
  const claims = Array.isArray(value.claims) ? { claims: value.claims as ResourceRequirements["claims"] & object } : {};
  return { ...list("limits"), ...list("requests"), ...claims };
}

/**
 * Reads a state file of this agent or of the reference.
 * @throws Error when it is not one, or its checksum is another than that of its data
 */
export function decodeCheckpoint(text: string): PodResourceTable {
  const file: unknown = JSON.parse(text);
  if (!isObject(file) || typeof file.data !== "string") throw new Error("it has no data");
  if (file.checksum !== checksumOf(file.data)) throw new Error("its checksum is another than that of its data");
  const content: unknown = JSON.parse(file.data);
  if (!isObject(content)) throw new Error("its data is no object");
  const entries = content.entries ?? {};
  if (!isObject(entries)) throw new Error("its entries are no object");
  return new Map(
    Object.entries(entries).map(([uid, entry]) => {
      if (!isObject(entry)) throw new Error(`its entry ${uid} is no object`);
      const containers = entry.ContainerResources ?? {};
      if (!isObject(containers)) throw new Error(`its entry ${uid} has no containers`);
      const own = entry.PodLevelResources;
      return [uid, {
        containers: new Map(
          Object.entries(containers).map(([name, of]) => [name, readResources(of, `${uid}.${name}`)] as const),
        ),
        ...(own === undefined || own === null ? {} : { pod: readResources(own, uid) }),
      }];
    }),
  );
}
