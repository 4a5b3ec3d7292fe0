import type { AnswerShape, Tamper } from "../../mod/kube/api/fake/wire.ts";
import type { ResourceType } from "../../mod/kube/api/types.ts";
import type { Dice } from "./dice.ts";

type Json = Record<string, unknown>;

/** Texts in the place of any answer. */
const noAnswers = ["", "null", "[]", "7", '"x"', "{}", "<html>502 Bad Gateway</html>", "\u0000", "[".repeat(5000)];
const versions = [7, -1, null, "", "-1", "abc", "1e3", 1e21, "9".repeat(40), {}, []];
const kinds = [7, null, "", "podlist", "Table", "Status", {}, "__proto__"];
const nameless = [null, 7, "x", [], {}, { metadata: null }, { metadata: [] }, { metadata: { name: 7 } }, {
  metadata: { name: "" },
}];
const statuses = [
  {},
  { kind: "Status" },
  { kind: "Status", code: "x", message: 7, reason: [] },
  { kind: "Status", code: -1, message: "m".repeat(100_000) },
  { kind: "Status", code: 1e9, details: { retryAfterSeconds: 1e12 } },
  { kind: "Status", code: 429, details: { retryAfterSeconds: -5 } },
  { kind: "Status", code: 429, reason: "TooManyRequests", details: { retryAfterSeconds: "x" } },
  { kind: "Status", code: 410, reason: "Gone" },
  { kind: "Status", code: 200, status: "Success" },
  { kind: "Pod", metadata: {} },
];

/**
 * What a server never says, drawn from the dice: no JSON, another kind, a list that is none, members without a name,
 * versions that are none, events of no type, errors without a sense, fields of another type. None of it could be taken
 * for something true, so that nothing may come of it but another try.
 */
export function strangeAnswer(dice: Dice): Tamper {
  return (answer, shape, resource) => {
    const value = structuredClone(answer) as Json;
    if (shape !== "event") return dice.chance(0.25) ? whole(dice, value) : changed(dice, value, shape, resource);
    // What can be passed over comes before the event: in its place the event would be lost without a trace.
    if (dice.chance(0.2)) return `${passedOver(dice)}\n${JSON.stringify(answer)}\n`;
    return `${dice.chance(0.25) ? whole(dice, value) || "x" : changed(dice, value, shape, resource)}\n`;
  };
}

function whole(dice: Dice, value: Json): string {
  const text = JSON.stringify(value);
  return dice.chance(0.3) ? text.slice(0, dice.int(1, text.length - 1)) : dice.pick(noAnswers);
}

function changed(dice: Dice, value: Json, shape: AnswerShape, resource: ResourceType): string {
  switch (shape) {
    case "list":
      return JSON.stringify(strangeList(dice, value, resource));
    case "object":
      return JSON.stringify(strangeObject(dice, value));
    case "event":
      return JSON.stringify(strangeEvent(dice, value));
  }
}

function strangeList(dice: Dice, list: Json, { kind }: ResourceType): unknown {
  const items = list.items as Json[];
  switch (dice.weighted({ object: 1, status: 1, kind: 2, items: 2, item: 3, version: 2, metadata: 1, field: 3 })) {
    case "object":
      return { kind, apiVersion: "v1", metadata: { name: "x", namespace: "default", resourceVersion: "1" } };
    case "status":
      return {
        kind: "Status",
        apiVersion: "v1",
        status: dice.pick(["Success", "Failure", 7]),
        code: dice.pick([0, 200]),
      };
    case "kind":
      return { ...list, kind: dice.pick(kinds) };
    case "items":
      return { ...list, items: dice.pick<unknown>([{}, "x", 7, true, { 0: items[0] }]) };
    case "item":
      return { ...list, items: [...items, dice.pick<unknown>(nameless)] };
    case "version":
      return withMetadata(list, { resourceVersion: dice.pick<unknown>(versions) });
    case "metadata":
      return { ...list, metadata: dice.pick<unknown>([null, 7, "x", [], undefined, {}]) };
    case "field": {
      if (items.length === 0) return { ...list, items: "none" };
      const at = dice.int(0, items.length - 1);
      return { ...list, items: items.map((item, i) => i === at ? withStrangeField(dice, item) : item) };
    }
  }
}

function strangeObject(dice: Dice, object: Json): unknown {
  switch (dice.weighted({ kind: 2, metadata: 2, version: 1, field: 4, list: 1, numbers: 1 })) {
    case "kind":
      return { ...object, kind: dice.pick(kinds) };
    case "metadata":
      return { ...object, metadata: dice.pick<unknown>([null, 7, "x", [], undefined, {}, { name: 7 }]) };
    case "version":
      return withMetadata(object, { resourceVersion: dice.pick<unknown>(versions) });
    case "field":
      return withStrangeField(dice, object);
    case "list":
      return { kind: `${object.kind}List`, apiVersion: object.apiVersion, metadata: {}, items: [object] };
    case "numbers":
      return withMetadata(object, { generation: dice.pick([-5, 1e300, 0.5, 2 ** 60]) });
  }
}

function strangeEvent(dice: Dice, event: Json): unknown {
  const object = event.object as Json;
  switch (dice.weighted({ type: 2, object: 2, kind: 2, nameless: 2, error: 3, version: 2, field: 4 })) {
    case "type":
      return { ...event, type: dice.pick<unknown>(["PATCHED", "added", "", 7, null, undefined, [], "__proto__"]) };
    case "object":
      return { ...event, object: dice.pick<unknown>([null, 7, "x", [], undefined, {}]) };
    case "kind":
      return { ...event, object: { ...object, kind: dice.pick(kinds.filter((kind) => kind !== null)) } };
    case "nameless":
      return { ...event, object: dice.pick<unknown>(nameless) };
    case "error":
      return { type: "ERROR", object: dice.pick<unknown>([...statuses, null, 7, undefined]) };
    case "version":
      return { ...event, object: withMetadata(object, { resourceVersion: dice.pick<unknown>(versions) }) };
    case "field":
      return { ...event, object: withStrangeField(dice, object) };
  }
}

/** A line that says nothing: empty, or a bookmark without a version. */
function passedOver(dice: Dice): string {
  const versions = dice.pick<unknown>([7, "", null, {}, "abc", -1]);
  const object = dice.pick<unknown>([{}, { metadata: {} }, { metadata: null }, {
    metadata: { resourceVersion: versions },
  }]);
  return dice.chance(0.2) ? "" : JSON.stringify({ type: "BOOKMARK", object });
}

function withMetadata(object: Json, change: Json): Json {
  return { ...object, metadata: { ...object.metadata as Json, ...change } };
}

/** Types of fields that JSON's types do not tell: what they hold may be text or number. */
const either = new Set(["port", "targetPort", "maxSurge", "maxUnavailable"]);
const quantities = new Set(["capacity", "allocatable", "limits", "requests", "allocatedResources", "overhead"]);

/** The object with one field, wherever it is, of a type that it cannot have. */
function withStrangeField(dice: Dice, object: Json): Json {
  const places: { within: Json | unknown[]; key: string | number }[] = [];
  const walk = (within: Json | unknown[]) => {
    for (const [key, value] of Object.entries(within)) {
      if (either.has(key) || quantities.has(key)) continue;
      places.push({ within, key: Array.isArray(within) ? Number(key) : key });
      if (typeof value === "object" && value !== null) walk(value as Json);
    }
  };
  walk(object);
  const { within, key } = dice.pick(places);
  const list = within as Record<string | number, unknown>;
  const value = list[key];
  const others = Array.isArray(value)
    ? ["x", 7, {}, true]
    : typeof value === "string"
    ? [7, {}, [], true, -1e300]
    : typeof value === "number"
    ? ["x", {}, [], 1e300, 0.5]
    : typeof value === "boolean"
    ? ["x", 7, {}]
    : ["x", 7, [1]];
  list[key] = dice.pick<unknown>(others);
  return object;
}
