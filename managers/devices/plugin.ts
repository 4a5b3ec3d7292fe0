import type { Clock } from "../../mod/base/clock.ts";
import { messageOf } from "../../mod/base/errors.ts";
import type { GrpcClient, GrpcConnect } from "../../mod/base/grpc_client.ts";
import { GrpcError } from "../../mod/base/grpc_error.ts";
import type { Logger } from "../../mod/base/log.ts";
import {
  type ContainerAllocateResponse,
  DevicePlugin,
  type DevicePluginOptions,
  type ListAndWatchResponse,
} from "../../mod/kube/gen/plugins/device_plugin_pb.ts";
import type { Device } from "./types.ts";

/** Milliseconds that a connection to a plugin may take, and its PreStartContainer (features.md section 13). */
const connectMs = 10_000;
const preStartMs = 30_000;

const methods = DevicePlugin.method;

export interface PluginRequest {
  readonly resource: string;
  /** The plugin's socket. */
  readonly path: string;
  readonly connect: GrpcConnect;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signal: AbortSignal;
}

/** A connected device plugin of one resource. */
export class Plugin implements Disposable {
  readonly #client: GrpcClient;
  readonly #signal: AbortSignal;
  readonly #log: Logger;

  private constructor(
    readonly resource: string,
    client: GrpcClient,
    readonly options: DevicePluginOptions,
    o: PluginRequest,
  ) {
    this.#client = client;
    this.#signal = o.signal;
    this.#log = o.log;
  }

  /** Connects and asks for the options. Rejects when either fails: the plugin is not used then. */
  static async meet(request: PluginRequest): Promise<Plugin> {
    const { resource, path, connect, clock, signal } = request;
    const client = await connect(path, { clock, timeoutMs: connectMs, signal });
    try {
      return new Plugin(resource, client, await client.unary(methods.getDevicePluginOptions, {}, { signal }), request);
    } catch (thrown) {
      client[Symbol.dispose]();
      throw new GrpcError("Unknown", `failed to get device plugin options: ${messageOf(thrown)}`, { cause: thrown });
    }
  }

  /** Gives each list of devices that the plugin tells, until it ends; never rejects. */
  async follow(told: (devices: Device[]) => void): Promise<void> {
    let why = "the plugin ended the stream";
    try {
      for await (const list of this.#client.stream(methods.listAndWatch, {}, { signal: this.#signal })) {
        told(devicesOf(list));
      }
    } catch (thrown) {
      why = messageOf(thrown);
    }
    if (!this.#signal.aborted) this.#log.warn("a device plugin has gone", { resource: this.resource, error: why });
  }

  async allocate(ids: readonly string[], signal: AbortSignal): Promise<ContainerAllocateResponse> {
    const answer = await this.#client.unary(methods.allocate, { containerRequests: [{ devicesIds: [...ids] }] }, {
      signal,
    });
    const [first] = answer.containerResponses;
    if (!first) throw new GrpcError("Internal", `no containers return in allocation response of ${this.resource}`);
    return first;
  }

  async prefer(
    available: readonly string[],
    mustInclude: readonly string[],
    size: number,
    signal: AbortSignal,
  ): Promise<readonly string[]> {
    try {
      const { containerResponses: [first] } = await this.#client.unary(methods.getPreferredAllocation, {
        containerRequests: [{
          availableDeviceIDs: [...available],
          mustIncludeDeviceIDs: [...mustInclude],
          allocationSize: size,
        }],
      }, { signal });
      return first?.deviceIDs ?? [];
    } catch (thrown) {
      throw renamed("GetPreferredAllocation", thrown, signal);
    }
  }

  async preStart(ids: readonly string[], signal: AbortSignal): Promise<void> {
    try {
      await this.#client.unary(methods.preStartContainer, { devicesIds: [...ids] }, { signal, timeoutMs: preStartMs });
    } catch (thrown) {
      throw renamed("PreStartContainer", thrown, signal);
    }
  }

  [Symbol.dispose](): void {
    this.#client[Symbol.dispose]();
  }
}

/** A call that failed, in the contract's words. */
class PluginCallError extends GrpcError {
  override readonly message: string;
  constructor(call: string, cause: GrpcError) {
    super(cause.status, cause.details, { cause });
    this.message = `device plugin ${call} rpc failed with err: ${cause.message}`;
  }
}

function renamed(call: string, thrown: unknown, signal: AbortSignal): unknown {
  return thrown instanceof GrpcError && !signal.aborted ? new PluginCallError(call, thrown) : thrown;
}

/** Of two devices of one id the last one counts. */
function devicesOf({ devices }: ListAndWatchResponse): Device[] {
  const list = devices.map(({ ID: id, health, topology }) => ({
    id,
    health,
    nodes: (topology?.nodes ?? []).map(({ ID }) => Number(ID)),
  }));
  return [...new Map(list.map((device) => [device.id, device])).values()];
}
