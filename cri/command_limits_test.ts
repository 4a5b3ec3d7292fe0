import assert from "@assert";
import { grpcCode, RuntimeError } from "./api.ts";
import { assertStartable, assertVariables } from "./command_limits.ts";
import { createRuntimeClient } from "./grpc.ts";

const refused: [name: string, argv: string[], words: RegExp][] = [
  ["a program's name of a megabyte", ["a".repeat(1e6)], /the program's name has 1000000 bytes, and Linux takes 4095/],
  ["bytes count, not characters", ["ä".repeat(2048)], /has 4096 bytes/],
  ["an argument that is too long", ["true", "x", "a".repeat(131_072)], /argument 2 has 131072 bytes/],
];
for (const [name, argv, words] of refused) {
  Deno.test(`a command that Linux cannot start is refused before the runtime hangs on it: ${name}`, async () => {
    const isRefusal = (thrown: unknown) =>
      thrown instanceof RuntimeError && thrown.status === grpcCode.InvalidArgument && words.test(thrown.message);
    assert.throws(() => assertStartable("ExecSync", "c", argv), isRefusal);
    // No runtime listens there: what came to it would be Unavailable.
    using client = createRuntimeClient({ endpoint: "/nonexistent/x.sock", timeoutMs: 5000 });
    const because = { pod: undefined, reason: "Test", message: "" } as never;
    await assert.rejects(client.execSync("c", argv, 1), isRefusal);
    await assert.rejects(client.exec({ containerId: "c", cmd: argv }), isRefusal);
    const [program = "", ...args] = argv;
    const create = (config: object) =>
      client.createContainer({ sandboxId: "s", config, sandboxConfig: {} }, { because });
    await assert.rejects(create({ command: [program], args }), isRefusal);
  });
}

Deno.test("the longest that Linux starts is passed on; arguments of an image's program are no program", () => {
  assertStartable("ExecSync", "c", ["p".repeat(4095), "a".repeat(131_071), ""]);
  assertStartable("ExecSync", "c", []);
});

Deno.test("a variable that Linux cannot give to a program is refused by its name, before the runtime, without its value", async () => {
  const bytes = (count: number) => new Uint8Array(count).fill(118);
  const envs = [{ key: "A", value: bytes(1) }, { key: "B", value: bytes(131_070) }];
  const isRefusal = (thrown: unknown) =>
    thrown instanceof RuntimeError && thrown.status === grpcCode.InvalidArgument && !thrown.message.includes("vv") &&
    /variable B has 131072 bytes with its name, and Linux takes 131071 .* as a volume/.test(thrown.message);
  using client = createRuntimeClient({ endpoint: "/nonexistent/x.sock", timeoutMs: 5000 });
  const because = { pod: undefined, reason: "Test", message: "" } as never;
  const request = { sandboxId: "s", config: { command: ["true"], envs }, sandboxConfig: {} };
  await assert.rejects(client.createContainer(request, { because }), isRefusal);
  assertVariables("CreateContainer", "c", [{ key: "B", value: bytes(131_069) }, { key: "E" }]);
});
