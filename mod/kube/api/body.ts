import { concatBytes } from "../../base/bytes.ts";
import { KubeletError } from "../../base/errors.ts";

/**
 * Reads a body to its end as text. Rejects with code Network when it is longer than `limit` bytes.
 * @param what the request, for that message
 */
export async function readBody(
  body: AsyncIterable<Uint8Array>,
  limit: number,
  what = "a request",
): Promise<{ text: string; size: number }> {
  const chunks: Uint8Array[] = [];
  let size = 0;
  for await (const chunk of body) {
    size += chunk.length;
    if (size > limit) throw new KubeletError("Network", `${what}: the answer is longer than ${limit} bytes`);
    chunks.push(chunk);
  }
  const decoder = new TextDecoder();
  return { text: chunks.map((chunk) => decoder.decode(chunk, { stream: true })).join("") + decoder.decode(), size };
}

const newline = 10;

/**
 * The lines of a body as they come, without those that are empty. Rejects with code Network when a line is longer than
 * `limit` bytes, and when the body ends within a line.
 */
export async function* linesOf(body: AsyncIterable<Uint8Array>, limit: number): AsyncGenerator<string> {
  const decoder = new TextDecoder();
  let parts: Uint8Array[] = [];
  let size = 0;
  const take = (part: Uint8Array) => {
    size += part.length;
    if (size > limit) throw new KubeletError("Network", `a line of the answer is longer than ${limit} bytes`);
    if (part.length > 0) parts.push(part);
  };
  for await (const chunk of body) {
    let from = 0;
    for (let at; (at = chunk.indexOf(newline, from)) >= 0; from = at + 1) {
      take(chunk.subarray(from, at));
      const [only] = parts;
      const line = parts.length === 1 && only ? decoder.decode(only) : decoder.decode(concatBytes(parts));
      parts = [];
      size = 0;
      if (line.trim() !== "") yield line;
    }
    take(chunk.subarray(from));
  }
  if (size > 0) throw new KubeletError("Network", "the connection broke within a line of the answer");
}

/** Levels of nesting that are taken; no kind of the API has more than some 20. */
const levelLimit = 200;

/**
 * Reads JSON. Throws SyntaxError, also when it is nested so deep that comparing two such values would be more than the
 * stack holds, which no code behind here is to look out for.
 */
export function parseJson(text: string): unknown {
  const value: unknown = JSON.parse(text);
  if (isDeeper(value, levelLimit)) throw new SyntaxError(`it is nested deeper than ${levelLimit} levels`);
  return value;
}

function isDeeper(value: unknown, levels: number): boolean {
  if (typeof value !== "object" || value === null) return false;
  if (levels === 0) return true;
  if (Array.isArray(value)) return value.some((member) => isDeeper(member, levels - 1));
  for (const key in value) {
    if (isDeeper((value as Record<string, unknown>)[key], levels - 1)) return true;
  }
  return false;
}
