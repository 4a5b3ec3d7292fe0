import { createHash } from "node:crypto";
import { buildImages, type BuiltImage } from "../../scripts/node/images.ts";

/** A registry on this machine that gives one image to those who know the password. */
export interface PrivateRegistry extends AsyncDisposable {
  /** Such as `localhost:4711`. */
  readonly address: string;
  /** Full name of its image. */
  readonly image: string;
  /** Requests for the image's manifest that were granted, by user. */
  readonly granted: string[];
  /** The text of a `config.json` with the right password. */
  readonly dockerConfig: string;
  /** The user as credential plugins tell him, as JSON. */
  readonly user: string;
}

const user = "puller";
const password = "open:sesame";

/** Serves an image like our busybox, as distribution-spec 1.0 wants it, to the user `puller` only. */
export async function privateRegistry(): Promise<PrivateRegistry> {
  const { blobs, manifest } = await privateImage();
  const granted: string[] = [];
  const wanted = `Basic ${btoa(`${user}:${password}`)}`;
  const controller = new AbortController();
  const server = Deno.serve(
    { hostname: "127.0.0.1", port: 0, signal: controller.signal, onListen: () => {} },
    (request) => {
      if (request.headers.get("authorization") !== wanted) {
        const headers = { "www-authenticate": 'Basic realm="private"' };
        return new Response('{"errors":[{"code":"UNAUTHORIZED"}]}', { status: 401, headers });
      }
      const { pathname } = new URL(request.url);
      if (pathname === "/v2/") return new Response("{}");
      const [, kind, name = ""] = /^\/v2\/team\/app\/(manifests|blobs)\/(.+)$/.exec(pathname) ?? [];
      const digest = kind === "manifests" && !name.includes(":") ? manifest.digest : name;
      const data = kind && blobs.get(digest);
      if (!data) return new Response('{"errors":[{"code":"NAME_UNKNOWN"}]}', { status: 404 });
      if (kind === "manifests" && request.method === "GET") granted.push(user);
      const headers = {
        "content-type": digest === manifest.digest ? manifest.mediaType : "application/octet-stream",
        "content-length": String(data.length),
        "docker-content-digest": digest,
      };
      return new Response(request.method === "HEAD" ? null : data, { headers });
    },
  );
  const address = `localhost:${server.addr.port}`;
  return {
    address,
    image: `${address}/team/app:1`,
    granted,
    user: JSON.stringify({ username: user, password }),
    dockerConfig: JSON.stringify({ auths: { [address]: { auth: btoa(`${user}:${password}`) } } }),
    async [Symbol.asyncDispose](): Promise<void> {
      controller.abort();
      await server.finished;
    },
  };
}

interface Descriptor {
  mediaType: string;
  digest: string;
  size: number;
}

/** The busybox image with a variable more, so that it is another image than the one that the node has. */
async function privateImage(): Promise<{ blobs: Map<string, Uint8Array<ArrayBuffer>>; manifest: Descriptor }> {
  const built = (await buildImages()).find(({ name }) => name === "localhost/busybox:1");
  if (!built) throw new Error("there is no image localhost/busybox:1");
  const files = await archiveFiles(built);
  const blobs = new Map<string, Uint8Array<ArrayBuffer>>();
  for (const [path, data] of files) {
    if (path.startsWith("blobs/")) blobs.set(path.slice("blobs/".length).replace("/", ":"), data);
  }
  const read = (data: Uint8Array | undefined) => JSON.parse(new TextDecoder().decode(data));
  const add = (value: unknown, mediaType: string): Descriptor => {
    const data = new TextEncoder().encode(JSON.stringify(value));
    const digest = `sha256:${createHash("sha256").update(data).digest("hex")}`;
    blobs.set(digest, data);
    return { mediaType, digest, size: data.length };
  };
  const [first] = read(files.get("index.json")).manifests as Descriptor[];
  const manifest = read(blobs.get(first?.digest ?? "")) as { config: Descriptor; mediaType: string };
  const config = read(blobs.get(manifest.config.digest));
  config.config.Env = [...config.config.Env ?? [], "PRIVATE=yes"];
  const changed = { ...manifest, config: add(config, manifest.config.mediaType) };
  return { blobs, manifest: add(changed, manifest.mediaType) };
}

/** The files of an archive that scripts/node/tar.ts has made. */
async function archiveFiles({ path }: BuiltImage): Promise<Map<string, Uint8Array<ArrayBuffer>>> {
  const bytes = await Deno.readFile(path);
  const text = (from: number, length: number) =>
    new TextDecoder().decode(bytes.subarray(from, from + length)).replace(/\0.*$/s, "");
  const files = new Map<string, Uint8Array<ArrayBuffer>>();
  for (let at = 0; at + 512 <= bytes.length && bytes[at] !== 0;) {
    const size = parseInt(text(at + 124, 12), 8);
    const prefix = text(at + 345, 155);
    const name = `${prefix === "" ? "" : `${prefix}/`}${text(at, 100)}`;
    files.set(name.replace(/^\.\//, ""), bytes.slice(at + 512, at + 512 + size));
    at += 512 + Math.ceil(size / 512) * 512;
  }
  return files;
}
