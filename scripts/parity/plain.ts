/** A value as JSON knows it. */
export type Json = null | boolean | number | string | Json[] | { [key: string]: Json };

/** What becomes of a value that differs from run to run. */
export interface PlainOptions {
  /** Keeps IP addresses: for objects of the machine, which is the same both times. */
  readonly addresses?: boolean;
  /** Numbers are measured ones: only that they are there counts. */
  readonly measured?: boolean;
}

const id = /[0-9a-f]{8}([-_])[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{4}\1[0-9a-f]{12}/g;

/** Each pattern with what stands for it; in this order. */
const words: readonly (readonly [RegExp, string])[] = [
  [/\b(containerd:\/\/)?[0-9a-f]{64}\b(?<!sha256:[0-9a-f]{64})/g, "<container>"],
  [id, "<uid>"],
  // of a static pod
  [/(?<=_default\()[0-9a-f]{32}(?=\))/g, "<uid>"],
  [/\b\d{4}-\d\d-\d\dT\d\d:\d\d:\d\d(\.\d+)?(Z|[+-]\d\d:\d\d)/g, "<time>"],
  [/\bkube-api-access-[a-z0-9]{5}\b/g, "kube-api-access-<random>"],
  // a local address with its port first: the port is any
  [/\b\d{1,3}(\.\d{1,3}){3}:\d{4,5}(?=->)/g, "<address>:<port>"],
  // what took so long, not what somebody set: those are whole seconds
  [/\b(\d+h)?(\d+m)?\d+\.\d+s\b|\b\d+(\.\d+)?(ms|µs|us|ns)\b/g, "<duration>"],
];
const address = /\b(?!127\.0\.0\.1\b)\d{1,3}(\.\d{1,3}){3}\b/g;

/** A text with words for what differs from run to run: times, ids, random names, durations, addresses. */
export function plainText(text: string, options: PlainOptions = {}): string {
  const plain = words.reduce((all, [pattern, word]) => all.replace(pattern, word), text);
  return options.addresses ? plain : plain.replace(address, "<ip>");
}

const dropped = new Set(["uid", "resourceVersion", "creationTimestamp", "generateName", "selfLink"]);
/** Annotations whose values are hashes, each kubelet's own way. */
const hashes = /^kubernetes\.io\/config\.(hash|mirror)$/;

/** An object with words for what differs from run to run. */
export function plain(value: unknown, options: PlainOptions = {}): Json {
  if (value === null || value === undefined) return null;
  if (typeof value === "string") return plainText(value, options);
  if (typeof value === "number") return options.measured ? "<number>" : value;
  if (typeof value === "boolean") return value;
  if (Array.isArray(value)) return value.map((one) => plain(one, options));
  const out: { [key: string]: Json } = {};
  for (const [key, one] of Object.entries(value)) {
    if (one === undefined || dropped.has(key)) continue;
    const name = plainText(key, options);
    if (key === "managedFields" && Array.isArray(one)) out[name] = owners(one, options);
    else out[name] = hashes.test(key) ? "<hash>" : plain(one, options);
  }
  return out;
}

interface ManagedFields {
  readonly manager?: string;
  readonly operation?: string;
  readonly subresource?: string;
  readonly fieldsV1?: unknown;
}

/** Who wrote which fields, as `manager operation subresource` with the paths of the fields. */
function owners(entries: readonly ManagedFields[], options: PlainOptions): Json {
  const out: { [key: string]: Json } = {};
  for (const { manager = "?", operation = "?", subresource = "", fieldsV1 } of entries) {
    const key = `${manager} ${operation} ${subresource}`.trim();
    const fields = { ...out[key] as { [key: string]: Json } | undefined };
    for (const path of fieldPaths(fieldsV1)) {
      // who wrote a time follows from when the value changed, which may be within the second of the one before
      if (!/\/last(Heartbeat|Transition|Probe|Update)Time$/.test(path)) fields[plainText(path, options)] = true;
    }
    out[key] = fields;
  }
  return out;
}

function fieldPaths(fields: unknown, at = ""): string[] {
  if (typeof fields !== "object" || fields === null) return [];
  const names = Object.keys(fields).filter((name) => name !== ".");
  if (names.length === 0 && at !== "") return [at];
  return names.flatMap((name) => {
    const short = name.startsWith("f:") ? name.slice(2) : `[${name.replace(/^[kv]:/, "")}]`;
    return fieldPaths((fields as Record<string, unknown>)[name], at === "" ? short : `${at}/${short}`);
  });
}
