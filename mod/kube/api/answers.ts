import { KubeletError, messageOf } from "../../base/errors.ts";
import { errorOf } from "./api_status.ts";
import { parseJson } from "./body.ts";
import { apiVersionOf } from "./resources.ts";
import { hasShape, misfit } from "./shape.ts";
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
  readonly apiVersion?: unknown;
  readonly kind?: unknown;
  readonly items?: unknown;
  readonly metadata?: unknown;
}

/** What a page of a list holds. */
export interface PageContents {
  readonly items: readonly KubeObject[];
  /** Empty when the server gives none. */
  readonly resourceVersion: string;
  /** Asks for the next page; undefined after the last one. */
  readonly next: string | undefined;
}

/**
 * The contents of a page of a list of a kind. Throws Network for whatever is no such list: taken for one without
 * members, it would have all count as deleted; a member of another shape would be taken for one that has changed.
 */
export function pageOf(page: Page, resource: ResourceType, what: string): PageContents {
  const { apiVersion, kind, items } = page;
  const wanted = `${resource.kind}List`;
  const strange = (why: string) => new KubeletError("Network", `${what}: the answer is no ${wanted}, but ${why}`);
  if (kind !== wanted || !isVersion(apiVersion, resource)) throw strange(`of kind ${shownKind(kind, apiVersion)}`);
  // A list without members has null where one in Go has nothing, but the field is there.
  if (items !== null && !Array.isArray(items)) throw strange("its items are no list");
  const metadata = page.metadata ?? {};
  const { resourceVersion = "", continue: next = "" } = metadata as { resourceVersion?: unknown; continue?: unknown };
  if (typeof metadata !== "object" || typeof resourceVersion !== "string" || typeof next !== "string") {
    throw strange("its version is none");
  }
  for (const [i, item] of (items ?? []).entries()) {
    if (!isNamed(item)) throw new KubeletError("Network", `${what}: item ${i} of the list is no object with a name`);
    const wrong = shapeError(item, resource);
    if (wrong !== undefined) {
      throw new KubeletError(
        "Network",
        `${what}: item ${item.metadata?.name} of the list is no ${resource.kind}: ${wrong}`,
      );
    }
  }
  return { items: items ?? [], resourceVersion, next: next === "" ? undefined : next };
}

/**
 * Why an object is not one of the kind, for a message; undefined when it is.
 * @param name the name that it must have; any or none when not given, as of what is only asked (reviews)
 */
export function strangeness(object: KubeObject, resource: ResourceType, name: string | undefined): string | undefined {
  const { kind, apiVersion } = object;
  if (kind !== undefined && (kind !== resource.kind || !isVersion(apiVersion, resource))) {
    return `is no ${resource.kind}, but of kind ${shownKind(kind, apiVersion)}`;
  }
  const wrong = shapeError(object, resource);
  if (wrong !== undefined) return `is no ${resource.kind}: ${wrong}`;
  const has = object.metadata?.name;
  return name === undefined || has === name ? undefined : `has not the name that was asked for, but ${shownKind(has)}`;
}

/** Why an answer to a post is none, for a message: of the kind that was sent it must have the shape. */
export function answerError(sent: unknown, answer: unknown): string | undefined {
  const { kind } = (sent ?? {}) as { kind?: unknown };
  if (typeof kind !== "string" || !hasShape(kind)) return undefined;
  const { kind: said } = answer as { kind?: unknown };
  // A server may say that it was done, in place of what was done.
  if (said === "Status") return undefined;
  if (said !== undefined && said !== kind) return `is no ${kind}, but of kind ${shownKind(said)}`;
  const wrong = misfit(kind, answer);
  return wrong === undefined ? undefined : `is no ${kind}: ${wrong}`;
}

function shapeError(object: unknown, { kind }: ResourceType): string | undefined {
  return hasShape(kind) ? misfit(kind, object) : undefined;
}

/** Whether an apiVersion is the kind's; one that is not given is taken for it. */
function isVersion(apiVersion: unknown, resource: ResourceType): boolean {
  return apiVersion === undefined || apiVersion === apiVersionOf(resource);
}

function isNamed(value: unknown): value is KubeObject {
  const { metadata } = (value ?? {}) as { metadata?: unknown };
  const { name } = (metadata ?? {}) as { name?: unknown };
  return typeof name === "string" && name !== "";
}

/** A kind that an answer says it is of, for a message. */
function shownKind(kind: unknown, apiVersion?: unknown): string {
  const shown = (JSON.stringify(kind) ?? "none").slice(0, 80);
  return apiVersion === undefined ? shown : `${shown} of ${JSON.stringify(apiVersion)?.slice(0, 80)}`;
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
        const wrong = isNamed(object) ? strangeness(object, resource, undefined) : "has no name";
        if (wrong !== undefined) throw new KubeletError("Network", `${what}: an event's object ${wrong}`);
        return { type: event.type, object: object as T };
      }
      case "BOOKMARK":
        return { type: "BOOKMARK", resourceVersion: bookmarked(object) };
      case "ERROR":
        throw errorOf({ status: 500, body: object, what });
    }
  }
  throw new KubeletError("Network", `${what}: a line is no event: ${line.slice(0, 200)}`);
}

/** The version of a bookmark; empty when it has none. */
function bookmarked(object: object): string {
  const { metadata } = object as { metadata?: { resourceVersion?: unknown } | null };
  const version = metadata?.resourceVersion;
  return typeof version === "string" ? version : "";
}
