import { concatBytes } from "../../base/bytes.ts";
import type { RequestContext } from "../types.ts";

/** The request's body; undefined when it is longer than `limit` bytes, of which no more than that are kept. */
export async function readBody({ request }: RequestContext, limit: number): Promise<Uint8Array | undefined> {
  const parts: Uint8Array[] = [];
  let length = 0;
  for await (const part of request as AsyncIterable<Uint8Array>) {
    length += part.length;
    if (length > limit) return undefined;
    parts.push(part);
  }
  return concatBytes(parts);
}
