import { messageOf } from "../../base/errors.ts";
import type { Host } from "../../base/host.ts";
import type { Logger } from "../../base/log.ts";
import { answerImages, answerLocal } from "./answer.ts";
import { localSocket } from "./name.ts";
import type { LocalBackend } from "./types.ts";

/** It is made under this name, so that nobody finds it with other rights than its own. No longer than the real one. */
const unfinished = ".denolet.new";

/** Longest that the runtime is asked about images, milliseconds. */
const imagesLimitMs = 8000;

export interface ServeLocalOptions {
  readonly rootDir: string;
  readonly backend: LocalBackend;
  readonly host: Pick<Host, "remove" | "rename" | "chmod">;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/**
 * Serves the agent's local API on `<root>/denolet.sock`, which only root may open (0600), until the signal aborts. A
 * socket that an earlier agent left is replaced; the caller holds the lock of the root directory. An agent that cannot
 * have the socket goes on without it: that is logged, never thrown.
 */
export async function serveLocal({ rootDir, backend, host, log, signal }: ServeLocalOptions): Promise<void> {
  const path = `${rootDir}/${localSocket}`;
  const made = `${rootDir}/${unfinished}`;
  const fault = (thrown: unknown) =>
    log.warn("the local socket cannot be served; kubelet ps and explain will not reach this agent", {
      path,
      error: messageOf(thrown),
      ...(path.length > 107 ? { remedy: "its path is longer than the 107 bytes of a socket: shorten --root-dir" } : {}),
    });
  try {
    await host.remove(made);
    const server = Deno.serve({ path: made, signal, onListen: () => {}, onError: broken(log) }, async (request) => {
      // Not the request's own signal: the run-time writes a notice of its own into the log of who looks at that.
      const patience = AbortSignal.any([signal, AbortSignal.timeout(imagesLimitMs)]);
      const { status, body } = await (answerImages(request, backend, patience) ?? answerLocal(request, backend));
      return new Response(body, { status, headers: { "content-type": "application/json" } });
    });
    try {
      await host.chmod(made, 0o600);
      await host.rename(made, path);
    } catch (thrown) {
      fault(thrown);
      await server.shutdown();
      return;
    }
    await server.finished;
    if (!signal.aborted) log.warn("the local socket's server ended", { path });
    await host.remove(path);
  } catch (thrown) {
    if (!signal.aborted) fault(thrown);
  }
}

function broken(log: Logger): (thrown: unknown) => Response {
  return (thrown) => {
    log.error("a request on the local socket failed", { error: messageOf(thrown) });
    return new Response(JSON.stringify({ error: messageOf(thrown) }), { status: 500 });
  };
}
