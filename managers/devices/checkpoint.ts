import { KubeletError } from "../../mod/base/errors.ts";
import { fnv1a32 } from "../../mod/base/hash.ts";

/** The file's name beside the sockets of the plugins. */
export const checkpointName = "kubelet_internal_checkpoint";

/** One container's devices of one resource, as the file has them. */
export interface CheckpointEntry {
  readonly PodUID: string;
  readonly ContainerName: string;
  readonly ResourceName: string;
  /** By NUMA node; -1 for devices without one. */
  readonly DeviceIDs: Readonly<Record<string, readonly string[] | null>> | null;
  /** The plugin's ContainerAllocateResponse, in base64. */
  readonly AllocResp: string | null;
}

export interface CheckpointData {
  readonly PodDeviceEntries: readonly CheckpointEntry[] | null;
  /** Resources with the ids of their healthy devices. */
  readonly RegisteredDevices: Readonly<Record<string, readonly string[] | null>> | null;
}

/** The file's text (features.md section 12), which the reference reads too. */
export function encodeCheckpoint(data: CheckpointData): string {
  return JSON.stringify({ Data: data, Checksum: checksumOf(data) });
}

/** Reads the file's text. Throws with code BadConfig when it isn't one, or its checksum tells that it was damaged. */
export function decodeCheckpoint(text: string): CheckpointData {
  const bad = (why: string, cause?: unknown) =>
    new KubeletError("BadConfig", `the checkpoint of devices is not usable: ${why}`, { cause });
  let file: unknown;
  try {
    file = JSON.parse(text);
  } catch (thrown) {
    throw bad("it is no JSON", thrown);
  }
  if (!isRecord(file) || !isRecord(file.Data) || typeof file.Checksum !== "number") throw bad("it has another form");
  const { PodDeviceEntries: entries = null, RegisteredDevices: registered = null } = file.Data;
  if (entries !== null && !(Array.isArray(entries) && entries.every(isEntry))) throw bad("Data.PodDeviceEntries");
  if (registered !== null && !isLists(registered)) throw bad("Data.RegisteredDevices");
  const data: CheckpointData = { PodDeviceEntries: entries, RegisteredDevices: registered };
  const sum = checksumOf(data);
  if (sum !== file.Checksum) throw bad(`its checksum is ${sum} and should be ${file.Checksum}`);
  return data;
}

/** The reference's checksum: FNV-1a of how Go prints the data, with maps sorted. */
export function checksumOf({ PodDeviceEntries: entries, RegisteredDevices: registered }: CheckpointData): number {
  const entry = (e: CheckpointEntry) =>
    `{PodUID:(string)${e.PodUID} ContainerName:(string)${e.ContainerName} ResourceName:(string)${e.ResourceName} ` +
    `DeviceIDs:(checkpoint.DevicesPerNUMA)${goMap(e.DeviceIDs, (a, b) => Number(a) - Number(b))} ` +
    `AllocResp:([]uint8)${e.AllocResp === null ? nil : `[${fromBase64(e.AllocResp).join(" ")}]`}}`;
  return fnv1a32(
    `(checkpoint.checkpointData){PodDeviceEntries:([]checkpoint.PodDevicesEntry)` +
      `${entries === null ? nil : `[${entries.map(entry).join(" ")}]`} ` +
      `RegisteredDevices:(map[string][]string)${goMap(registered, byBytes)}}`,
  );
}

const nil = "<nil>";

function goMap(lists: CheckpointData["RegisteredDevices"], order: (a: string, b: string) => number): string {
  if (lists === null) return nil;
  const fields = Object.entries(lists).toSorted(([a], [b]) => order(a, b));
  return `map[${fields.map(([key, list]) => `${key}:${list === null ? nil : `[${list.join(" ")}]`}`).join(" ")}]`;
}

const utf8 = new TextEncoder();

/** Go's order of strings. */
function byBytes(a: string, b: string): number {
  const left = utf8.encode(a), right = utf8.encode(b);
  const at = left.findIndex((byte, i) => byte !== right[i]);
  return at < 0 ? left.length - right.length : left[at]! - (right[at] ?? -1);
}

export function fromBase64(text: string): Uint8Array {
  return Uint8Array.from(atob(text), (char) => char.charCodeAt(0));
}

export function toBase64(bytes: Uint8Array): string {
  return btoa(Array.from(bytes, (byte) => String.fromCharCode(byte)).join(""));
}

function isRecord(value: unknown): value is Record<string, unknown> {
  return typeof value === "object" && value !== null && !Array.isArray(value);
}

function isLists(value: unknown): value is Record<string, string[] | null> {
  return isRecord(value) &&
    Object.values(value).every((list) => list === null || Array.isArray(list) && list.every(isText));
}

function isText(value: unknown): value is string {
  return typeof value === "string";
}

function isEntry(value: unknown): value is CheckpointEntry {
  if (!isRecord(value) || ![value.PodUID, value.ContainerName, value.ResourceName].every(isText)) return false;
  const { DeviceIDs: ids, AllocResp: answer } = value;
  if (ids !== null && !(isLists(ids) && Object.keys(ids).every((node) => /^-?\d+$/.test(node)))) return false;
  return answer === null || isText(answer) && /^[A-Za-z0-9+/]*={0,2}$/.test(answer) && answer.length % 4 === 0;
}
