import type { ServerResponse } from "node:http";
import { setImmediate as nextTurn } from "node:timers/promises";
import { grpcCode, isNotFound, RuntimeError } from "../../cri/api.ts";
import { ContainerState } from "../../cri/gen/runtime_pb.ts";
import { readLogs } from "../../managers/logs/reader.ts";
import { abortedBy, KubeletError, messageOf } from "../base/errors.ts";
import { podContainers } from "../kube/pod.ts";
import { chooseLog } from "./container_logs_choice.ts";
import { parseLogQuery } from "./container_logs_query.ts";
import { drained } from "./drained.ts";
import { writeError } from "./respond.ts";
import type { RequestContext, RouteGroup, ServerBackend } from "./types.ts";

/** Route 14 of http.md section 3: /containerLogs. */
export function containerLogsRoutes(backend: ServerBackend): RouteGroup {
  return {
    name: "containerLogs",
    access: "B",
    buckets: ["containerLogs"],
    routes: [{
      methods: ["GET"],
      path: "/containerLogs/{ns}/{pod}/{container}",
      handler: (context) => containerLogs(backend, context),
    }],
  };
}

async function containerLogs(backend: ServerBackend, context: RequestContext): Promise<void> {
  const { ns = "", pod: name = "", container = "" } = context.params;
  const asked = parseLogQuery(context.query, backend.clock.now());
  if ("status" in asked) return writeError(context, asked.status, asked.text);
  const pod = backend.podByName(ns, name);
  if (!pod) return writeError(context, 404, `pod ${JSON.stringify(name)} does not exist`);
  if (!podContainers(pod).some(({ spec }) => spec.name === container)) {
    return writeError(context, 404, `container ${JSON.stringify(container)} not found in pod ${JSON.stringify(name)}`);
  }
  if (asked.stream !== undefined) {
    const text = `unable to return the given log stream: ${JSON.stringify(asked.stream)}. ` +
      "Please enable PodLogsQuerySplitStreams feature gate in kubelet";
    return writeError(context, 400, text);
  }
  const status = backend.status(pod.metadata.uid) ?? pod.status;
  const choice = chooseLog(status, { pod: name, container, previous: asked.previous });
  if ("text" in choice) return writeError(context, 400, choice.text);
  const path = await logPath(backend, choice.id, context.signal);
  if (path === undefined) return writeError(context, 400, `unable to retrieve container logs for ${choice.id}`);
  if (!await backend.host.stat(path)) {
    return writeError(context, 400, `failed to try resolving symlinks in path "${path}": no such file or directory`);
  }
  await stream(backend, context, { id: bareId(choice.id), path, options: asked.options });
}

function bareId(id: string): string {
  return id.slice(id.indexOf("://") + 3);
}

async function logPath(backend: ServerBackend, id: string, signal: AbortSignal): Promise<string | undefined> {
  try {
    const { status } = await backend.runtime.containerStatus(bareId(id), { signal });
    return status?.logPath || undefined;
  } catch (thrown) {
    if (signal.aborted) throw thrown;
    backend.log.detail(4, "the container of a log is not known", { id, error: messageOf(thrown) });
    return undefined;
  }
}

async function stream(
  backend: ServerBackend,
  context: RequestContext,
  what: { id: string; path: string; options: Parameters<typeof readLogs>[0]["options"] },
): Promise<void> {
  const { response, signal } = context;
  const { host, clock, runtime } = backend;
  response.writeHead(200, { "content-type": "text/plain; charset=utf-8", "transfer-encoding": "chunked" });
  // A follower of a container that is silent learns at once that it follows.
  response.flushHeaders();
  try {
    await readLogs({
      path: what.path,
      options: what.options,
      host,
      clock,
      log: context.log,
      signal,
      isRunning: (s) => isRunning(runtime, what.id, s),
      out: (bytes) => deliver(response, bytes, signal),
    });
  } catch (thrown) {
    if (signal.aborted || response.destroyed) return;
    // The status has gone out already: the error can only be told where the reader looks.
    response.write(messageOf(thrown));
  }
  await handedOn(response, signal);
  response.end();
}

/**
 * Waits until what was written is on its way, so that the end comes after it and not with it: the API server's web
 * sockets lose bytes that they read together with the end.
 */
async function handedOn(response: ServerResponse, signal: AbortSignal): Promise<void> {
  await nextTurn();
  const { socket } = response;
  if (!socket?.writableNeedDrain) return;
  await drained(socket, signal);
  await nextTurn();
}

/** Whether to go on following. A runtime that is away does not end what it runs. */
async function isRunning(runtime: ServerBackend["runtime"], id: string, signal: AbortSignal): Promise<boolean> {
  try {
    const { status } = await runtime.containerStatus(id, { signal });
    return status?.state === ContainerState.CONTAINER_RUNNING;
  } catch (thrown) {
    if (isNotFound(thrown)) return false;
    const away: number[] = [grpcCode.Unavailable, grpcCode.DeadlineExceeded];
    if (thrown instanceof RuntimeError && away.includes(thrown.status)) return true;
    throw thrown;
  }
}

/** Writes a part and waits until the client has taken enough for the next one. */
async function deliver(response: ServerResponse, bytes: Uint8Array, signal: AbortSignal): Promise<void> {
  if (signal.aborted) throw abortedBy(signal);
  if (response.destroyed) throw new KubeletError("Network", "the client has gone");
  if (response.write(bytes)) return;
  await drained(response, signal);
}
