import { concatBytes } from "../../base/bytes.ts";
import { KubeletError } from "../../base/errors.ts";
import { type ByteStream, dial } from "./byte_stream.ts";

/** Longest head of an answer. */
const longestHead = 64 * 1024;
/** Longest body of a refusal that is passed on. */
const longestBody = 1024 * 1024;

export interface UpgradeRequest {
  readonly method: string;
  /** Names and values, in order. */
  readonly headers: readonly (readonly [string, string])[];
}

/** How the runtime's streaming server answered an upgrade request. */
export interface UpgradeAnswer {
  readonly status: number;
  /** By lower-case name; the last of equal ones. */
  readonly headers: ReadonlyMap<string, string>;
  /** The head as it came, with the empty line. */
  readonly rawHead: Uint8Array;
  /** The connection, with what came behind the head. */
  readonly stream: ByteStream;
}

/** Connects to the runtime's streaming server and asks for an upgrade. Rejects with code Network or Runtime. */
export async function requestUpgrade(
  url: URL,
  { method, headers }: UpgradeRequest,
  signal: AbortSignal,
): Promise<UpgradeAnswer> {
  const connection = await dial(url, signal);
  const abort = () => connection.close();
  signal.addEventListener("abort", abort, { once: true });
  try {
    const lines = [`${method} ${url.pathname}${url.search} HTTP/1.1`, ...headers.map(([k, v]) => `${k}: ${v}`)];
    await connection.write(latin1(`${lines.join("\r\n")}\r\n\r\n`));
    return await readHead(connection);
  } catch (thrown) {
    connection.close();
    throw thrown;
  } finally {
    signal.removeEventListener("abort", abort);
  }
}

/** Header values are bytes: what the client sent as such goes on as such. */
function latin1(text: string): Uint8Array {
  return Uint8Array.from(text, (c) => c.charCodeAt(0) & 0xff);
}

async function readHead(connection: ByteStream): Promise<UpgradeAnswer> {
  let head = new Uint8Array();
  while (true) {
    const bytes = await connection.read();
    if (!bytes) {
      throw new KubeletError("Runtime", "the runtime's streaming server closed the connection: unexpected EOF");
    }
    head = concatBytes([head, bytes]);
    const end = endOfHead(head);
    if (end > 0) return parse(head.subarray(0, end), prefixed(connection, head.subarray(end)));
    if (head.length > longestHead) {
      throw new KubeletError("Runtime", "the runtime's streaming server sent no HTTP answer");
    }
  }
}

function endOfHead(bytes: Uint8Array): number {
  for (let at = bytes.indexOf(0x0d); at >= 0; at = bytes.indexOf(0x0d, at + 1)) {
    if (bytes[at + 1] === 0x0a && bytes[at + 2] === 0x0d && bytes[at + 3] === 0x0a) return at + 4;
  }
  return 0;
}

function prefixed(connection: ByteStream, first: Uint8Array): ByteStream {
  let rest: Uint8Array | undefined = first.length > 0 ? first : undefined;
  return {
    read: () => {
      const now = rest;
      rest = undefined;
      return now ? Promise.resolve(now) : connection.read();
    },
    write: (bytes) => connection.write(bytes),
    closeWrite: () => connection.closeWrite(),
    close: () => connection.close(),
  };
}

function parse(rawHead: Uint8Array, stream: ByteStream): UpgradeAnswer {
  const [first = "", ...lines] = new TextDecoder("latin1").decode(rawHead).split("\r\n");
  const status = Number(/^HTTP\/1\.[01] (\d{3})(?: |$)/.exec(first)?.[1] ?? NaN);
  if (Number.isNaN(status)) throw new KubeletError("Runtime", "the runtime's streaming server sent no HTTP answer");
  const headers = new Map<string, string>();
  for (const line of lines) {
    const colon = line.indexOf(":");
    if (colon > 0) headers.set(line.slice(0, colon).toLowerCase(), line.slice(colon + 1).trim());
  }
  return { status, headers, rawHead, stream };
}

/** The body of an answer that is no upgrade: as long as it says, or up to the end; cut at 1 MiB. */
export async function readBody({ headers, stream }: UpgradeAnswer): Promise<Uint8Array> {
  const said = headers.get("content-length");
  // What is in chunks is not worth a decoder here: the status tells what there is to tell.
  if (said === undefined && headers.has("transfer-encoding")) return new Uint8Array();
  const wanted = Math.min(said === undefined ? longestBody : Number(said) || 0, longestBody);
  const body = new Uint8Array(wanted);
  let filled = 0;
  while (filled < wanted) {
    const bytes = await stream.read();
    if (!bytes) break;
    const part = bytes.subarray(0, wanted - filled);
    body.set(part, filled);
    filled += part.length;
  }
  return body.subarray(0, filled);
}
