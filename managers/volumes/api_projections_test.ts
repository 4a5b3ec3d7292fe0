import assert from "@assert";
import type { PodSpec, Volume } from "../../mod/kube/types.ts";
import { fileOwner } from "./api_projections.ts";
import { secretPayload } from "./api_volumes.ts";
import { files, mode, podWith, scene, volumes } from "./api_testing.ts";

Deno.test("projected: all sources in one directory, the later over the earlier, each with the volume's mode", async () => {
  const s = scene();
  s.secret("s", { same: "secret", only: "s" });
  s.api.configMaps.set("m", { data: { same: "map" } });
  const pod = podWith([{
    name: "v",
    projected: {
      defaultMode: 0o400,
      sources: [
        { secret: { name: "s" } },
        { configMap: { name: "m", items: [{ key: "same", path: "same", mode: 0o440 }] } },
        { downwardAPI: { items: [{ path: "d/name", fieldRef: { fieldPath: "metadata.name" } }] } },
        { serviceAccountToken: { path: "token", audience: "vault", expirationSeconds: 600 } },
        { secret: { name: "none", optional: true } },
      ],
    },
  }]);
  await s.manager.mountPod(pod, s.signal);
  assert.deepEqual(await files(s.host, `${volumes}/kubernetes.io~projected/v`), {
    same: mode("map", "440"),
    only: mode("s", "400"),
    d: "dir",
    token: mode("token-1", "400"),
  });
  assert.deepEqual(s.api.tokens, [{
    namespace: "ns",
    serviceAccount: "sa",
    audiences: ["vault"],
    expirationSeconds: 600,
    pod: { name: "p", uid: "u1" },
  }]);
});

Deno.test("a token's file: owner and mode", async () => {
  const as = (...users: (number | undefined)[]) =>
    users.map((runAsUser, i) => ({
      name: `c${i}`,
      volumeMounts: [{ name: "t", mountPath: "/t" }],
      ...(runAsUser === undefined ? {} : { securityContext: { runAsUser } }),
    }));
  const cases: [string, Partial<PodSpec>, string][] = [
    ["nobody named", { containers: as(undefined) }, mode("token-1", "644")],
    ["one user", { containers: as(1000, 1000) }, mode("token-1", "600", "1000:0")],
    ["the pod's user", { containers: as(undefined), securityContext: { runAsUser: 7 } }, mode("token-1", "600", "7:0")],
    ["two users", { containers: as(1, 2) }, mode("token-1", "644")],
    ["one of two is not named", { containers: as(1, undefined) }, mode("token-1", "644")],
    ["an init container counts", { initContainers: as(2), containers: as(1) }, mode("token-1", "644")],
    ["fsGroup", { containers: as(undefined), securityContext: { fsGroup: 9 } }, mode("token-1", "640", "0:9")],
    ["both", { containers: as(3), securityContext: { fsGroup: 9 } }, mode("token-1", "640", "3:9")],
  ];
  const volume: Volume = { name: "t", projected: { sources: [{ serviceAccountToken: { path: "token" } }] } };
  for (const [what, spec, expected] of cases) {
    const s = scene();
    await s.manager.mountPod(podWith([volume], spec), s.signal);
    assert.deepEqual(await files(s.host, `${volumes}/kubernetes.io~projected/t`), { token: expected }, what);
  }
  const debug = podWith([volume], { containers: as(1), ephemeralContainers: [{ name: "e" }] });
  assert.equal(fileOwner(debug), 1, "ephemeral containers do not count");
});

Deno.test("trust bundles: a file with the owner and mode of a token's; refused while the gate is off", async () => {
  const s = scene();
  const volume: Volume = {
    name: "t",
    projected: { sources: [{ clusterTrustBundle: { name: "ca", path: "ca.pem" } }] },
  };
  const pod = podWith([volume], { securityContext: { runAsUser: 7 } });
  await assert.rejects(s.manager.mountPod(pod, s.signal), /feature gate ClusterTrustBundleProjection is off/);
  s.api.trust = ({ name }) => `certificates of ${name}`;
  await s.make().mountPod(pod, s.signal);
  assert.deepEqual(await files(s.host, `${volumes}/kubernetes.io~projected/t`), {
    "ca.pem": mode("certificates of ca", "600", "7:0"),
  });
});

Deno.test("pod certificates: key and chain, together or apart; refused while the gate is off", async () => {
  const s = scene();
  const source = { signerName: "s/x", keyType: "ED25519" };
  const volume: Volume = {
    name: "t",
    projected: {
      sources: [
        { podCertificate: { ...source, credentialBundlePath: "both" } },
        { podCertificate: { ...source, keyPath: "key", certificateChainPath: "chain" } },
      ],
    },
  };
  const pod = podWith([volume]);
  await assert.rejects(s.manager.mountPod(pod, s.signal), /feature gate PodCertificateRequest is off/);
  s.api.certificates = { key: "KEY\n", chain: "CHAIN\n" };
  await s.make().mountPod(pod, s.signal);
  assert.deepEqual(await files(s.host, `${volumes}/kubernetes.io~projected/t`), {
    both: mode("KEY\nCHAIN\n", "644"),
    key: mode("KEY\n", "644"),
    chain: mode("CHAIN\n", "644"),
  });
});

Deno.test("a value that is no base64 is told by its key", () => {
  for (const value of ["%%", 5, {}]) {
    const secret = { data: { "tls.key": value as string } };
    assert.throws(() => secretPayload(secret, {}), /the value of key "tls.key" is no base64/);
  }
});
