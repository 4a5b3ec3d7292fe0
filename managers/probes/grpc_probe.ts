import * as grpc from "@grpc/grpc-js";
import { Buffer } from "node:buffer";
import type { Clock } from "../../mod/base/clock.ts";
import { formatDuration } from "../../mod/base/duration.ts";
import { asError, isAborted, KubeletError } from "../../mod/base/errors.ts";
import { withDeadline } from "./dial.ts";
import { decodeResponse, encodeRequest } from "./grpc_codec.ts";
import type { ProbeOutcome } from "./outcome.ts";
import { hostPort, userAgentVersion } from "./request.ts";

/** Asks a server for its health: SERVING is success, all else failure. Rejects only with Aborted. */
export type GrpcCheck = (call: {
  host: string;
  port: number;
  service: string;
  timeoutMs: number;
  signal: AbortSignal;
}) => Promise<ProbeOutcome>;

const failure = (output: string): ProbeOutcome => ({ result: "failure", output });

function waitForReady(client: grpc.Client, signal: AbortSignal): Promise<void> {
  const { promise, resolve, reject } = Promise.withResolvers<void>();
  const onAbort = () => reject(signal.reason);
  signal.addEventListener("abort", onAbort, { once: true });
  client.waitForReady(Infinity, (error) => error ? reject(error) : resolve());
  return promise.finally(() => signal.removeEventListener("abort", onAbort));
}

function check(client: grpc.Client, service: string, signal: AbortSignal): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const call = client.makeUnaryRequest<string, string>(
    "/grpc.health.v1.Health/Check",
    (name) => Buffer.from(encodeRequest(name)),
    decodeResponse,
    service,
    (error, state) => error ? reject(error) : resolve(state ?? "UNKNOWN"),
  );
  const onAbort = () => {
    reject(signal.reason);
    call.cancel();
  };
  signal.addEventListener("abort", onAbort, { once: true });
  return promise.finally(() => signal.removeEventListener("abort", onAbort));
}

const isTimeout = (thrown: unknown) => thrown instanceof KubeletError && thrown.code === "Timeout";

/** The gRPC health check over the machine's network, plaintext, one connection a check. */
export function createGrpcCheck(options: { clock: Clock }): GrpcCheck {
  return async ({ host, port, service, timeoutMs, signal }) => {
    const address = hostPort(host, port);
    const family = host.includes(":") ? "ipv6" : /^[\d.]+$/.test(host) ? "ipv4" : "dns";
    const client = new grpc.Client(`${family}:${address}`, grpc.credentials.createInsecure(), {
      "grpc.primary_user_agent": `kube-probe/${userAgentVersion}`,
      "grpc.default_authority": address,
      "grpc.enable_http_proxy": 0,
      "grpc.service_config_disable_resolution": 1,
      "grpc.enable_channelz": 0,
      "grpc.enable_retries": 0,
      // A pool of its own: nothing of the probe is left when it ends.
      "grpc.use_local_subchannel_pool": 1,
      "grpc.max_receive_message_length": 64 * 1024,
      "grpc.max_metadata_size": 64 * 1024,
    });
    const took = formatDuration(timeoutMs);
    let connected = false;
    try {
      return await withDeadline({ clock: options.clock, ms: timeoutMs, signal }, async (inner) => {
        await waitForReady(client, inner);
        connected = true;
        const state = await check(client, service, inner);
        return state === "SERVING"
          ? { result: "success", output: "service healthy" }
          : failure(`service unhealthy (responded with "${state}")`);
      });
    } catch (thrown) {
      if (isAborted(thrown)) throw thrown;
      if (isTimeout(thrown)) {
        return failure(
          connected
            ? `timeout: health rpc did not complete within ${took}`
            : `timeout: failed to connect service "${address}" within ${took}: context deadline exceeded`,
        );
      }
      const error = asError(thrown);
      if ("code" in error && error.code === grpc.status.UNIMPLEMENTED) {
        const details = "details" in error ? String(error.details) : error.message;
        return failure(
          `error: this server does not implement the grpc health protocol (grpc.health.v1.Health): ${details}`,
        );
      }
      return failure(`error: health rpc probe failed: ${error.message}`);
    } finally {
      client.close();
    }
  };
}
