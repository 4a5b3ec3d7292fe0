/** A way to a server that can be cut: open connections then carry nothing more, without being closed. */
export class TcpProxy implements Disposable {
  readonly #listener: Deno.TcpListener;
  readonly #target: { readonly hostname: string; readonly port: number };
  readonly #connections = new Set<Deno.Conn>();
  /** Connections that were made through it. */
  made = 0;
  /** Grows with each cut: what older connections would carry is dropped. */
  #cuts = 0;
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

  /** From now on nothing goes through connections that are open; new ones work. */
  cut(): void {
    this.#cuts++;
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
    const server = await Deno.connect(this.#target);
    this.#connections.add(server);
    const cuts = this.#cuts;
    await Promise.all([this.#copy(client, server, cuts), this.#copy(server, client, cuts)]);
  }

  async #copy(from: Deno.Conn, to: Deno.Conn, cuts: number): Promise<void> {
    for (let chunk; (chunk = await readSome(from)).length > 0;) {
      if (this.#cuts > cuts) continue;
      for (let at = 0; at < chunk.length;) at += await to.write(chunk.subarray(at));
    }
    if (this.#cuts === cuts) close(to);
  }

  [Symbol.dispose](): void {
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
