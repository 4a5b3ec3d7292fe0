import assert from "@assert";
import { FakeClock } from "../base/fake_clock.ts";
import { FakeHost } from "../base/fake_host.ts";
import { readCredentialProviders } from "./credential_providers.ts";

const config = JSON.stringify({
  kind: "CredentialProviderConfig",
  apiVersion: "kubelet.config.k8s.io/v1",
  providers: [{
    name: "ecr",
    matchImages: ["*.io"],
    defaultCacheDuration: "1h",
    apiVersion: "credentialprovider.kubelet.k8s.io/v1",
    tokenAttributes: { serviceAccountTokenAudience: "a", requireServiceAccount: true, cacheType: "Token" },
  }],
});

Deno.test("credential providers: both flags, the programs there; a start with what cannot work is refused", async () => {
  const host = new FakeHost({ clock: new FakeClock() });
  const read = (imageCredentialProviderConfig: string, imageCredentialProviderBinDir: string, on = true) =>
    readCredentialProviders(host, { imageCredentialProviderConfig, imageCredentialProviderBinDir }, {
      enabled: () => on,
    });
  assert.equal(await read("", ""), undefined);
  await assert.rejects(read("/c", ""), /--image-credential-provider-bin-dir is empty/);
  await assert.rejects(read("", "/bin"), /--image-credential-provider-config is empty/);
  host.put("/c", config);
  await assert.rejects(read("/c", "/bin"), /plugin binary directory \/bin did not exist/);
  host.putDir("/bin");
  await assert.rejects(read("/c", "/bin"), /plugin binary executable \/bin\/ecr did not exist/);
  host.put("/bin/ecr", "", 0o644);
  await assert.rejects(read("/c", "/bin"), /make it executable/);
  host.put("/bin/ecr", "", 0o755);
  await assert.rejects(
    read("/c", "/bin", false),
    /needs feature gate KubeletServiceAccountTokenForCredentialProviders/,
  );
  const found = await read("/c", "/bin");
  assert.deepEqual([found?.binDir, found?.configs.map((c) => c.name)], ["/bin", ["ecr"]]);
});
