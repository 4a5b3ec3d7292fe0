import { KubeletError } from "../../mod/base/errors.ts";
import type { IdRanges } from "./range.ts";

interface Mapping {
  readonly hostId: number;
  readonly containerId: number;
  readonly length: number;
}

/** The text of a pod's record (features.md section 12): the range at `first` stands for the ids from 0 on. */
export function recordText(first: number, length: number): string {
  const mappings: Mapping[] = [{ hostId: first, containerId: 0, length }];
  return JSON.stringify({ uidMappings: mappings, gidMappings: mappings });
}

function isObject(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function onlyMapping(value: unknown): Record<string, unknown> | undefined {
  return Array.isArray(value) && value.length === 1 && isObject(value[0]) ? value[0] : undefined;
}

/** The first id of a record. Throws BadConfig, without the file's name, when it is not one that this node can use. */
export function parseRecord(text: string, ranges: IdRanges): number {
  const refuse = (what: string): never => {
    throw new KubeletError("BadConfig", what);
  };
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    throw new KubeletError("BadConfig", "it is no JSON", { cause: thrown });
  }
  const uids = onlyMapping(isObject(value) ? value.uidMappings : undefined);
  const gids = onlyMapping(isObject(value) ? value.gidMappings : undefined);
  if (!uids || !gids) return refuse("uidMappings and gidMappings must have one entry each");
  for (const key of ["hostId", "containerId", "length"] as const) {
    if (uids[key] !== gids[key]) refuse(`uidMappings and gidMappings differ in ${key}`);
  }
  const { hostId, containerId, length } = uids;
  if (containerId !== 0) refuse("containerId must be 0");
  if (length !== ranges.length) refuse(`its length is not ${ranges.length} (userNamespaces.idsPerPod)`);
  const index = typeof hostId === "number" ? (hostId - ranges.first) / ranges.length : NaN;
  if (typeof hostId !== "number" || !Number.isSafeInteger(index) || index < 0 || index >= ranges.count) {
    return refuse("its hostId is not the start of one of the node's ranges");
  }
  return hostId;
}
