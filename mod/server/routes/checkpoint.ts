import { messageOf } from "../../base/errors.ts";
import { podContainers, podRef } from "../../kube/pod.ts";
import { checkpointPath, rootPaths } from "../../pod/config/paths.ts";
import { sendJson, writeError } from "../respond.ts";
import type { RequestContext, RouteGroup, ServerBackend } from "../types.ts";
import { acceptsJson } from "./pods.ts";

const largest = 2n ** 63n - 1n;

/** The last timeout of the query in seconds, 0 without one; undefined for what is no 64-bit integer. */
export function checkpointTimeout(query: URLSearchParams): number | undefined {
  const text = query.getAll("timeout").at(-1);
  if (text === undefined) return 0;
  if (!/^[+-]?\d{1,30}$/.test(text)) return undefined;
  const value = BigInt(text.replace(/^\+/, ""));
  return value > largest || value < -largest - 1n ? undefined : Number(value);
}

/** POST /checkpoint/{ns}/{pod}/{container} (http.md section 3, row 17). */
export function checkpointGroup(options: {
  backend: ServerBackend;
  rootDir: string;
  /** The runtime's usual deadline: a checkpoint gets no less. */
  timeoutMs: number;
}): RouteGroup {
  return {
    name: "checkpoint",
    access: "B",
    buckets: ["checkpoint"],
    root: "/checkpoint/",
    routes: [{
      methods: ["POST"],
      path: "/checkpoint/{podNamespace}/{podID}/{containerName}",
      handler: (context) => checkpoint(context, options),
    }],
  };
}

async function checkpoint(
  context: RequestContext,
  { backend, rootDir, timeoutMs }: Parameters<typeof checkpointGroup>[0],
): Promise<void> {
  if (!acceptsJson(context)) {
    return writeError(context, 406, "406: Not Acceptable\n\nAvailable representations: application/json");
  }
  const { podNamespace = "", podID = "", containerName = "" } = context.params;
  const pod = backend.podByName(podNamespace, podID);
  if (!pod) return writeError(context, 404, "pod does not exist");
  if (!podContainers(pod).some(({ spec }) => spec.name === containerName)) {
    return writeError(context, 404, `container ${containerName} does not exist`);
  }
  const timeout = checkpointTimeout(context.query);
  if (timeout === undefined) return writeError(context, 404, "cannot parse value of timeout parameter");
  try {
    const observed = await backend.refresh(pod.metadata.uid, context.signal);
    const container = observed?.containers.find((each) => each.name === containerName && each.state === "running");
    if (!container) throw new Error(`container ${containerName} not found`);
    if (timeout < 0) throw new Error("CheckpointContainer requires the timeout value to be > 0");
    const at = `${new Date(backend.clock.now()).toISOString().slice(0, 19)}Z`;
    const location = checkpointPath(rootDir, pod, containerName, at);
    await backend.host.mkdir(rootPaths.checkpoints(rootDir), { mode: 0o700 });
    await backend.runtime.checkpointContainer(container.id, location, Math.max(timeout, Math.floor(timeoutMs / 1000)), {
      signal: context.signal,
      because: {
        pod: podRef(pod),
        container: containerName,
        reason: "Checkpoint",
        message: `a request of ${context.user?.name ?? "a client"} to /checkpoint`,
      },
    });
    sendJson(context, { items: [location] });
  } catch (thrown) {
    if (context.signal.aborted) throw thrown;
    const name = `${podNamespace}/${podID}/${containerName}`;
    writeError(context, 500, `checkpointing of ${name} failed (${messageOf(thrown)})`);
  }
}
