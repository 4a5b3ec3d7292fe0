import { createHash } from "node:crypto";
import { attempt, run } from "../lib/command.ts";
import { cacheDirectory, exists, remove, writeWhole } from "../lib/files.ts";
import { print } from "../lib/print.ts";
import { ociArchive } from "./oci.ts";
import { tar, type TarEntry } from "./tar.ts";

/** An image that lies ready as a file. */
export interface BuiltImage {
  readonly name: string;
  /** The OCI archive. */
  readonly path: string;
}

const busyboxPath = "/bin/busybox";

/** Waits for its end and reaps orphans, as the first process of a pod must. */
const pauseSource = `#include <signal.h>
#include <stddef.h>
#include <sys/wait.h>
#include <unistd.h>
static void end(int sig) { (void)sig; _exit(0); }
static void reap(int sig) { (void)sig; while (waitpid(-1, NULL, WNOHANG) > 0) {} }
int main(void) {
  signal(SIGTERM, end);
  signal(SIGINT, end);
  signal(SIGCHLD, reap);
  for (;;) pause();
}
`;

/** The same by a shell, for a machine without a C compiler. */
const pauseScript = `#!/bin/busybox sh
trap 'exit 0' TERM INT
while :; do /bin/busybox sleep 3600 & wait $!; done
`;

/**
 * Builds localhost/pause:1, localhost/busybox:1 and localhost/web:1 as OCI archives from Debian's static busybox,
 * without a registry. Archives are named by the hash of their content and written once into the cache directory
 * (default: DENOLET_CACHE or /var/cache/denolet). Throws when /bin/busybox is missing.
 */
export async function buildImages(options: { cache?: string } = {}): Promise<BuiltImage[]> {
  const directory = `${options.cache ?? cacheDirectory()}/images`;
  await Deno.mkdir(directory, { recursive: true });
  const busybox = await Deno.readFile(busyboxPath);
  const applets = (await run([busyboxPath, "--list"])).split("\n").filter((name) => name && name !== "busybox");
  const pause = await pauseProgram(directory);
  const base = tar(busyboxTree(busybox, applets));
  const architecture = Deno.build.arch === "aarch64" ? "arm64" : "amd64";
  const images = [
    {
      name: "localhost/pause:1",
      layers: [tar(
        pause
          ? [{ path: "pause", kind: "file", mode: 0o755, data: pause }]
          : [...busyboxTree(busybox, []), { path: "pause", kind: "file", mode: 0o755, data: pauseScript }],
      )],
      config: { Entrypoint: ["/pause"] },
    },
    { name: "localhost/busybox:1", layers: [base], config: { Cmd: ["sh"] } },
    {
      name: "localhost/web:1",
      layers: [base, tar(webTree)],
      config: { Cmd: ["httpd", "-f", "-p", "80", "-h", "/www"] },
    },
  ];
  return await Promise.all(images.map(async (image) => {
    const archive = ociArchive({ ...image, architecture });
    const hash = createHash("sha256").update(archive).digest("hex").slice(0, 16);
    const path = `${directory}/${image.name.replace(/^.*\//, "").replace(":", "-")}-${hash}.tar`;
    if (!await exists(path)) await writeWhole(path, archive);
    return { name: image.name, path };
  }));
}

const webTree: TarEntry[] = [
  { path: "www", kind: "directory" },
  { path: "www/index.html", kind: "file", data: "<html><title>denolet</title><body>It runs.</body></html>\n" },
  { path: "www/healthz", kind: "file", data: "ok\n" },
];

/** A small root file system: busybox with a link for each applet, users and groups. */
export function busyboxTree(busybox: Uint8Array, applets: readonly string[]): TarEntry[] {
  const directories = [
    "bin",
    "dev",
    "etc",
    "home",
    "mnt",
    "proc",
    "root",
    "run",
    "sbin",
    "sys",
    "usr",
    "usr/bin",
    "var",
  ];
  return [
    ...directories.map((path): TarEntry => ({ path, kind: "directory" })),
    { path: "tmp", kind: "directory", mode: 0o1777 },
    {
      path: "etc/passwd",
      kind: "file",
      data:
        "root:x:0:0:root:/root:/bin/sh\nuser:x:1000:1000::/home:/bin/sh\nnobody:x:65534:65534:nobody:/:/bin/false\n",
    },
    { path: "etc/group", kind: "file", data: "root:x:0:\nuser:x:1000:\nnobody:x:65534:\n" },
    { path: "bin/busybox", kind: "file", mode: 0o755, data: busybox },
    { path: "usr/bin/env", kind: "symlink", target: "/bin/busybox" },
    ...applets.map((name): TarEntry => ({ path: `bin/${name}`, kind: "symlink", target: "busybox" })),
  ];
}

/** The compiled pause program, or undefined where there is no C compiler that can make it. */
async function pauseProgram(directory: string): Promise<Uint8Array | undefined> {
  const hash = createHash("sha256").update(pauseSource).digest("hex").slice(0, 16);
  const binary = `${directory}/pause-${Deno.build.arch}-${hash}`;
  if (!await exists(binary)) {
    const work = await Deno.makeTempDir({ prefix: "denolet-pause-" });
    try {
      await Deno.writeTextFile(`${work}/pause.c`, pauseSource);
      const made = await attempt(["gcc", "-static", "-Os", "-s", "-o", `${work}/pause`, `${work}/pause.c`]);
      if (made.code !== 0) return undefined;
      await writeWhole(binary, await Deno.readFile(`${work}/pause`), 0o755);
    } finally {
      await remove(work);
    }
  }
  return await Deno.readFile(binary);
}

if (import.meta.main) {
  for (const image of await buildImages()) print(`${image.name}  ${image.path}`);
}
