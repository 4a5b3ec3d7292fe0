import { KubeletError, messageOf } from "../../base/errors.ts";
import { errorOf } from "./api_status.ts";
import { parseJson } from "./body.ts";
import type { HttpResponse } from "./transport.ts";
import type { KubeObject, ResourceType, WatchEvent } from "./types.ts";

/**
 * Reads the object that answers a request. Throws Network when it is none, and the ApiError of a failure that comes with
 * a code of success.
 */
export function jsonOf(text: string, response: HttpResponse, what: string): unknown {
  const type = response.header("content-type") ?? "";
  let value: unknown;
  try {
    value = /^application\/json\b/i.test(type) ? parseJson(text) : undefined;
  } catch (thrown) {
    throw new KubeletError("Network", `${what}: the answer is no JSON: ${messageOf(thrown)}`, { cause: thrown });
  }
  if (typeof value === "object" && value !== null && !Array.isArray(value)) {
    // Some put a failure behind a code of success; read as a list, it would be one without any object.
    if ("kind" in value && value.kind === "Status" && "status" in value && value.status !== "Success") {
      throw errorOf({ status: 500, body: value, what });
    }
    return value;
  }
  const shown = type === "" ? "of no type" : type;
  throw new KubeletError("Network", `${what}: the answer is no object of the API but ${shown}: ${text.slice(0, 200)}`);
}

/** A page of a list. */
export interface Page {
  readonly kind?: unknown;
  readonly items?: unknown;
  readonly metadata?: { readonly resourceVersion?: string; readonly continue?: string };
}

/**
 * The members of a list. Throws Network for whatever is no list of the kind: taken for one without members, it would
 * have all count as deleted.
 */
export function itemsOf({ kind, items }: Page, wanted: string, what: string): KubeObject[] {
  if (kind !== wanted || (items !== null && items !== undefined && !Array.isArray(items))) {
    throw new KubeletError("Network", `${what}: the answer is no ${wanted}, but of kind ${shownKind(kind)}`);
  }
  for (const [i, item] of (items ?? []).entries()) {
    if (isNamed(item)) continue;
    throw new KubeletError("Network", `${what}: item ${i} of the list is no object with a name`);
  }
  return items ?? [];
}

/** Why an object is not one of the kind; undefined when it is. */
function strangeness(object: unknown, { kind }: ResourceType): string | undefined {
  if (!isNamed(object)) return "has no name";
  return object.kind === undefined || object.kind === kind
    ? undefined
    : `is no ${kind}, but of kind ${shownKind(object.kind)}`;
}

function isNamed(value: unknown): value is KubeObject {
  const { metadata } = (value ?? {}) as { metadata?: unknown };
  const { name } = (metadata ?? {}) as { name?: unknown };
  return typeof name === "string" && name !== "";
}

/** A kind that an answer says it is of, for a message. */
export function shownKind(kind: unknown): string {
  return (JSON.stringify(kind) ?? "none").slice(0, 80);
}

/** Reads a line of a watch. Throws Network when it is no event of the kind, and the ApiError of an event ERROR. */
export function eventOf<T extends KubeObject>(line: string, resource: ResourceType<T>, what: string): WatchEvent<T> {
  let event: { type?: unknown; object?: unknown };
  try {
    event = parseJson(line) as typeof event;
  } catch (thrown) {
    throw new KubeletError("Network", `${what}: a line is no JSON: ${messageOf(thrown)}`, { cause: thrown });
  }
  const object = event?.object;
  if (typeof object === "object" && object !== null) {
    switch (event.type) {
      case "ADDED":
      case "MODIFIED":
      case "DELETED": {
        const wrong = strangeness(object, resource);
        if (wrong !== undefined) throw new KubeletError("Network", `${what}: an event's object ${wrong}`);
        return { type: event.type, object: object as T };
      }
      case "BOOKMARK":
        return { type: "BOOKMARK", resourceVersion: (object as KubeObject).metadata?.resourceVersion ?? "" };
      case "ERROR":
        throw errorOf({ status: 500, body: object, what });
    }
  }
  throw new KubeletError("Network", `${what}: a line is no event: ${line.slice(0, 200)}`);
}
