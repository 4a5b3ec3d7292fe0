import { kubernetesVersion } from "../mod/app/version.ts";
import { controlFile, copyrightFile, debArchitecture, debChangelog, debVersion } from "./compile/deb.ts";
import { manualPage } from "./compile/man.ts";
import { makeExecutable } from "./compile.ts";
import { run } from "./lib/command.ts";
import { remove, repository } from "./lib/files.ts";
import { print } from "./lib/print.ts";
import { noArguments, runScript } from "./lib/script.ts";

const sources = `${repository}/packaging/deb`;
const dist = `${repository}/dist`;

/** The agent's own version. */
const ownVersion = "0.1";

async function gzip(from: string | Uint8Array, to: string): Promise<void> {
  const bytes = typeof from === "string" ? new TextEncoder().encode(from) : from;
  // the name and the time of the original are left out: the same contents give the same package
  const child = new Deno.Command("gzip", { args: ["-9n"], stdin: "piped", stdout: "piped" }).spawn();
  const writer = child.stdin.getWriter();
  await Promise.all([
    writer.write(bytes).then(() => writer.close()),
    child.stdout.pipeTo((await Deno.create(to)).writable),
  ]);
  if (!(await child.status).success) throw new Error(`gzip: ${to}`);
}

/** Time of the package's files: that of the last commit, so that the same sources give the same package. */
async function epoch(): Promise<number> {
  const text = await run(["git", "-C", repository, "log", "-1", "--format=%ct"]).catch(() => "0");
  return Number(text.trim()) || 0;
}

/** Makes dist/kubelet and a Debian package of it; the package's path. Without compression it takes a second. */
export async function makePackage(options: { compress: boolean; into?: string }): Promise<string> {
  await makeExecutable("launcher");
  const root = await Deno.makeTempDir({ dir: dist, prefix: ".package-" });
  try {
    await Deno.chmod(root, 0o755);
    const time = await epoch();
    const version = debVersion(kubernetesVersion, ownVersion);
    const architecture = debArchitecture(Deno.build.arch);
    const doc = "usr/share/doc/denolet";
    for (
      const dir of ["usr/bin", "lib/systemd/system", "etc/kubernetes/manifests", doc, "usr/share/man/man8", "DEBIAN"]
    ) {
      await run(["install", "-d", "-m", "0755", `${root}/${dir}`]);
    }
    const install = (from: string, to: string, mode = "0644") => run(["install", "-m", mode, from, `${root}/${to}`]);
    await install(`${dist}/kubelet`, "usr/bin/kubelet", "0755");
    await install(`${sources}/kubelet.service`, "lib/systemd/system/kubelet.service");
    await install(`${sources}/kubelet.yaml`, "etc/kubernetes/kubelet.yaml");
    await gzip(manualPage(await Deno.readTextFile(`${sources}/kubelet.8`)), `${root}/usr/share/man/man8/kubelet.8.gz`);
    await gzip(debChangelog(version, rfc5322(time)), `${root}/${doc}/changelog.gz`);
    await Deno.writeTextFile(`${root}/${doc}/copyright`, copyrightFile());
    const installedKiB = Number((await run(["du", "-sk", "--apparent-size", root])).split("\t")[0]);
    await Deno.writeTextFile(`${root}/DEBIAN/control`, controlFile({ version, architecture, installedKiB }));
    await Deno.writeTextFile(`${root}/DEBIAN/conffiles`, "/etc/kubernetes/kubelet.yaml\n");
    for (const script of ["postinst", "prerm", "postrm"]) {
      await install(`${sources}/${script}`, `DEBIAN/${script}`, "0755");
    }
    await Deno.writeTextFile(`${root}/DEBIAN/md5sums`, await sums(root));
    for (const file of ["DEBIAN/md5sums", "DEBIAN/control", "DEBIAN/conffiles", `${doc}/copyright`]) {
      await Deno.chmod(`${root}/${file}`, 0o644);
    }
    const path = `${options.into ?? dist}/denolet_${version}_${architecture}.deb`;
    const flags = ["--root-owner-group", ...options.compress ? ["-Zxz", "-z1"] : ["-Znone"]];
    await run(["dpkg-deb", ...flags, "--build", root, path], { env: { SOURCE_DATE_EPOCH: String(time) } });
    return path;
  } finally {
    await remove(root);
  }
}

function rfc5322(seconds: number): string {
  return new Date(seconds * 1000).toUTCString().replace("GMT", "+0000");
}

async function sums(root: string): Promise<string> {
  return await run(
    ["sh", "-c", "find . -path ./DEBIAN -prune -o -type f -printf '%P\\0' | sort -z | xargs -0 md5sum"],
    {
      cwd: root,
    },
  );
}

const usage = `deno task package
Makes dist/kubelet and, of it, the Debian package dist/denolet_VERSION_ARCHITECTURE.deb. It takes no arguments.`;

async function main(args: readonly string[]): Promise<number> {
  noArguments(args);
  const path = await makePackage({ compress: true });
  print(`${path}: ${((await Deno.stat(path)).size / 2 ** 20).toFixed(1)} MiB`);
  return 0;
}

if (import.meta.main) await runScript({ name: "package", usage, main });
