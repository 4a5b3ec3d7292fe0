import type { RuntimeService } from "../../cri/api.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { isAborted, KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { EventSink } from "../../mod/kube/events.ts";
import { podContainers, podFullName } from "../../mod/kube/pod.ts";
import type { Container } from "../../mod/kube/types.ts";
import type { HttpGet, HttpGetCall } from "../probes/types.ts";
import type { HookRequest, HookRunner } from "./types.ts";

export interface HookRunnerOptions {
  readonly runtime: Pick<RuntimeService, "execSync">;
  /** Makes HTTP GETs; the prober's is the same. */
  readonly http: HttpGet;
  readonly clock: Clock;
  readonly log: Logger;
  readonly events: EventSink;
  readonly meter?: HookMeter | undefined;
}

/** Told of hooks that went another way than they should, for the metrics. */
export interface HookMeter {
  /** A hook over HTTPS was answered over HTTP. */
  httpFallback(): void;
  /** A sleep was cut short. */
  sleepCut(): void;
}

/** What an operator can read of a command's output in the log; events never carry any of it (section 8). */
const loggedOutput = 1024;

/**
 * Runs postStart and preStop hooks (runtime-contract.md section 8). No hook has a time limit of its own: preStop is
 * bounded by the caller's signal. A tcpSocket handler cannot be run, as in the kubelet: it fails.
 */
export function createHookRunner(options: HookRunnerOptions): HookRunner {
  const { runtime, http, clock, log, events, meter } = options;

  async function exec({ handler, containerId, signal }: HookRequest): Promise<void> {
    // The command goes as it is written: no $(VAR) is expanded.
    const command = [...handler.exec?.command ?? []];
    const { exitCode, stdout, stderr } = await runtime.execSync(containerId, command, 0, { signal });
    if (exitCode === 0) return;
    const decode = (bytes: Uint8Array) => new TextDecoder().decode(bytes.subarray(0, loggedOutput));
    log.detail(1, "Lifecycle hook's command failed", { containerId, stdout: decode(stdout), stderr: decode(stderr) });
    throw new KubeletError("Runtime", `command ${JSON.stringify(command.join(" "))} exited with ${exitCode}`);
  }

  async function httpGet(request: HookRequest, action: HttpGetCall["action"]): Promise<void> {
    const { pod, podIP, signal } = request;
    const container: Pick<Container, "ports"> =
      podContainers(pod).find((c) => c.spec.name === request.containerName)?.spec ?? {};
    const call: HttpGetCall = {
      action,
      container,
      podIP,
      purpose: "lifecycle",
      timeoutMs: 0,
      signal,
      headersOnly: true,
    };
    // Any status is success: the hook was delivered.
    const reply = await http(call);
    if (reply.ok || reply.stage === "body") return;
    if (reply.plainHttp) {
      const again = await http({ ...call, fallbackScheme: "http" });
      if (again.ok) {
        const message =
          `request to HTTPS lifecycle hook ${again.hostPort} got HTTP response, retry with HTTP succeeded`;
        events.pod({ pod, type: "Warning", reason: "LifecycleHTTPFallback", message });
        meter?.httpFallback();
        return;
      }
    }
    throw new KubeletError(reply.stage === "build" ? "BadPod" : "Network", reply.message);
  }

  async function sleep(seconds: number, signal: AbortSignal): Promise<void> {
    if (!Number.isFinite(seconds) || seconds < 0) {
      throw new KubeletError("BadPod", `sleep.seconds is ${seconds}; give a number of at least 0`);
    }
    try {
      if (seconds > 0) await clock.sleep(seconds * 1000, signal);
    } catch (thrown) {
      if (signal.aborted) meter?.sleepCut();
      throw thrown;
    }
  }

  function dispatch(request: HookRequest): Promise<void> {
    const { handler, signal } = request;
    if (handler.exec) return exec(request);
    if (handler.httpGet) return httpGet(request, handler.httpGet);
    if (handler.sleep) return sleep(handler.sleep.seconds, signal);
    const kind = handler.tcpSocket ? "tcpSocket hooks are not supported" : "the hook has no handler";
    throw new KubeletError("BadPod", `${kind}: use exec, httpGet or sleep`);
  }

  return {
    async run(request) {
      const { handler, pod, containerName, containerId } = request;
      const kind = handler.exec ? "Exec" : handler.httpGet ? "HTTP" : handler.sleep ? "Sleep" : "Unknown";
      try {
        await dispatch(request);
      } catch (thrown) {
        if (isAborted(thrown)) throw thrown;
        const error = messageOf(thrown);
        log.detail(1, "Lifecycle hook failed", { kind, pod: podFullName(pod), containerName, containerId, error });
        throw new KubeletError(
          thrown instanceof KubeletError ? thrown.code : "Internal",
          `${kind} lifecycle hook of container ${containerName} failed: ${error}`,
          { cause: thrown },
        );
      }
    },
  };
}
