import type { RuntimeService } from "../../cri/api.ts";
import type { Clock } from "../../mod/base/clock.ts";
import { isAborted, KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { EventSink } from "../../mod/kube/events.ts";
import { containerPath, type PodContainer } from "../../mod/kube/pod.ts";
import type { BoundPod, Probe } from "../../mod/kube/types.ts";
import { execProbe } from "./exec.ts";
import { createGrpcCheck, type GrpcCheck } from "./grpc_probe.ts";
import { createHttpGet } from "./http_get.ts";
import { httpProbe } from "./http_probe.ts";
import type { ProbeOutcome } from "./outcome.ts";
import { resolvePort } from "./request.ts";
import { probeSettings } from "./settings.ts";
import { createTcpCheck, type TcpCheck } from "./tcp_probe.ts";
import type { HttpGet, ProbeType } from "./types.ts";

/** How probes reach the network; handed in so that tests and the simulation need none. */
export interface Dialers {
  readonly http: HttpGet;
  readonly tcp: TcpCheck;
  readonly grpc: GrpcCheck;
}

/** The machine's network. */
export function networkDialers(options: { clock: Clock }): Dialers {
  return { http: createHttpGet(options), tcp: createTcpCheck(options), grpc: createGrpcCheck(options) };
}

/** What one run of a probe is about. */
export interface ProbeRun {
  readonly type: ProbeType;
  readonly pod: BoundPod;
  readonly container: PodContainer;
  readonly containerId: string;
  readonly podIP: string | undefined;
  readonly probe: Probe;
  readonly signal: AbortSignal;
}

/** Tries at most, when the prober itself fails. */
const tries = 3;
const titles: Record<ProbeType, string> = { liveness: "Liveness", readiness: "Readiness", startup: "Startup" };

/** Tells the probe's result and message, or undefined for a run that says nothing and is discarded. */
export type Prober = (run: ProbeRun) => Promise<{ ok: boolean; message: string } | undefined>;

/** Makes the prober: picks the handler, repeats prober errors, and emits the events of section 18. */
export function createProber(options: {
  runtime: Pick<RuntimeService, "execSync">;
  dial: Dialers;
  events: EventSink;
  log: Logger;
}): Prober {
  const { runtime, dial, events, log } = options;

  function once(run: ProbeRun): Promise<ProbeOutcome> {
    const { probe, container: { spec }, signal } = run;
    const { timeoutMs } = probeSettings(probe);
    const host = (named: string | undefined) => {
      const address = named || run.podIP;
      if (!address) throw new KubeletError("Probe", "the pod has no IP address yet and the probe names no host");
      return address;
    };
    if (probe.exec) {
      const command = probe.exec.command ?? [];
      return execProbe({ runtime, containerId: run.containerId, command, env: spec.env ?? [], timeoutMs, signal });
    }
    if (probe.httpGet) {
      return httpProbe(dial.http, { action: probe.httpGet, container: spec, podIP: run.podIP, timeoutMs, signal });
    }
    if (probe.tcpSocket) {
      const port = resolvePort(probe.tcpSocket.port, spec);
      return dial.tcp({ host: host(probe.tcpSocket.host), port, timeoutMs, signal });
    }
    if (probe.grpc) {
      const { port, service = "" } = probe.grpc;
      return dial.grpc({ host: host(undefined), port: resolvePort(port, spec), service, timeoutMs, signal });
    }
    const { name, namespace } = run.pod.metadata;
    throw new KubeletError("Probe", `missing probe handler for ${name}_${namespace}:${spec.name}`);
  }

  function event(run: ProbeRun, reason: "Unhealthy" | "ProbeWarning", message: string): void {
    events.pod({ pod: run.pod, type: "Warning", reason, message, fieldPath: containerPath(run.container) });
  }

  return async (run) => {
    const title = titles[run.type];
    let failed: unknown;
    for (let i = 0; i < tries; i++) {
      try {
        const { result, output } = await once(run);
        if (result === "failure") event(run, "Unhealthy", `${title} probe failed: ${output}`);
        if (result === "warning") event(run, "ProbeWarning", `${title} probe warning: ${output}`);
        return { ok: result !== "failure", message: output };
      } catch (thrown) {
        if (isAborted(thrown) || run.signal.aborted) throw thrown;
        failed = thrown;
      }
    }
    const message = messageOf(failed);
    log.detail(1, "Probe errored", { probeType: run.type, containerId: run.containerId, error: message });
    event(run, "Unhealthy", `${title} probe errored and resulted in unknown state: ${message}`);
    return undefined;
  };
}
