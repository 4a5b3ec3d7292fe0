import { isAlias, isMap, isScalar, isSeq, Lexer, LineCounter, parseAllDocuments } from "yaml";
import type { Document, Node as YamlNode } from "yaml";
import { type ErrorCode, KubeletError, messageOf } from "../base/errors.ts";

/** A value as written, before it has a type. Maps keep any key safe, `__proto__` included. */
export type Tree = null | boolean | string | number | bigint | readonly Tree[] | TreeMap;
export type TreeMap = ReadonlyMap<string, Tree>;

/** Limits of a text; a text beyond them is refused before it can hurt. */
export interface TextLimits {
  /** Bytes; the reference stops reading a manifest at 10 MiB (pkg/kubelet/config/common.go). */
  readonly bytes: number;
  /** Levels of nesting. */
  readonly depth: number;
  /** Values in all, each alias counted as often as it is used. */
  readonly nodes: number;
}

export const textLimits: TextLimits = { bytes: 10 * 1024 * 1024, depth: 100, nodes: 500_000 };

/** One document of a text. */
export interface ParsedText {
  readonly tree: Tree;
  /** Things that work but are hardly meant: doubled keys. */
  readonly warnings: readonly string[];
}

/** How a parse reports itself. */
export interface ParseTextOptions {
  /** The object in messages, such as the file's path. */
  readonly what: string;
  /** Code of the errors; default BadManifest. */
  readonly code?: ErrorCode;
  readonly limits?: Partial<TextLimits>;
}

const utf8 = new TextDecoder("utf-8", { fatal: true });

/**
 * Reads JSON or YAML text as the API machinery does: YAML 1.1 words and numbers (`yes`, `0644`), no base-60 numbers and
 * no dates, merge keys, the last of doubled keys wins. Gives every document that is not empty, each parsed or as the
 * error that it causes; throws a KubeletError only when the text as a whole can't be read.
 */
export function parseDocuments(
  input: string | Uint8Array,
  options: ParseTextOptions,
): (ParsedText | KubeletError)[] {
  const text = textOf(input, options);
  const fast = tryJson(text, options);
  if (fast) return [fast];
  const refuse = refuser(options);
  refuseDeepText(text, options);
  refuseManyValues(text, options);
  const lines = new LineCounter();
  let documents: Document.Parsed[];
  try {
    documents = parseAllDocuments(text, {
      schema: "failsafe",
      strict: false,
      uniqueKeys: false,
      logLevel: "silent",
      lineCounter: lines,
      prettyErrors: true,
    });
  } catch (thrown) {
    throw refuse(`is not YAML that can be read: ${messageOf(thrown)}`, thrown);
  }
  const found: (ParsedText | KubeletError)[] = [];
  for (const document of documents) {
    const error = document.errors[0];
    if (error) {
      found.push(refuse(`is not valid YAML: ${error.message.split("\n")[0]?.replace(/:$/, "")}`, error));
      continue;
    }
    if (document.contents === null || isEmptyScalar(document.contents)) continue;
    try {
      found.push(new Walk(document, lines, options).read());
    } catch (thrown) {
      found.push(thrown instanceof KubeletError ? thrown : refuse(`can't be read: ${messageOf(thrown)}`, thrown));
    }
  }
  return found;
}

/** The first document of a text, as the kubelet's file source reads it; throws when it can't be used. */
export function parseText(input: string | Uint8Array, options: ParseTextOptions): ParsedText {
  const documents = parseDocuments(input, options);
  const first = documents[0];
  if (first === undefined) throw refuser(options)("is empty; put one object into it");
  if (first instanceof KubeletError) throw first;
  if (documents.length === 1) return first;
  const more = documents.length - 1;
  return {
    tree: first.tree,
    warnings: [...first.warnings, `${more} more document${more > 1 ? "s" : ""} ignored: only the first one is read`],
  };
}

function refuser(options: ParseTextOptions) {
  return (problem: string, cause?: unknown) =>
    new KubeletError(options.code ?? "BadManifest", `${options.what}: ${problem}`, { cause });
}

function textOf(input: string | Uint8Array, options: ParseTextOptions): string {
  const refuse = refuser(options);
  const limit = options.limits?.bytes ?? textLimits.bytes;
  if (input.length >= limit) throw refuse(`is ${input.length} bytes long; it must be shorter than ${limit}`);
  let text: string;
  try {
    text = typeof input === "string" ? input : utf8.decode(input);
  } catch (cause) {
    throw refuse("is not UTF-8 text; save it as UTF-8", cause);
  }
  if (text.includes("\0")) throw refuse("contains NUL bytes, so it is no text file; remove it or replace it");
  return text.startsWith("\uFEFF") ? text.slice(1) : text;
}

/** JSON is YAML, but the JSON parser is a hundred times faster. */
function tryJson(text: string, options: ParseTextOptions): ParsedText | undefined {
  // A number beyond 2^53 would be rounded here; the slow way keeps it.
  if (!/^\s*[{[]/.test(text) || /[:[,]\s*-?\d{16}/.test(text)) return undefined;
  let value: unknown;
  try {
    value = JSON.parse(text);
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return undefined;
    throw refuser(options)(`can't be read: ${messageOf(thrown)}`, thrown);
  }
  const count = counter(options);
  const read = (node: unknown, depth: number): Tree => {
    count(depth);
    if (Array.isArray(node)) return node.map((item) => read(item, depth + 1));
    if (typeof node === "object" && node !== null) {
      return new Map(Object.entries(node).map(([key, item]) => [key, read(item, depth + 1)]));
    }
    return node as null | boolean | string | number;
  };
  return { tree: read(value, 0), warnings: [] };
}

/** Counts a value at a depth; throws at the limits. */
function counter(options: ParseTextOptions): (depth: number) => void {
  const limits = { ...textLimits, ...options.limits };
  let nodes = 0;
  return (depth) => {
    if (depth > limits.depth) throw refuser(options)(`is nested more than ${limits.depth} levels deep`);
    if (++nodes > limits.nodes) {
      throw refuser(options)(tooMany(limits.nodes));
    }
  };
}

function tooMany(nodes: number): string {
  return `holds more than ${nodes} values, aliases expanded; make it smaller`;
}

/** Brackets that may stand open at once, quoted ones counted: beyond it, the YAML parser would only burn time. */
const openBrackets = 2000;

/** The YAML parser recurses over `[[[[…` and `- - - -…`; such a text is refused before it comes near the parser. */
function refuseDeepText(text: string, options: ParseTextOptions): void {
  let open = 0;
  let deepest = 0;
  for (let i = 0; i < text.length; i++) {
    const c = text.charCodeAt(i);
    if (c === 0x5b || c === 0x7b) deepest = Math.max(deepest, ++open);
    else if ((c === 0x5d || c === 0x7d) && open > 0) open--;
  }
  if (deepest > openBrackets || /^[ ]*(?:[-?][ \t]+){100}/m.test(text)) {
    throw refuser(options)(`is nested more than ${options.limits?.depth ?? textLimits.depth} levels deep`);
  }
}

/**
 * Building the nodes of a text with millions of values takes the parser a minute, in which nothing else is done; the
 * lexer gets as far as the limit in a fraction of a second. All documents count together.
 */
function refuseManyValues(text: string, options: ParseTextOptions): void {
  const { nodes } = { ...textLimits, ...options.limits };
  if (text.length < nodes) return;
  let values = 0;
  for (const lexeme of new Lexer().lex(text)) {
    const first = lexeme.charCodeAt(0);
    // 0x1f announces a plain or block scalar; the others are quoted ones and aliases
    if (first !== 0x1f && first !== 0x22 && first !== 0x27 && first !== 0x2a) continue;
    if (++values > nodes) throw refuser(options)(tooMany(nodes));
  }
}

function isEmptyScalar(node: YamlNode): boolean {
  return isScalar(node) && node.type === "PLAIN" && (node.source === "" || node.source === undefined) && !node.tag;
}

/** Turns the nodes of one document into a tree. */
class Walk {
  readonly #warnings: string[] = [];
  readonly #count: (depth: number) => void;
  readonly #open = new Set<unknown>();
  /** Anchors met so far: the document order is the order that aliases see. */
  readonly #anchors = new Map<string, unknown>();

  constructor(
    private readonly document: Document.Parsed,
    private readonly lines: LineCounter,
    private readonly options: ParseTextOptions,
  ) {
    this.#count = counter(options);
  }

  read(): ParsedText {
    return { tree: this.#node(this.document.contents, 0), warnings: this.#warnings };
  }

  #refuse(problem: string, node?: YamlNode): KubeletError {
    const at = node?.range ? ` (line ${this.lines.linePos(node.range[0]).line})` : "";
    return refuser(this.options)(`${problem}${at}`);
  }

  #node(node: unknown, depth: number): Tree {
    this.#count(depth);
    if (node === null || node === undefined) return null;
    if (isAlias(node)) {
      const target = this.#anchors.get(node.source);
      if (!target) throw this.#refuse(`uses the unknown alias *${node.source}`, node);
      if (this.#open.has(target)) throw this.#refuse(`alias *${node.source} contains itself`, node);
      return this.#node(target, depth + 1);
    }
    if ((isScalar(node) || isSeq(node) || isMap(node)) && node.anchor) this.#anchors.set(node.anchor, node);
    if (isScalar(node)) return this.#scalar(node);
    this.#open.add(node);
    try {
      if (isSeq(node)) return node.items.map((item) => this.#node(item, depth + 1));
      if (isMap(node)) return this.#map(node.items, depth);
    } finally {
      this.#open.delete(node);
    }
    throw this.#refuse("holds something that is neither a value, a list nor a map");
  }

  #map(pairs: readonly { key: unknown; value: unknown }[], depth: number): Tree {
    const own = new Map<string, Tree>();
    const merged = new Map<string, Tree>();
    for (const { key, value } of pairs) {
      const name = this.#key(key);
      const tree = this.#node(value, depth + 1);
      if (name === "<<" && isScalar(key) && key.type === "PLAIN") {
        for (const map of Array.isArray(tree) ? tree : [tree]) {
          if (!(map instanceof Map)) throw this.#refuse("merges (<<) something that is no map", key);
          for (const [k, v] of map) if (!merged.has(k)) merged.set(k, v);
        }
        continue;
      }
      if (own.has(name)) {
        const line = isScalar(key) && key.range ? ` (line ${this.lines.linePos(key.range[0]).line})` : "";
        this.#warnings.push(`key ${JSON.stringify(name)} is given twice${line}: the last one counts`);
      }
      own.set(name, tree);
    }
    return merged.size === 0 ? own : new Map([...merged, ...own]);
  }

  #key(key: unknown): string {
    const target = isAlias(key) ? this.#anchors.get(key.source) : key;
    if (isScalar(key) && key.anchor) this.#anchors.set(key.anchor, key);
    if (!isScalar(target)) throw this.#refuse("has a map key that is no plain value");
    return typeof target.value === "string" ? target.value : String(target.value ?? "");
  }

  #scalar(node: { value: unknown; tag?: string; type?: string; source?: string }): Tree {
    const text = typeof node.value === "string" ? node.value : String(node.value ?? "");
    const tag = node.tag?.replace(/^tag:yaml\.org,2002:/, "!!");
    switch (tag) {
      case "!!str":
        return text;
      case "!!binary":
        return decodeBinary(text) ?? text;
      case undefined:
      case "!!int":
      case "!!float":
      case "!!bool":
      case "!!null":
        return tag === undefined && node.type !== "PLAIN" ? text : resolvePlain(text);
      default:
        return text;
    }
  }
}

function decodeBinary(text: string): string | undefined {
  try {
    return utf8.decode(Uint8Array.from(atob(text.replace(/\s/g, "")), (c) => c.charCodeAt(0)));
  } catch {
    return undefined; // not base64 of text: the text as written, which the type check then judges
  }
}

const words: ReadonlyMap<string, null | boolean> = new Map<string, null | boolean>([
  ...["", "~", "null", "Null", "NULL"].map((w) => [w, null] as const),
  ...["y", "Y", "yes", "Yes", "YES", "true", "True", "TRUE", "on", "On", "ON"].map((w) => [w, true] as const),
  ...["n", "N", "no", "No", "NO", "false", "False", "FALSE", "off", "Off", "OFF"].map((w) => [w, false] as const),
]);

/** What an unquoted word means in YAML 1.1 as the API machinery reads it. */
export function resolvePlain(text: string): Tree {
  const word = words.get(text);
  if (word !== undefined) return word;
  if (!/^[-+.\d]/.test(text) || text.length > 128) return text;
  const infinity = /^([-+]?)\.(?:inf|Inf|INF)$/.exec(text);
  if (infinity) return infinity[1] === "-" ? -Infinity : Infinity;
  if (/^\.(?:nan|NaN|NAN)$/.test(text)) return NaN;
  const plain = text.replaceAll("_", "");
  const whole = /^([-+]?)(0[xX][0-9a-fA-F]+|0[bB][01]+|0[oO]?[0-7]+|0|[1-9]\d*)$/.exec(plain);
  if (whole) {
    const digits = (whole[2] ?? "").replace(/^0[oO]?(?=[0-7])/, "0o");
    const value = whole[1] === "-" ? -BigInt(digits) : BigInt(digits);
    return value >= -(2n ** 53n) && value <= 2n ** 53n ? Number(value) : value;
  }
  if (/^[-+]?(?:\.\d+|\d+(?:\.\d*)?)(?:[eE][-+]?\d+)?$/.test(plain)) return Number(plain);
  return text;
}
