import { create } from "@bufbuild/protobuf";
import type { AuthConfigInit, RuntimeError } from "../api.ts";
import * as pb from "../gen/runtime_pb.ts";

/** An image as a test describes it. */
export interface ImageSource {
  /** Any reference: `nginx`, `registry.k8s.io/pause:3.10`. */
  name: string;
  /** `sha256:…` of the manifest; made up from the name by default. */
  digest?: string;
  /** `sha256:…` of the image config; made up from the digest by default. */
  id?: string;
  /** Bytes. Default 1 MiB. */
  size?: number;
  pinned?: boolean;
  /** Imported from a file, not pulled: it has a tag but no digest. */
  imported?: boolean;
  /** The image's USER: a number or a name, with or without a group. */
  user?: string;
}

/** What a pull of `reference` gives. */
export interface PullReply {
  /** Milliseconds that it takes. Default 0. */
  ms?: number;
  /** Fails the pull, after `ms`. */
  error?: RuntimeError;
  /** What the registry has under that name. Default: an image of its own for each name. */
  image?: Omit<ImageSource, "name">;
}

export type Registry = (reference: string, auth: AuthConfigInit | undefined) => PullReply;

/** An image in the store; the same content under several names is one image. */
export interface StoredImage {
  readonly id: string;
  readonly repoTags: string[];
  readonly repoDigests: string[];
  readonly size: bigint;
  readonly uid: bigint | undefined;
  readonly username: string;
  pinned: boolean;
}

/** Writes a reference in full: registry, repository and tag or digest. Undefined when it is not a reference. */
export function normalReference(text: string): string | undefined {
  const match =
    /^([A-Za-z0-9.-]+(?::\d+)?\/)?([a-z0-9]+(?:[._/-]+[a-z0-9]+)*)(:[\w][\w.-]{0,127})?(@sha256:[0-9a-f]{64})?$/
      .exec(text);
  if (!match) return undefined;
  let [, host = "", path = ""] = match;
  const [, , , tag = "", digest = ""] = match;
  if (host !== "" && !/[.:]/.test(host) && host !== "localhost/") {
    path = host + path;
    host = "";
  }
  if (host === "") host = "docker.io/";
  if (host === "docker.io/" && !path.includes("/")) path = `library/${path}`;
  return `${host}${path}${tag === "" && digest === "" ? ":latest" : tag}${digest}`;
}

/** A repeatable stand-in for a SHA-256 (FNV-1a, spread over 64 digits): same text, same digest. */
function digestOf(text: string): string {
  let out = "";
  for (let part = 0; part < 8; part++) {
    let hash = 0x811c9dc5 ^ part;
    for (let i = 0; i < text.length; i++) hash = Math.imul(hash ^ text.charCodeAt(i), 0x01000193);
    out += (hash >>> 0).toString(16).padStart(8, "0");
  }
  return `sha256:${out}`;
}

/** The image store of the fake runtime. */
export class ImageStore {
  readonly #images = new Map<string, StoredImage>();

  constructor(sources: readonly ImageSource[]) {
    for (const source of sources) this.add(source);
  }

  /** Adds an image, or a name to one that is there. Throws when the name is not a reference. */
  add(source: ImageSource): StoredImage {
    const name = normalReference(source.name);
    if (name === undefined) throw new TypeError(`${JSON.stringify(source.name)} is not an image reference`);
    const at = name.indexOf("@");
    const asked = at < 0 ? undefined : name.slice(at + 1);
    const repository = (at < 0 ? name : name.slice(0, at)).replace(/:[^:/]*$/, "");
    const digest = asked ?? source.digest ?? digestOf(name);
    const id = source.id ?? digestOf(digest);
    const user = (source.user ?? "").split(":")[0] ?? "";
    const numeric = /^\d+$/.test(user);
    const image = this.#images.get(id) ?? {
      id,
      repoTags: [],
      repoDigests: [],
      size: BigInt(source.size ?? 1 << 20),
      uid: numeric ? BigInt(user) : undefined,
      username: numeric ? "" : user,
      pinned: false,
    };
    image.pinned ||= source.pinned ?? false;
    if (at < 0) {
      for (const other of this.#images.values()) remove(other.repoTags, name);
      image.repoTags.push(name);
    }
    const full = `${repository}@${digest}`;
    if (source.imported !== true && !image.repoDigests.includes(full)) image.repoDigests.push(full);
    this.#images.set(id, image);
    return image;
  }

  list(): StoredImage[] {
    return [...this.#images.values()];
  }

  /** Finds an image by tag, digest, id or the beginning of an id. */
  find(text: string): StoredImage | undefined {
    const direct = this.#images.get(text);
    if (direct) return direct;
    const hex = text.startsWith("sha256:") ? text.slice(7) : text;
    const name = normalReference(text);
    let byPrefix: StoredImage | undefined;
    for (const image of this.#images.values()) {
      if (name !== undefined && (image.repoTags.includes(name) || image.repoDigests.includes(name))) return image;
      if (/^[0-9a-f]{4,64}$/.test(hex) && image.id.startsWith(`sha256:${hex}`)) byPrefix = image;
    }
    return byPrefix;
  }

  /** Removes an image with all its names. */
  remove(text: string): void {
    const image = this.find(text);
    if (image) this.#images.delete(image.id);
  }

  /** Bytes of all images. */
  get usedBytes(): bigint {
    return this.list().reduce((sum, image) => sum + image.size, 0n);
  }
}

function remove(list: string[], value: string): void {
  const at = list.indexOf(value);
  if (at >= 0) list.splice(at, 1);
}

export function imageItem(image: StoredImage): pb.Image {
  return create(pb.ImageSchema, {
    id: image.id,
    repoTags: [...image.repoTags],
    repoDigests: [...image.repoDigests],
    size: image.size,
    username: image.username,
    pinned: image.pinned,
    ...(image.uid === undefined ? {} : { uid: { value: image.uid } }),
  });
}
