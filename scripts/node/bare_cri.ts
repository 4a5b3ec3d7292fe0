import {
  create,
  type DescMethodUnary,
  fromBinary,
  type MessageInitShape,
  type MessageShape,
  toBinary,
} from "@bufbuild/protobuf";
import { Client, credentials } from "@grpc/grpc-js";
import { RuntimeService } from "../../cri/gen/runtime_pb.ts";

/**
 * The fewest lines that make a unary CRI call. The scripts and the harness look at a runtime through this and not
 * through the agent's own client, so that a fault of that client cannot hide itself.
 */
export class BareCri implements Disposable {
  readonly #client: Client;

  /** `socket`: path of the runtime's unix socket. */
  constructor(socket: string) {
    this.#client = new Client(`unix://${socket}`, credentials.createInsecure(), {
      "grpc.max_receive_message_length": 16 << 20,
      "grpc.initial_reconnect_backoff_ms": 100,
      "grpc.max_reconnect_backoff_ms": 500,
    });
  }

  /** Makes a call; rejects with gRPC's ServiceError. The limit is in milliseconds, 10 s when not given. */
  call<M extends DescMethodUnary>(
    method: M,
    request: MessageInitShape<M["input"]>,
    timeoutMs = 10_000,
  ): Promise<MessageShape<M["output"]>> {
    return new Promise((resolve, reject) => {
      this.#client.makeUnaryRequest(
        `/${method.parent.typeName}/${method.name}`,
        (message: MessageShape<M["input"]>) => Buffer.from(toBinary(method.input, message)),
        (data: Uint8Array) => fromBinary(method.output, data) as MessageShape<M["output"]>,
        create(method.input, request) as MessageShape<M["input"]>,
        { deadline: Date.now() + timeoutMs },
        (error, response) => {
          if (error) reject(error);
          else if (response === undefined) reject(new Error(`${method.name}: empty answer`));
          else resolve(response);
        },
      );
    });
  }

  /** Whether the runtime and its network say that they are ready. */
  async ready(): Promise<boolean> {
    const { status } = await this.call(RuntimeService.method.status, {}, 2_000);
    // containerd 2 has conditions of its own besides, such as that it saw a deprecated setting
    const holds = (type: string) => status?.conditions.some((one) => one.type === type && one.status) ?? false;
    return holds("RuntimeReady") && holds("NetworkReady");
  }

  [Symbol.dispose](): void {
    this.#client.close();
  }
}
