import type { Event } from "../../mod/kube/types.ts";
import { type Json, plain, plainText } from "./plain.ts";

/** Reasons of events that come as long as what they tell goes on: whether there are two yet says nothing. */
const goesOn: readonly (string | undefined)[] = ["BackOff"];

/**
 * The events of a run: by object and text, and which fields those about a kind have. How often one was seen is told as
 * once or several times: how many there are of one that comes again and again is a matter of when one looks.
 */
export function eventTree(events: readonly Event[]): Json {
  const counts = new Map<string, number>();
  const endless = new Set<string>();
  const fields: { [kind: string]: { [field: string]: Json } } = {};
  for (const event of events) {
    const { involvedObject: about, reason = "", message = "", type = "", source, count = 1 } = event;
    const from = source?.component === event.reportingComponent
      ? ""
      : ` (${source?.component}, ${event.reportingComponent})`;
    const where = about.fieldPath ? ` ${about.fieldPath}` : "";
    const key = `${about.kind} ${about.name}${where}: ${type}${from} ${reason}: ${plainText(message)}`;
    counts.set(key, (counts.get(key) ?? 0) + count);
    if (goesOn.includes(event.reason)) endless.add(key);
    const { metadata, involvedObject, ...rest } = event;
    const { name: _, ...meta } = metadata;
    const of = fields[about.kind ?? ""] ??= {};
    const known = plain({ ...rest, metadata: meta }, { measured: true }) as { [key: string]: Json };
    for (const [field, value] of Object.entries(known)) {
      of[field] = ["message", "reason", "type"].includes(field) ? "<text>" : value;
    }
    for (const field of Object.keys(involvedObject)) of[`about ${field}`] = true;
  }
  const texts: { [key: string]: Json } = {};
  for (const [key, count] of counts) texts[key] = endless.has(key) ? "told" : count > 1 ? "several" : "once";
  return { texts, fields };
}
