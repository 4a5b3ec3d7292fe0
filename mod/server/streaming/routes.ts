import type { BoundPod } from "../../kube/types.ts";
import { podContainers } from "../../kube/pod.ts";
import { httpError, writeError } from "../respond.ts";
import type { Handler, RequestContext, RouteGroup, ServerBackend } from "../types.ts";
import { errorText, writeStreamingError } from "./errors.ts";
import { forwardedPorts, streamChoice } from "./params.ts";
import { proxyUpgrade } from "./proxy.ts";
import { newestSandbox, runningContainer } from "./targets.ts";
import { translateV5, wantsV5 } from "./translate.ts";
import { tunnel, tunnelProtocols } from "./tunnel.ts";
import { isWebSocket } from "./websocket.ts";

/** Routes 10 to 13 of http.md section 3: /run, /exec, /attach and /portForward. */
export function streamingRoutes(backend: ServerBackend): RouteGroup {
  const paths = (root: string, tail: string) => [`/${root}/{ns}/{pod}${tail}`, `/${root}/{ns}/{pod}/{uid}${tail}`];
  const routes = (root: string, tail: string, methods: string[], handler: Handler, upgrade: boolean) =>
    paths(root, tail).map((path) => ({ methods, path, handler, upgrade }));
  const both = ["GET", "POST"];
  return {
    name: "streaming",
    access: "B",
    buckets: ["run", "exec", "attach", "portForward"],
    routes: [
      ...routes("run", "/{container}", ["POST"], (c) => run(backend, c), false),
      ...routes("exec", "/{container}", both, (c) => command(backend, c, "exec"), true),
      ...routes("attach", "/{container}", both, (c) => command(backend, c, "attach"), true),
      ...routes("portForward", "", both, (c) => portForward(backend, c), true),
    ],
  };
}

/** What a path means: the desired pod, and the UID and container that it names. */
function target(backend: ServerBackend, { params }: RequestContext): {
  pod: BoundPod | undefined;
  uid: string | undefined;
  container: string;
} {
  const { ns = "", pod = "", uid, container = "" } = params;
  return { pod: backend.podByName(ns, pod), uid, container };
}

async function run(backend: ServerBackend, context: RequestContext): Promise<void> {
  const { pod, uid, container } = target(backend, context);
  if (!pod) return writeError(context, 404, "pod does not exist");
  const argv = (context.query.get("cmd") ?? "").split(" ");
  let output: Uint8Array;
  try {
    const found = await runningContainer(backend, { pod, uid, container }, context.signal);
    if (!found) return writeError(context, 500, `container not found (${JSON.stringify(container)})`);
    const { stdout, stderr, exitCode } = await backend.runtime.execSync(found.id, argv, 0, { signal: context.signal });
    if (exitCode !== 0) {
      const said = new TextDecoder().decode(stderr);
      return writeError(context, 500, `command '${argv.join(" ")}' exited with ${exitCode}: ${said}`);
    }
    output = new Uint8Array(stdout.length + stderr.length);
    output.set(stdout);
    output.set(stderr, stdout.length);
  } catch (thrown) {
    return writeError(context, 500, errorText(thrown));
  }
  context.response.writeHead(200, output.length > 0 ? { "content-type": "application/json" } : {});
  context.response.end(output);
}

async function command(backend: ServerBackend, context: RequestContext, what: "exec" | "attach"): Promise<void> {
  const choice = streamChoice(context.query);
  if (typeof choice === "string") return writeError(context, 400, choice);
  const { pod, uid, container } = target(backend, context);
  if (!pod) return writeError(context, 404, "pod does not exist");
  const { signal } = context;
  let url: URL;
  try {
    const found = await runningContainer(backend, { pod, uid, container }, signal);
    if (!found) return writeError(context, 500, `container not found (${JSON.stringify(container)})`);
    // Before the runtime is asked: it keeps each request that is not come for, and has room for few.
    if (!context.wantsUpgrade) return httpError(context, 500, "Upgrade request required");
    const request = { ...choice, containerId: found.id };
    if (what === "attach") {
      // The terminal is the container's: what the client says of one does not count.
      const tty = podContainers(pod).some(({ spec }) => spec.name === container && spec.tty === true);
      url = new URL(await backend.runtime.attach({ ...request, tty }, { signal }));
    } else {
      const cmd = context.query.getAll("command");
      url = new URL(await backend.runtime.exec({ ...request, cmd }, { signal }));
    }
  } catch (thrown) {
    return writeStreamingError(context, thrown);
  }
  if (isWebSocket(context.request) && wantsV5(context)) {
    return await translateV5(context, backend.clock, url, choice);
  }
  await proxyUpgrade(context, backend.clock, url);
}

async function portForward(backend: ServerBackend, context: RequestContext): Promise<void> {
  const tunnelled = isWebSocket(context.request) && tunnelProtocols(context).length > 0;
  const ports = tunnelled ? [] : forwardedPorts(context.request, context.query);
  if (typeof ports === "string") return writeError(context, 400, ports);
  const { pod, uid } = target(backend, context);
  if (!pod) return writeError(context, 404, "pod does not exist");
  if (uid !== undefined && uid !== pod.metadata.uid) return writeError(context, 404, "pod not found");
  const { signal } = context;
  let url: URL;
  try {
    const sandbox = await newestSandbox(backend, { pod, uid }, signal);
    if (!sandbox) {
      const fullName = `${pod.metadata.name}_${pod.metadata.namespace}`;
      return writeError(context, 500, `pod not found (${JSON.stringify(fullName)})`);
    }
    if (!context.wantsUpgrade) return httpError(context, 500, "Upgrade request required");
    url = new URL(await backend.runtime.portForward({ podSandboxId: sandbox.id, port: ports }, { signal }));
  } catch (thrown) {
    return writeStreamingError(context, thrown);
  }
  if (tunnelled) return await tunnel(context, backend.clock, url);
  await proxyUpgrade(context, backend.clock, url);
}
