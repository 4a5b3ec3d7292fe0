import { create, type DescMethod, type MessageInitShape } from "@bufbuild/protobuf";
import { Channel } from "../../mod/base/channel.ts";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { FakeHost } from "../../mod/base/fake_host.ts";
import type { GrpcCall, GrpcClient } from "../../mod/base/grpc_client.ts";
import { GrpcError } from "../../mod/base/grpc_error.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import {
  ContainerAllocateResponseSchema,
  DevicePluginOptionsSchema,
  ListAndWatchResponseSchema,
} from "../../mod/kube/gen/plugins/device_plugin_pb.ts";
import type { BoundPod, Container } from "../../mod/kube/types.ts";
import { DeviceManager } from "./manager.ts";

/** A device plugin in memory. */
export class FakePlugin {
  readonly calls: { method: string; request: unknown }[] = [];
  options: MessageInitShape<typeof DevicePluginOptionsSchema> = {};
  /** Answers other than the usual; one that throws fails the call. */
  readonly answers: Record<string, (request: unknown) => unknown> = {};
  #lists = new Channel<MessageInitShape<typeof ListAndWatchResponseSchema>>();

  /** Tells its devices: ids, those with an exclamation mark behind them are not healthy. */
  tell(...ids: string[]): void {
    this.#lists.push({
      devices: ids.map((id) => ({ ID: id.replace("!", ""), health: id.endsWith("!") ? "Unhealthy" : "Healthy" })),
    });
  }

  /** The plugin's process ends. */
  end(): void {
    this.#lists.close();
    this.#lists = new Channel();
  }

  client(): GrpcClient {
    const lists = this.#lists, answer = this.#answer.bind(this);
    return {
      // deno-lint-ignore require-await -- as a call over the wire rejects
      async unary(method: DescMethod, request: unknown) {
        return create(method.output, answer(method.name, request) as Record<string, unknown>);
      },
      async *stream(method: DescMethod, _request: unknown, call?: GrpcCall) {
        for (let list = await lists.take(call?.signal); list; list = await lists.take(call?.signal)) {
          yield create(method.output, list);
        }
        throw new GrpcError("Unavailable", "error reading from server: EOF");
      },
      [Symbol.dispose]: () => {},
    } as GrpcClient;
  }

  #answer(method: string, request: unknown): unknown {
    this.calls.push({ method, request });
    const own = this.answers[method];
    if (own) return own(request);
    if (method === "GetDevicePluginOptions") return this.options;
    if (method !== "Allocate") return {};
    const { containerRequests } = request as { containerRequests: { devicesIds: string[] }[] };
    return {
      containerResponses: containerRequests.map(({ devicesIds }) =>
        create(ContainerAllocateResponseSchema, { envs: { DEVICES: devicesIds.join(",") } })
      ),
    };
  }
}

/** A manager with plugins in memory. */
export interface DevicesUnderTest {
  readonly manager: DeviceManager;
  readonly host: FakeHost;
  readonly clock: FakeClock;
  readonly log: RecordingLogger;
  readonly scope: Scope;
  /** By their sockets. */
  readonly plugins: Map<string, FakePlugin>;
  /** UIDs of the pods that have not ended. */
  readonly active: Set<string>;
  /** UIDs of the pods whose devices' health has changed. */
  readonly changed: string[];
  /** Resources of the allocations that plugins were asked for, with the milliseconds that each took. */
  readonly allocations: [resource: string, ms: number][];
}

export function devicesUnderTest(host: FakeHost = new FakeHost()): DevicesUnderTest {
  const clock = new FakeClock();
  const log = new RecordingLogger();
  const scope = new Scope("test");
  const plugins = new Map<string, FakePlugin>();
  const active = new Set<string>();
  const changed: string[] = [];
  const allocations: [string, number][] = [];
  const manager = new DeviceManager({
    host,
    dir: "/root/device-plugins",
    connect: (path) => {
      const plugin = plugins.get(path);
      return plugin ? Promise.resolve(plugin.client()) : Promise.reject(new GrpcError("Unavailable", `no ${path}`));
    },
    clock,
    log,
    scope,
    showHealth: true,
    onAllocated: (resource, ms) => allocations.push([resource, ms]),
  });
  manager.serve({ active: () => active, sourcesReady: true, changed: (uid) => changed.push(uid) });
  return { manager, host, clock, log, scope, plugins, active, changed, allocations };
}

/** A pod whose containers want so many devices of `example.com/d` each; `init:` before a name makes an init container. */
export function podWanting(uid: string, containers: Record<string, number>): BoundPod {
  const all = Object.entries(containers).map(([name, count]): Container => ({
    name: name.replace("init:", "").replace("sidecar:", ""),
    image: "i",
    resources: { limits: { "example.com/d": String(count) } },
    ...(name.startsWith("sidecar:") ? { restartPolicy: "Always" } : {}),
  }));
  const isInit = (at: number) => Object.keys(containers)[at]!.includes(":");
  return {
    metadata: { name: uid, namespace: "default", uid },
    spec: {
      nodeName: "n",
      initContainers: all.filter((_, at) => isInit(at)),
      containers: all.filter((_, at) => !isInit(at)),
    },
  } as unknown as BoundPod;
}
