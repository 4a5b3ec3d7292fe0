import assert from "@assert";
import { create, type DescMethod } from "@bufbuild/protobuf";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { FakeHost } from "../../mod/base/fake_host.ts";
import type { GrpcClient } from "../../mod/base/grpc_client.ts";
import { GrpcError } from "../../mod/base/grpc_error.ts";
import { silent } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import type { PluginHandler, PluginType } from "./types.ts";
import { PluginWatcher } from "./watcher.ts";

const dir = "/root/plugins_registry";

async function setUp() {
  const host = new FakeHost(), clock = new FakeClock(), scope = new Scope("test");
  const did: string[] = [], told: string[] = [];
  const infos = new Map<string, { type: string; name: string; endpoint?: string; supportedVersions?: string[] }>();
  const handler: PluginHandler = {
    validate: ({ versions }) => {
      if (!versions.includes("v1")) throw new Error("too old");
    },
    register: ({ name, endpoint }) => {
      if (name === "broken") return Promise.reject(new Error("it is broken"));
      did.push(`register ${name} at ${endpoint}`);
      return Promise.resolve();
    },
    deregister: ({ name }) => void did.push(`deregister ${name}`),
  };
  const connect = (path: string): Promise<GrpcClient> => {
    const info = infos.get(path);
    if (!info) return Promise.reject(new GrpcError("Unavailable", "nobody there"));
    return Promise.resolve({
      // deno-lint-ignore require-await -- as a call over the wire rejects
      async unary(method: DescMethod, request: { pluginRegistered: boolean; error: string }) {
        if (method.name === "GetInfo") return create(method.output, { supportedVersions: ["v1"], ...info });
        told.push(request.pluginRegistered ? "registered" : request.error);
        return create(method.output);
      },
      [Symbol.dispose]: () => {},
    } as unknown as GrpcClient);
  };
  const handlers = new Map<PluginType, PluginHandler>([["CSIPlugin", handler]]);
  const watcher = new PluginWatcher({ dir, host, connect, handlers, clock, log: silent });
  scope.spawn("watcher", (signal) => watcher.run(signal));
  await clock.advance(5000);
  const socket = async (
    name: string,
    info?: { type: string; name: string; endpoint?: string; supportedVersions?: string[] },
  ) => {
    if (info) infos.set(`${dir}/${name}`, info);
    host.putNode(`${dir}/${name}`, "socket");
    await clock.advance(2000);
  };
  return { host, clock, scope, did, told, infos, watcher, socket };
}

Deno.test("plugins: a socket that comes registers its plugin, one that goes lets it go; also in directories below", async () => {
  const t = await setUp();
  await t.socket("a.sock", { type: "CSIPlugin", name: "a", endpoint: "/csi/a.sock" });
  await t.socket("below/b.sock", { type: "CSIPlugin", name: "b" });
  await t.socket(".hidden.sock", { type: "CSIPlugin", name: "hidden" });
  await t.host.write(`${dir}/file`, "");
  assert.deepEqual(t.did, ["register a at /csi/a.sock", `register b at ${dir}/below/b.sock`]);
  assert.deepEqual(t.told, ["registered", "registered"]);
  assert.deepEqual(t.watcher.registered, [`${dir}/a.sock`, `${dir}/below/b.sock`]);
  await t.host.remove(`${dir}/a.sock`);
  await t.clock.advance(3000);
  assert.deepEqual(t.did.slice(2), ["deregister a"]);
  assert.deepEqual(t.watcher.sockets, [`${dir}/below/b.sock`]);
  assert.deepEqual(t.watcher.registered, [`${dir}/below/b.sock`]);
  await t.scope.close();
  assert.equal(t.did.length, 3, "an agent that ends lets no plugin go");
});

Deno.test("plugins: those that can't be used are told why, and tried again", async () => {
  const t = await setUp();
  await t.socket("x", { type: "Strange", name: "x" });
  assert.deepEqual([t.watcher.sockets, t.watcher.registered], [[`${dir}/x`], []]);
  await t.socket("old", { type: "CSIPlugin", name: "old", supportedVersions: ["v0"] });
  await t.socket("broken", { type: "CSIPlugin", name: "broken" });
  await t.socket("late");
  assert.deepEqual(
    new Set(t.told),
    new Set([
      `RegisterPlugin error -- no handler registered for plugin type: Strange at socket ${dir}/x`,
      "RegisterPlugin error -- plugin validation failed with err: too old",
      "RegisterPlugin error -- plugin registration failed with err: it is broken",
    ]),
  );
  assert.deepEqual(t.did, []);
  t.infos.set(`${dir}/late`, { type: "CSIPlugin", name: "late" });
  await t.clock.advance(122_000);
  assert.deepEqual(t.did, [`register late at ${dir}/late`]);
  await t.scope.close();
});

Deno.test("plugins: a name that another socket has taken over stays that one's", async () => {
  const t = await setUp();
  await t.socket("one", { type: "CSIPlugin", name: "a" });
  await t.socket("two", { type: "CSIPlugin", name: "a" });
  await t.host.remove(`${dir}/one`);
  await t.clock.advance(3000);
  assert.deepEqual(t.did, [`register a at ${dir}/one`, `register a at ${dir}/two`]);
  await t.host.remove(`${dir}/two`);
  await t.clock.advance(3000);
  assert.deepEqual(t.did.slice(2), ["deregister a"]);
  await t.scope.close();
});
