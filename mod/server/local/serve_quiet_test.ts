import assert from "@assert";
import { createDenoHost } from "../../base/deno_host.ts";
import { silent } from "../../base/log.ts";
import { localSocket } from "./name.ts";
import { serveLocal } from "./serve.ts";
import type { LocalBackend } from "./types.ts";

/** Serves in a directory and asks once, in the process that this file is run in. */
async function serveAndAsk(rootDir: string): Promise<void> {
  const control = new AbortController();
  const backend: Partial<LocalBackend> = { state: () => ({ version: "v1" } as ReturnType<LocalBackend["state"]>) };
  const served = serveLocal({
    rootDir,
    backend: backend as LocalBackend,
    host: createDenoHost(),
    log: silent,
    signal: control.signal,
  });
  const path = `${rootDir}/${localSocket}`;
  while (!await Deno.stat(path).catch(() => undefined)) await new Promise((resolve) => setTimeout(resolve, 5));
  using client = Deno.createHttpClient({ proxy: { transport: "unix", path } });
  const answer = await fetch("http://agent/state", { client });
  await Deno.stdout.write(new TextEncoder().encode(`${answer.status}\n`));
  await answer.body?.cancel();
  control.abort();
  await served;
}

if (import.meta.main && Deno.args[0] !== undefined) await serveAndAsk(Deno.args[0]);

Deno.test("the run-time writes nothing of its own into the log when the local socket is asked", async () => {
  const rootDir = await Deno.makeTempDir({ prefix: "local-" });
  try {
    const { stdout, stderr } = await new Deno.Command(Deno.execPath(), {
      args: ["run", "--allow-all", "--no-check", "--quiet", import.meta.url, rootDir],
      env: { NO_COLOR: "1" },
    }).output();
    const text = (bytes: Uint8Array) => new TextDecoder().decode(bytes);
    assert.deepEqual([text(stdout), text(stderr)], ["200\n", ""]);
  } finally {
    await Deno.remove(rootDir, { recursive: true });
  }
});
