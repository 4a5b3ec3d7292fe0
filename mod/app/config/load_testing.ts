import assert from "@assert";
import { KubeletError } from "../../base/errors.ts";
import { FakeHost } from "../../base/fake_host.ts";
import { RecordingLogger } from "../../base/log.ts";
import { loadConfig } from "./load.ts";

export const head = "apiVersion: kubelet.config.k8s.io/v1beta1\nkind: KubeletConfiguration\n";
/** A configuration that can run without an API server. */
export const standalone = `${head}authentication: {webhook: {enabled: false}}\nauthorization: {mode: AlwaysAllow}\n`;

export interface Scene {
  config?: string;
  dropIns?: Record<string, string>;
  argv?: string[];
  files?: Record<string, string>;
}

export function load(scene: Scene): ReturnType<typeof loadConfig> {
  const files: Record<string, string> = { ...scene.files };
  const argv = [...(scene.argv ?? [])];
  if (scene.config !== undefined) {
    files["/etc/kubelet/config.yaml"] = scene.config;
    argv.unshift("--config=/etc/kubelet/config.yaml");
  }
  if (scene.dropIns !== undefined) {
    for (const [name, text] of Object.entries(scene.dropIns)) files[`/etc/kubelet/d/${name}`] = text;
    argv.unshift("--config-dir=/etc/kubelet/d");
  }
  const log = new RecordingLogger();
  return loadConfig({ argv, host: new FakeHost({ files }), log });
}

export async function refused(scene: Scene, message: RegExp): Promise<void> {
  await assert.rejects(load(scene), (thrown: unknown) => {
    if (!(thrown instanceof KubeletError)) return false;
    assert.equal(thrown.code, "BadConfig");
    assert.match(thrown.message, message);
    return true;
  });
}
