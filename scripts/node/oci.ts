import { createHash } from "node:crypto";
import { tar, type TarEntry } from "./tar.ts";

/** What an image runs by default; the fields of the OCI image configuration. */
export interface ImageConfig {
  readonly Entrypoint?: readonly string[];
  readonly Cmd?: readonly string[];
  readonly Env?: readonly string[];
  readonly User?: string;
  readonly WorkingDir?: string;
}

const oci = "application/vnd.oci.image";

function digest(data: Uint8Array): string {
  return `sha256:${createHash("sha256").update(data).digest("hex")}`;
}

/** An OCI image layout (image-spec 1.0) as one archive, uncompressed layers, importable with `ctr images import`. */
export function ociArchive(
  image: {
    readonly name: string;
    /** Each an uncompressed tar archive, lowest first. */
    readonly layers: readonly Uint8Array[];
    readonly config: ImageConfig;
    /** OCI's name of the processor, such as amd64. */
    readonly architecture: string;
  },
): Uint8Array {
  const json = (value: unknown) => new TextEncoder().encode(JSON.stringify(value));
  const blobs = new Map<string, Uint8Array>();
  const blob = (mediaType: string, data: Uint8Array) => {
    const id = digest(data);
    blobs.set(id, data);
    return { mediaType, digest: id, size: data.length };
  };
  const layers = image.layers.map((layer) => blob(`${oci}.layer.v1.tar`, layer));
  const config = blob(
    `${oci}.config.v1+json`,
    json({
      architecture: image.architecture,
      os: "linux",
      config: { Env: ["PATH=/usr/local/sbin:/usr/local/bin:/usr/sbin:/usr/bin:/sbin:/bin"], ...image.config },
      rootfs: { type: "layers", diff_ids: layers.map((layer) => layer.digest) },
    }),
  );
  const mediaType = `${oci}.manifest.v1+json`;
  const manifest = blob(mediaType, json({ schemaVersion: 2, mediaType, config, layers }));
  const annotations = {
    "io.containerd.image.name": image.name,
    "org.opencontainers.image.ref.name": image.name,
  };
  const file = (path: string, data: Uint8Array): TarEntry => ({ path, kind: "file", data });
  return tar([
    file("oci-layout", json({ imageLayoutVersion: "1.0.0" })),
    file("index.json", json({ schemaVersion: 2, manifests: [{ ...manifest, annotations }] })),
    ...[...blobs].map(([id, data]) => file(`blobs/sha256/${id.slice("sha256:".length)}`, data)),
  ]);
}
