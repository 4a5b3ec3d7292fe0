import assert from "@assert";
import { repository } from "../../scripts/lib/files.ts";
import { privateRegistry } from "../cluster/private_registry.ts";
import { box, pod, shell, withObserver } from "./support.ts";

/** A credential provider plugin that keeps what it was asked, and knows the registry's password. */
function plugin(directory: string, address: string, user: string): string {
  const answer = {
    kind: "CredentialProviderResponse",
    apiVersion: "credentialprovider.kubelet.k8s.io/v1",
    cacheKeyType: "Registry",
    cacheDuration: "1h",
    auth: { [address]: JSON.parse(user) },
  };
  return `#!/bin/sh\n[ "$1 $REGION" = "get here" ] || exit 3\ncat > ${directory}/asked\ncat <<'EOF'\n${
    JSON.stringify(answer)
  }\nEOF\n`;
}

Deno.test("pull credentials of the node: its docker configuration, and a credential provider plugin", async (t) => {
  const directory = await Deno.makeTempDir({ prefix: "denolet-credentials-" });
  await using registry = await privateRegistry();
  try {
    // The sources, as scripts/agent.sh starts them, may not run a plugin's program.
    const wrapper = `${directory}/agent`;
    const { execPath } = Deno;
    const flags = "--quiet --no-prompt --allow-all --config";
    await Deno.writeTextFile(
      wrapper,
      `#!/bin/sh\nexec ${execPath()} run ${flags} ${repository}/deno.json ${repository}/main.ts "$@"\n`,
    );
    await Deno.mkdir(`${directory}/bin`);
    await Deno.writeTextFile(`${directory}/bin/provider`, plugin(directory, registry.address, registry.user));
    for (const path of [wrapper, `${directory}/bin/provider`]) await Deno.chmod(path, 0o755);
    await Deno.writeTextFile(
      `${directory}/providers.json`,
      JSON.stringify({
        kind: "CredentialProviderConfig",
        apiVersion: "kubelet.config.k8s.io/v1",
        providers: [{
          name: "provider",
          matchImages: [registry.address],
          defaultCacheDuration: "0s",
          apiVersion: "credentialprovider.kubelet.k8s.io/v1",
          args: ["get"],
          env: [{ name: "REGION", value: "here" }],
        }],
      }),
    );
    const program = Deno.env.get("DENOLET_TEST_PROGRAM") ?? wrapper;
    const node = { name: "t-creds", containerd: "v2", program, start: false } as const;
    const wanted = (name: string, tag: number) =>
      pod(name, {
        containers: [{ ...box("c"), image: registry.image.replace(/:1$/, `:${tag}`), imagePullPolicy: "Always" }],
      });
    await withObserver(node, async (seen) => {
      const { agent } = seen.node;
      await t.step("without credentials the registry refuses", async () => {
        agent.start();
        await agent.healthy();
        await agent.putManifest("refused.json", wanted("refused", 1));
        await seen.event("refused", "Failed", /^Error: ErrImagePull$/);
        assert.equal(registry.granted.length, 0);
        await agent.removeManifest("refused.json");
        await agent.kill();
      });

      await t.step("the node's config.json", async () => {
        await Deno.writeTextFile(`${agent.paths.kubelet}/config.json`, registry.dockerConfig);
        agent.start();
        await agent.healthy();
        await agent.putManifest("config.json", wanted("config", 2));
        await seen.event("config", "Started");
        assert.ok(registry.granted.length > 0);
        await agent.removeManifest("config.json");
        await agent.kill();
        await Deno.remove(`${agent.paths.kubelet}/config.json`);
      });

      await t.step("a plugin is asked, and its credentials are used", async () => {
        agent.start([
          `--image-credential-provider-config=${directory}/providers.json`,
          `--image-credential-provider-bin-dir=${directory}/bin`,
        ]);
        await agent.healthy();
        await agent.putManifest("plugin.json", wanted("plugin", 3));
        await seen.event("plugin", "Started");
        assert.deepEqual(JSON.parse(await Deno.readTextFile(`${directory}/asked`)), {
          kind: "CredentialProviderRequest",
          apiVersion: "credentialprovider.kubelet.k8s.io/v1",
          image: registry.image.replace(/:1$/, ""),
        });
        await agent.removeManifest("plugin.json");
      });

      await t.step("variables of a file that an init container has written", async () => {
        const volumeMounts = [{ name: "data", mountPath: "/data" }];
        await agent.putManifest(
          "file.json",
          pod("file", {
            volumes: [{ name: "data", emptyDir: {} }],
            initContainers: [shell("write", "printf \"WHO='me'\\n\" > /data/env", { volumeMounts })],
            containers: [
              shell("c", 'echo "I am $WHO"; trap "exit 0" TERM; sleep 86400 & wait $!', {
                env: [{ name: "WHO", valueFrom: { fileKeyRef: { volumeName: "data", path: "env", key: "WHO" } } }],
              }),
            ],
          }),
        );
        await seen.event("file", "Started", /./);
        await seen.until("file", "running", ({ phase }) => phase === "Running");
        const directories = await Array.fromAsync(Deno.readDir(agent.paths.logs));
        const own = directories.find(({ name }) => name.startsWith("default_file-"))?.name ?? "";
        assert.match(await Deno.readTextFile(`${agent.paths.logs}/${own}/c/0.log`), /I am me/);
      });
      await agent.drain();
    });
  } finally {
    await Deno.remove(directory, { recursive: true });
  }
});
