/** What becomes of the bytes of a way that is interrupted: lost for good, or kept until the way is there again. */
export type Interruption = "lost" | "late";

/** A way to a server that can be cut: open connections then carry nothing more, without being closed. */
export class TcpProxy implements Disposable {
  readonly #listener: Deno.TcpListener;
  readonly #target: { readonly hostname: string; readonly port: number };
  readonly #connections = new Set<Deno.Conn>();
  /** Connections that were made through it. */
  made = 0;
  /** Grows with each cut: what older connections would carry is dropped. */
  #cuts = 0;
  /** Resolves when the interruption ends; undefined while there is none. */
  #interruption: { readonly how: Interruption; readonly over: PromiseWithResolvers<void> } | undefined;
  readonly #connect: boolean;

  /** @param options `connect` asks for the target with HTTP's CONNECT first, as proxies for HTTPS do */
  constructor(target: string, options: { readonly connect?: boolean } = {}) {
    const { hostname, port } = new URL(target);
    this.#target = { hostname, port: Number(port) };
    this.#connect = options.connect ?? false;
    this.#listener = Deno.listen({ hostname: "127.0.0.1", port: 0 });
    void this.#accept();
  }

  get port(): number {
    return this.#listener.addr.port;
  }

  /** The URL by which an API server is reached through it. */
  get server(): string {
    return `https://127.0.0.1:${this.port}`;
  }

  /** From now on nothing goes through connections that are open; new ones work. */
  cut(): void {
    this.#cuts++;
  }

  /**
   * From now on nothing goes through any connection, open or new, and none is closed, until `heal`. What is `lost` leaves
   * the connections of before and of meanwhile dead; what is `late` arrives then, whoever has given it up meanwhile.
   */
  interrupt(how: Interruption): void {
    this.#interruption ??= { how, over: Promise.withResolvers<void>() };
    if (how === "lost") this.cut();
  }

  /** Ends an interruption. */
  heal(): void {
    if (this.#interruption?.how === "lost") this.cut();
    this.#interruption?.over.resolve();
    this.#interruption = undefined;
  }

  async #accept(): Promise<void> {
    for await (const client of this.#listener) {
      this.made++;
      this.#connections.add(client);
      void this.#serve(client).catch(() => {}).finally(() => close(client));
    }
  }

  async #serve(client: Deno.Conn): Promise<void> {
    if (this.#connect) {
      const head = new TextDecoder().decode(await readSome(client));
      if (!head.startsWith("CONNECT ")) return;
      await client.write(new TextEncoder().encode("HTTP/1.1 200 Connection established\r\n\r\n"));
    }
    const cuts = this.#cuts;
    await this.#interruption?.over.promise;
    const server = await Deno.connect(this.#target);
    this.#connections.add(server);
    await Promise.all([this.#copy(client, server, cuts), this.#copy(server, client, cuts)]);
  }

  async #copy(from: Deno.Conn, to: Deno.Conn, cuts: number): Promise<void> {
    for (let chunk; (chunk = await readSome(from)).length > 0;) {
      if (this.#interruption?.how === "late") await this.#interruption.over.promise;
      if (this.#cuts > cuts) continue;
      for (let at = 0; at < chunk.length;) at += await to.write(chunk.subarray(at));
    }
    if (this.#interruption?.how === "late") await this.#interruption.over.promise;
    if (this.#cuts === cuts) close(to);
  }

  [Symbol.dispose](): void {
    this.heal();
    this.#listener.close();
    for (const connection of this.#connections) close(connection);
  }
}

async function readSome(from: Deno.Conn): Promise<Uint8Array> {
  const buffer = new Uint8Array(32_768);
  const read = await from.read(buffer);
  return buffer.subarray(0, read ?? 0);
}

function close(connection: Deno.Conn): void {
  try {
    connection.close();
  } catch (thrown) {
    if (!(thrown instanceof Deno.errors.BadResource)) throw thrown;
  }
}
