import { concatBytes } from "../../base/bytes.ts";
import { KubeletError, messageOf } from "../../base/errors.ts";
import type { Clock } from "../../base/clock.ts";
import { httpError } from "../respond.ts";
import type { RequestContext } from "../types.ts";
import { type ByteStream, nodeStream } from "./byte_stream.ts";
import { keepOpen } from "./join.ts";
import type { StreamChoice } from "./params.ts";
import { SpdyParser, SpdyWriter } from "./spdy.ts";
import { readBody, requestUpgrade } from "./upstream.ts";
import {
  binaryFrame,
  closeFrame,
  FrameParser,
  handshake,
  handshakeFault,
  offeredProtocols,
  pongFrame,
} from "./websocket.ts";

/** The WebSocket subprotocol that has a way to close the standard input. */
export const v5 = "v5.channel.k8s.io";
/** The same of a runtime's SPDY: its errors are a Status, too. */
const v4 = "v4.channel.k8s.io";

/** Channels of the WebSocket (http.md section 4). */
const channel = { stdin: 0, stdout: 1, stderr: 2, error: 3, resize: 4, close: 255 } as const;
/** Longest status that is passed on. */
const longestStatus = 1024 * 1024;
/** How long the end of a stream may take to get to the client. */
const lingerMs = 10_000;

/** True when the client offers the subprotocol that is translated here. */
export function wantsV5(context: RequestContext): boolean {
  return offeredProtocols(context.request).includes(v5);
}

/**
 * Serves a client's v5 WebSocket from a runtime that speaks SPDY: channels become streams, the closing of the standard
 * input its last frame, and the runtime's status the error channel's one message, after all output. Errors that come
 * after the WebSocket was opened are told as a Status on that channel. Never holds more than was read at once.
 */
export async function translateV5(
  context: RequestContext,
  clock: Clock,
  url: URL,
  choice: StreamChoice,
): Promise<void> {
  const fault = handshakeFault(context.request);
  if (fault !== undefined) return httpError(context, 400, `unable to upgrade: ${fault}`);
  const { socket, head } = context.takeSocket();
  keepOpen(socket);
  const client = nodeStream(socket, head);
  const translation = new Translation(client, choice, context);
  const close = () => client.close();
  context.signal.addEventListener("abort", close, { once: true });
  try {
    await client.write(handshake(context.request, v5));
    await translation.run(url, clock);
  } catch (thrown) {
    context.log.detail(4, "a streaming client is gone", { error: messageOf(thrown) });
  } finally {
    context.signal.removeEventListener("abort", close);
    client.close();
  }
}

class Translation {
  readonly #client: ByteStream;
  readonly #choice: StreamChoice;
  readonly #context: RequestContext;
  readonly #spdy = new SpdyWriter();
  /** Channel of each SPDY stream, and the reverse. */
  readonly #channels = new Map<number, number>();
  readonly #streams = new Map<number, number>();
  /** Output streams that have not ended. */
  readonly #running = new Set<number>();
  #status: Uint8Array[] = [];
  #statusSize = 0;
  #toClient = Promise.resolve();
  #toRuntime = Promise.resolve();

  constructor(client: ByteStream, choice: StreamChoice, context: RequestContext) {
    this.#client = client;
    this.#choice = choice;
    this.#context = context;
  }

  async run(url: URL, clock: Clock): Promise<void> {
    // Tells the client that the connection stands before anything else comes of it.
    const { stdout, stderr } = this.#choice;
    const lowest = stdout ? channel.stdout : stderr ? channel.stderr : channel.error;
    await this.#send(binaryFrame(Uint8Array.of(lowest)));
    let runtime: ByteStream | undefined;
    let reading: Promise<void> | undefined;
    try {
      let status: Uint8Array;
      try {
        runtime = await this.#connect(url);
        try {
          await this.#openStreams(runtime);
        } catch (thrown) {
          // Its connection is over, or soon is: reading finds what it still said.
          this.#context.log.detail(4, "the runtime took not every stream", { error: messageOf(thrown) });
        }
        reading = this.#fromClient(runtime);
        status = await this.#fromRuntime(runtime);
      } catch (thrown) {
        status = internalError(messageOf(thrown));
      }
      runtime?.close();
      await this.#send(binaryFrame(Uint8Array.of(channel.error), status));
      await this.#send(closeFrame(1000));
      await this.#client.closeWrite();
      // Closing before the client has read everything would take it back.
      using _linger = clock.after(lingerMs, () => this.#client.close());
      await (reading ?? this.#fromClient(undefined));
    } finally {
      runtime?.close();
      this.#client.close();
      await reading;
    }
  }

  async #connect(url: URL): Promise<ByteStream> {
    const answer = await requestUpgrade(url, {
      method: "POST",
      headers: [
        ["Host", url.host],
        ["Connection", "Upgrade"],
        ["Upgrade", "SPDY/3.1"],
        ["X-Stream-Protocol-Version", v4],
        ["Content-Length", "0"],
      ],
    }, this.#context.signal);
    if (answer.status === 101) return answer.stream;
    try {
      const body = new TextDecoder().decode(await readBody(answer)).trim();
      throw new KubeletError("Runtime", `unable to upgrade connection: ${body || `status ${answer.status}`}`);
    } finally {
      answer.stream.close();
    }
  }

  async #openStreams(runtime: ByteStream): Promise<void> {
    const { stdin, stdout, stderr, tty } = this.#choice;
    const wanted: [string, number, boolean][] = [
      ["error", channel.error, true],
      ["stdin", channel.stdin, stdin],
      ["stdout", channel.stdout, stdout],
      ["stderr", channel.stderr, stderr],
      ["resize", channel.resize, tty],
    ];
    let id = 1;
    for (const [name, number, open] of wanted) {
      if (!open) continue;
      this.#channels.set(id, number);
      this.#streams.set(number, id);
      if (number !== channel.stdin && number !== channel.resize) this.#running.add(id);
      await runtime.write(this.#spdy.open(id, { streamType: name }));
      // What is only read is closed for writing at once, as the runtime expects.
      if (number === channel.stdout || number === channel.stderr || number === channel.error) {
        await runtime.write(this.#spdy.data(id, new Uint8Array(), true));
      }
      id += 2;
    }
  }

  /** Frames come from two loops: one at a time, in order. */
  #send(frame: Uint8Array): Promise<void> {
    const done = this.#toClient.then(() => this.#client.write(frame));
    this.#toClient = done.catch(() => {});
    return done;
  }

  #tell(runtime: ByteStream, frame: Uint8Array): Promise<void> {
    const done = this.#toRuntime.then(() => runtime.write(frame));
    this.#toRuntime = done.catch(() => {});
    return done;
  }

  /** Carries the runtime's output until every stream of it has ended, or the connection has; gives the status. */
  async #fromRuntime(runtime: ByteStream): Promise<Uint8Array> {
    const parser = new SpdyParser();
    while (this.#running.size > 0) {
      let bytes: Uint8Array | undefined;
      try {
        bytes = await runtime.read();
      } catch (thrown) {
        this.#context.log.detail(4, "the runtime's stream ended early", { error: messageOf(thrown) });
      }
      if (!bytes) break;
      for (const event of parser.push(bytes)) {
        if (event.kind === "ping") await this.#tell(runtime, this.#spdy.pong(event.bytes)).catch(() => {});
        if (event.kind === "data" && event.bytes.length > 0) await this.#output(event.stream, event.bytes);
        if (event.kind === "reset" || ((event.kind === "data" || event.kind === "reply") && event.fin)) {
          this.#running.delete(event.stream);
        }
      }
    }
    return this.#status.length > 0
      ? concatBytes(this.#status)
      : internalError("the runtime closed the connection before it told how the command ended");
  }

  async #output(stream: number, bytes: Uint8Array): Promise<void> {
    const number = this.#channels.get(stream);
    if (number === channel.error) {
      this.#statusSize += bytes.length;
      if (this.#statusSize <= longestStatus) this.#status.push(bytes);
    } else if (number === channel.stdout || number === channel.stderr) {
      await this.#send(binaryFrame(Uint8Array.of(number), bytes));
    }
  }

  /** Carries what the client says until it is gone; the runtime is then let go, which ends the command's streams. */
  async #fromClient(runtime: ByteStream | undefined): Promise<void> {
    const parser = new FrameParser();
    /** Where the message at hand goes: undefined before its first byte, then a channel. */
    let to: number | undefined;
    try {
      for (let bytes = await this.#client.read(); bytes; bytes = await this.#client.read()) {
        for (const event of parser.push(bytes)) {
          if (event.kind === "ping") await this.#send(pongFrame(event.bytes));
          else if (event.kind === "data") {
            let rest = event.bytes;
            if (event.first) to = undefined;
            if (to === undefined && rest.length > 0) {
              to = rest[0];
              rest = rest.subarray(1);
            }
            if (rest.length > 0 && to !== undefined && runtime) await this.#input(runtime, to, rest);
          } else {
            if (event.kind === "broken") await this.#send(closeFrame(1002, event.why));
            return;
          }
        }
      }
    } catch (thrown) {
      this.#context.log.detail(4, "a streaming client is gone", { error: messageOf(thrown) });
    } finally {
      runtime?.close();
    }
  }

  async #input(runtime: ByteStream, to: number, bytes: Uint8Array): Promise<void> {
    const closes = to === channel.close;
    const number = closes ? bytes[0] : to;
    if (number !== channel.stdin && number !== channel.resize) return;
    const stream = this.#streams.get(number);
    if (stream === undefined) return;
    if (closes) this.#streams.delete(number);
    try {
      await this.#tell(runtime, this.#spdy.data(stream, closes ? new Uint8Array() : bytes, closes));
    } catch (thrown) {
      // Its command has ended; what it had to say still comes the other way.
      this.#context.log.detail(4, "the runtime takes no more input", { error: messageOf(thrown) });
    }
  }
}

function internalError(why: string): Uint8Array {
  const message = `Internal error occurred: ${why}`;
  return new TextEncoder().encode(JSON.stringify({
    kind: "Status",
    apiVersion: "v1",
    metadata: {},
    status: "Failure",
    message,
    reason: "InternalError",
    details: { causes: [{ message: why }] },
    code: 500,
  }));
}
