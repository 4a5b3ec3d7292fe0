import { concatBytes } from "../../mod/base/bytes.ts";
import { KubeletError } from "../../mod/base/errors.ts";

/** Bytes of a body that are read; the rest is cut off (runtime-contract.md section 18). */
export const bodyLimit = 10 * 1024;
/** Bytes of status line and headers that are read, all interim replies included; more is an error. */
export const headLimit = 64 * 1024;
/** Bytes of one chunk-size line. */
const chunkLineLimit = 1024;

/** An HTTP/1.x reply, its body cut at the limit. */
export interface WireReply {
  readonly status: number;
  /** By lower-case name; of repeated ones the first. */
  readonly headers: ReadonlyMap<string, string>;
  readonly body: Uint8Array;
}

const malformed = (what: string) => new KubeletError("Probe", what);
const text = new TextDecoder("latin1");

/**
 * Reads one HTTP/1.x reply from chunks of bytes, in bounded memory whatever the server sends: give it chunks with
 * `push` until it returns true, or call `end` when the connection has closed. Both throw (code Probe) on what is no
 * HTTP; `headersDone` tells whether a usable head had come before.
 */
export class ReplyParser {
  #buffer: Uint8Array = new Uint8Array(0);
  #headBytes = 0;
  #head: { status: number; headers: Map<string, string> } | undefined;
  #mode: "none" | "length" | "chunked" | "close" = "close";
  #left = 0;
  #chunk: "size" | "data" | "gap" = "size";
  readonly #body: Uint8Array[] = [];
  #bodyBytes = 0;

  get headersDone(): boolean {
    return this.#head !== undefined;
  }

  /** Takes bytes; true when the reply is complete, or as much of it as is wanted has come. */
  push(bytes: Uint8Array): boolean {
    this.#buffer = this.#buffer.length === 0 ? bytes : concatBytes([this.#buffer, bytes]);
    while (!this.#head) {
      const end = headEnd(this.#buffer);
      if (this.#headBytes + (end ?? this.#buffer.length) > headLimit) {
        throw malformed(`server response headers exceeded ${headLimit} bytes; aborted`);
      }
      if (end === undefined) {
        this.#checkStart();
        return false;
      }
      this.#headBytes += end;
      this.#parseHead(text.decode(this.#buffer.subarray(0, end)));
      this.#buffer = this.#buffer.subarray(end);
    }
    return this.#readBody();
  }

  /** The connection has closed. */
  end(): void {
    if (!this.#head) throw malformed("EOF");
    if (this.#mode === "length" || this.#mode === "chunked") throw malformed("unexpected EOF");
  }

  /** The reply; only after `push` returned true or `end` returned. */
  reply(): WireReply {
    if (!this.#head) throw malformed("EOF");
    return { ...this.#head, body: concatBytes(this.#body) };
  }

  /** Fails early on a server that talks something else, without waiting for a line end that may never come. */
  #checkStart(): void {
    const start = text.decode(this.#buffer.subarray(0, 5));
    if (!"HTTP/".startsWith(start)) {
      throw malformed(`malformed HTTP response ${JSON.stringify(firstLine(this.#buffer))}`);
    }
  }

  #parseHead(head: string): void {
    const lines = head.split(/\r?\n/);
    const match = /^HTTP\/1\.\d (\d{3})(?: .*)?$/.exec(lines[0] ?? "");
    if (!match) throw malformed(`malformed HTTP response ${JSON.stringify((lines[0] ?? "").slice(0, 100))}`);
    const status = Number(match[1]);
    const headers = new Map<string, string>();
    for (const line of lines.slice(1)) {
      if (line === "") continue;
      const colon = line.indexOf(":");
      if (colon <= 0) throw malformed(`malformed MIME header line: ${JSON.stringify(line.slice(0, 100))}`);
      const name = line.slice(0, colon).trim().toLowerCase();
      if (!headers.has(name)) headers.set(name, line.slice(colon + 1).trim());
    }
    if (status >= 100 && status < 200 && status !== 101) return;
    this.#head = { status, headers };
    const length = headers.get("content-length");
    if (status === 101 || status === 204 || status === 304) this.#mode = "none";
    else if (/\bchunked\b/i.test(headers.get("transfer-encoding") ?? "")) this.#mode = "chunked";
    else if (length !== undefined) {
      if (!/^\d{1,15}$/.test(length)) {
        this.#head = undefined;
        throw malformed(`bad Content-Length ${JSON.stringify(length.slice(0, 100))}`);
      }
      this.#mode = "length";
      this.#left = Number(length);
    }
  }

  /** Keeps body bytes up to the limit; true when the limit is reached. */
  #keep(bytes: Uint8Array): boolean {
    const part = bytes.slice(0, bodyLimit - this.#bodyBytes);
    if (part.length > 0) this.#body.push(part);
    this.#bodyBytes += part.length;
    return this.#bodyBytes >= bodyLimit;
  }

  #take(count: number): Uint8Array {
    const part = this.#buffer.subarray(0, count);
    this.#buffer = this.#buffer.subarray(part.length);
    return part;
  }

  #readBody(): boolean {
    if (this.#mode === "none") return true;
    if (this.#mode === "close") return this.#keep(this.#take(this.#buffer.length));
    if (this.#mode === "length") {
      const part = this.#take(Math.min(this.#left, this.#buffer.length));
      this.#left -= part.length;
      return this.#keep(part) || this.#left === 0;
    }
    return this.#readChunks();
  }

  #readChunks(): boolean {
    while (this.#buffer.length > 0) {
      if (this.#chunk === "data") {
        const part = this.#take(Math.min(this.#left, this.#buffer.length));
        this.#left -= part.length;
        if (this.#keep(part)) return true;
        if (this.#left === 0) this.#chunk = "gap";
        continue;
      }
      const end = this.#buffer.indexOf(10);
      if (end < 0) {
        if (this.#buffer.length > chunkLineLimit) throw malformed("invalid chunked encoding: line too long");
        return false;
      }
      const line = text.decode(this.#take(end + 1)).trim();
      if (this.#chunk === "gap") {
        if (line !== "") throw malformed("malformed chunked encoding");
        this.#chunk = "size";
        continue;
      }
      const size = /^([0-9a-f]{1,12})\s*(?:;.*)?$/i.exec(line);
      if (!size) throw malformed("invalid byte in chunk length");
      this.#left = parseInt(size[1] ?? "", 16);
      if (this.#left === 0) return true;
      this.#chunk = "data";
    }
    return false;
  }
}

function firstLine(bytes: Uint8Array): string {
  return text.decode(bytes.subarray(0, 100)).split(/\r?\n/)[0] ?? "";
}

/** The index behind the empty line that ends a head, or undefined. Line ends may lack their carriage return. */
function headEnd(bytes: Uint8Array): number | undefined {
  for (let at = bytes.indexOf(10); at >= 0; at = bytes.indexOf(10, at + 1)) {
    if (bytes[at + 1] === 10) return at + 2;
    if (bytes[at + 1] === 13 && bytes[at + 2] === 10) return at + 3;
  }
  return undefined;
}
