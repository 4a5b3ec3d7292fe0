/** The Kubernetes version whose kubelet this agent stands in for; clients and clusters see this one. */
export const kubernetesVersion = "v1.36.3";

/** What `--version` prints. */
export const versionLine = `Kubernetes ${kubernetesVersion}`;

/** What `--version=raw` prints: the fields of the version as `/version` would give them. */
export const rawVersion = JSON.stringify({
  major: "1",
  minor: "36",
  gitVersion: kubernetesVersion,
  platform: `linux/${Deno.build.arch === "aarch64" ? "arm64" : "amd64"}`,
});

/** Who the agent says it is to the API server: the first word is the owner of the fields that it writes. */
export const userAgent = `kubelet/${kubernetesVersion} (linux/${
  Deno.build.arch === "aarch64" ? "arm64" : "amd64"
}) kubernetes/denolet`;
