import assert from "@assert";
import { FakeHost } from "../base/fake_host.ts";
import { silent } from "../base/log.ts";
import { loadConfig } from "./config/load.ts";
import { flagValues } from "./node_api.ts";

Deno.test("flagz shows each flag with the value in force, and no credentials", async () => {
  const argv = ["--root-dir=/r", "--max-pods=7", "--node-ip=10.0.0.1", "--manifest-url-header=A:secret"];
  const values = flagValues(await loadConfig({ argv, host: new FakeHost(), log: silent }));
  const shown = Object.fromEntries(
    ["root-dir", "max-pods", "node-ip", "manifest-url-header", "cert-dir", "port"].map((name) => [name, values[name]]),
  );
  assert.deepEqual(shown, {
    "root-dir": "/r",
    "max-pods": "7",
    "node-ip": "10.0.0.1",
    "manifest-url-header": "CLASSIFIED",
    "cert-dir": "/var/lib/kubelet/pki",
    port: "10250",
  });
});
