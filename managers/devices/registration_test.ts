import assert from "@assert";
import { systemClock } from "../../mod/base/clock.ts";
import { createDenoHost } from "../../mod/base/deno_host.ts";
import { connectGrpc } from "../../mod/base/grpc_client.ts";
import { silent } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import { Registration } from "../../mod/kube/gen/plugins/device_plugin_pb.ts";
import { DeviceRegistration } from "./registration.ts";

Deno.test("device plugins register by a socket; each request is counted, whether or not the plugin can be used", async () => {
  const dir = await Deno.makeTempDir({ prefix: "denolet-devices-" });
  const scope = new Scope("test");
  const asked: string[] = [], connected: string[] = [];
  const registration = new DeviceRegistration({
    dir,
    host: createDenoHost(),
    log: silent,
    onRequest: (resource) => asked.push(resource),
    plugins: {
      connect: (resource, path) => {
        connected.push(`${resource} at ${path}`);
        return Promise.resolve();
      },
      disconnect: () => {},
    },
  });
  scope.spawn("registration", (signal) => registration.run(signal));
  const path = `${dir}/kubelet.sock`;
  while (!await Deno.stat(path).then(() => true, () => false)) await systemClock.sleep(5);
  try {
    using client = await connectGrpc(path, { clock: systemClock, timeoutMs: 60_000 });
    const register = (resourceName: string, version = "v1beta1") =>
      client.unary(Registration.method.register, { version, endpoint: "own.sock", resourceName });
    await register("example.com/d");
    await assert.rejects(register("example.com/d", "v1"), /requested API version "v1" is not supported/);
    await assert.rejects(register("cpu"), /the ResourceName "cpu" is invalid/);
    assert.deepEqual(asked, ["example.com/d", "example.com/d", "cpu"]);
    assert.deepEqual(connected, [`example.com/d at ${dir}/own.sock`]);
    assert.equal(registration.fault, undefined);
  } finally {
    await scope.close();
    await Deno.remove(dir, { recursive: true });
  }
});
