import { Buffer } from "node:buffer";
import { create, type DescMethod, fromBinary, type MessageInitShape, toBinary } from "@bufbuild/protobuf";
import {
  type sendUnaryData,
  Server,
  ServerCredentials,
  type ServerUnaryCall,
  type ServerWritableStream,
} from "@grpc/grpc-js";
import { systemClock } from "../../mod/base/clock.ts";
import { connectGrpc } from "../../mod/base/grpc_client.ts";
import { duplexOf } from "../../mod/base/unix_duplex.ts";
import {
  AllocateRequestSchema,
  ContainerAllocateResponseSchema,
  DevicePlugin,
  Registration,
} from "../../mod/kube/gen/plugins/device_plugin_pb.ts";

const same = (bytes: Buffer) => bytes;

/** A device plugin as a program of its own would be: it serves gRPC on a socket beside the agent's. */
export class TestPlugin implements Disposable {
  readonly #listener: Deno.UnixListener;
  readonly #injector: ReturnType<Server["createConnectionInjector"]>;
  readonly #server = new Server();
  readonly #watchers = new Set<ServerWritableStream<Buffer, Buffer>>();
  readonly allocated: string[][] = [];
  started = 0;

  constructor(
    private readonly dir: string,
    private readonly resource: string,
    private devices: readonly { ID: string; health: string }[],
    answer: MessageInitShape<typeof ContainerAllocateResponseSchema>,
  ) {
    const { getDevicePluginOptions, allocate, preStartContainer, listAndWatch } = DevicePlugin.method;
    const unary =
      (method: DescMethod, run: (bytes: Buffer) => Record<string, unknown>) =>
      (call: ServerUnaryCall<Buffer, Buffer>, told: sendUnaryData<Buffer>) =>
        told(null, Buffer.from(toBinary(method.output, create(method.output, run(call.request)))));
    const methods = [getDevicePluginOptions, allocate, preStartContainer, listAndWatch];
    this.#server.addService(
      Object.fromEntries(methods.map((method) => [method.name, {
        path: `/${method.parent.typeName}/${method.name}`,
        requestStream: false,
        responseStream: method === listAndWatch,
        requestSerialize: same,
        requestDeserialize: same,
        responseSerialize: same,
        responseDeserialize: same,
      }])),
      {
        GetDevicePluginOptions: unary(getDevicePluginOptions, () => ({ preStartRequired: true })),
        PreStartContainer: unary(preStartContainer, () => (this.started++, {})),
        Allocate: unary(allocate, (bytes) => {
          const { containerRequests } = fromBinary(AllocateRequestSchema, bytes);
          this.allocated.push(...containerRequests.map(({ devicesIds }) => devicesIds));
          return { containerResponses: containerRequests.map(() => create(ContainerAllocateResponseSchema, answer)) };
        }),
        ListAndWatch: (call: ServerWritableStream<Buffer, Buffer>) => {
          this.#watchers.add(call);
          this.#tell(call);
        },
      },
    );
    this.#injector = this.#server.createConnectionInjector(ServerCredentials.createInsecure());
    this.#listener = Deno.listen({ transport: "unix", path: `${dir}/test-plugin.sock` });
    void this.#accept();
  }

  async #accept(): Promise<void> {
    for await (const conn of this.#listener) this.#injector.injectConnection(duplexOf(conn));
  }

  #tell(call: ServerWritableStream<Buffer, Buffer>): void {
    const { output } = DevicePlugin.method.listAndWatch;
    const devices = this.devices.map(({ ID, health }) => ({ ID, health }));
    call.write(Buffer.from(toBinary(output, create(output, { devices }))));
  }

  /** The health of its devices changes. */
  change(devices: readonly { ID: string; health: string }[]): void {
    this.devices = devices;
    for (const call of this.#watchers) this.#tell(call);
  }

  async register(): Promise<void> {
    using client = await connectGrpc(`${this.dir}/kubelet.sock`, { clock: systemClock, timeoutMs: 10_000 });
    const request = { version: "v1beta1", endpoint: "test-plugin.sock", resourceName: this.resource };
    await client.unary(Registration.method.register, request);
  }

  [Symbol.dispose](): void {
    this.#listener.close();
    this.#injector.destroy();
    this.#server.forceShutdown();
  }
}
