import { run } from "./lib/command.ts";
import { remove, repository } from "./lib/files.ts";
import { print } from "./lib/print.ts";
import { noArguments, runScript } from "./lib/script.ts";
import { ensureGo } from "./node/go_toolchain.ts";

const buf = "@bufbuild/buf@1.75.0";
const plugin = "npm:@bufbuild/protoc-gen-es@2.17.0";

/**
 * Writes the generated sources anew from the pinned Go modules: the .proto texts of the CRI and of plugins and their
 * messages, the Kubernetes types, their schema and the strategies of their patches. Needs Go (fetched when missing) and npx; to be run when a pinned version changes.
 */
async function generate(): Promise<void> {
  const go = await ensureGo({ log: print });
  const proto = `${repository}/cri/proto`, plugins = `${repository}/mod/kube/proto`;
  await run([
    go,
    "run",
    ".",
    `${proto}/runtime.proto`,
    `${repository}/mod/kube/gen/types.ts`,
    `${repository}/mod/kube/gen/schema.ts`,
    `${repository}/mod/kube/gen/patch_fields.ts`,
    plugins,
  ], { cwd: `${repository}/scripts/gen`, env: { GOFLAGS: "-mod=readonly -buildvcs=false", GOTOOLCHAIN: "auto" } });
  const work = await Deno.makeTempDir({ prefix: "denolet-gen-" });
  try {
    const targets = [
      { from: proto, out: `${repository}/cri/gen` },
      { from: plugins, out: `${repository}/mod/kube/gen/plugins` },
    ];
    for (const { from, out } of targets) {
      const template = {
        version: "v2",
        plugins: [{
          local: [Deno.execPath(), "run", "--allow-all", "--quiet", plugin],
          out,
          opt: ["target=ts", "import_extension=ts"],
        }],
      };
      await Deno.writeTextFile(`${work}/buf.gen.yaml`, JSON.stringify(template));
      await run(["npx", "-y", buf, "generate", from, "--template", `${work}/buf.gen.yaml`], { cwd: work });
    }
  } finally {
    await remove(work);
  }
}

const usage = `deno task gen
Makes the generated code of cri/ and mod/kube/ anew; needs Go. It takes no arguments.`;

async function main(args: readonly string[]): Promise<number> {
  noArguments(args);
  await generate();
  return 0;
}

if (import.meta.main) await runScript({ name: "gen", usage, main });
