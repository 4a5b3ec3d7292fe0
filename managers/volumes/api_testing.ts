import { KubeletError } from "../../mod/base/errors.ts";
import { FakeClock } from "../../mod/base/fake_clock.ts";
import { FakeHost } from "../../mod/base/fake_host.ts";
import { RecordingLogger } from "../../mod/base/log.ts";
import { Scope } from "../../mod/base/scope.ts";
import { ApiError } from "../../mod/kube/api/types.ts";
import { RecordingEvents } from "../../mod/kube/events.ts";
import type {
  BoundPod,
  ClusterTrustBundleProjection,
  ConfigMap,
  PodSpec,
  Secret,
  Volume,
} from "../../mod/kube/types.ts";
import type { CredentialBundle } from "../pod_certificates/types.ts";
import type { TokenWanted } from "../tokens/types.ts";
import { apiProjections } from "./api_projections.ts";
import { configMapPlugin, secretPlugin } from "./api_volumes.ts";
import { createVolumeManager } from "./manager.ts";
import { standardPlugins } from "./standard.ts";

const root = "/var/lib/kubelet";
const volumes = `${root}/pods/u1/volumes`;

type Mode = "up" | "down" | "forbidden" | "unauthorized";

function scene() {
  const clock = new FakeClock();
  const host = new FakeHost({ clock });
  host.putDir(root, 0o750);
  const log = new RecordingLogger();
  const events = new RecordingEvents();
  const api = {
    mode: "up" as Mode,
    secrets: new Map<string, Secret>(),
    configMaps: new Map<string, ConfigMap>(),
    tokens: [] as TokenWanted[],
    certificates: undefined as CredentialBundle | undefined,
    trust: undefined as ((projection: ClusterTrustBundleProjection) => string) | undefined,
  };
  const answer = <T>(word: string, name: string, found: T | undefined): Promise<T> => {
    if (api.mode === "down") {
      return Promise.reject(new KubeletError("Network", `failed to sync ${word} cache: refused`));
    }
    if (api.mode === "forbidden") {
      return Promise.reject(new ApiError(`${word} "${name}" is forbidden`, { status: 403, reason: "Forbidden" }));
    }
    if (api.mode === "unauthorized") {
      return Promise.reject(new ApiError("Unauthorized", { status: 401, reason: "Unauthorized" }));
    }
    const missing = new ApiError(`${word} "${name}" not found`, { status: 404, reason: "NotFound" });
    return found === undefined ? Promise.reject(missing) : Promise.resolve(found);
  };
  const objects = {
    secret: (_: string, name: string) => answer("secret", name, api.secrets.get(name)),
    configMap: (_: string, name: string) => answer("configmap", name, api.configMaps.get(name)),
  };
  const tokens = {
    token: (wanted: TokenWanted) => {
      api.tokens.push(wanted);
      return answer("token", "t", { token: `token-${api.tokens.length}`, expiresAt: 0 });
    },
    forget: () => {},
  };
  const memory = { allocatableMemory: () => 1n << 30n };
  const make = () =>
    createVolumeManager({
      host,
      clock,
      log,
      events,
      scope: new Scope("volumes"),
      rootDir: root,
      plugins: [
        ...standardPlugins({
          memory,
          allocatable: () => ({}),
          sources: apiProjections({
            objects,
            tokens,
            trust: api.trust && ((p) => api.trust?.(p) ?? ""),
            certificates: api.certificates && (() => api.certificates ?? { key: "", chain: "" }),
          }),
        }),
        secretPlugin(objects, memory),
        configMapPlugin(objects),
      ],
    });
  const secret = (name: string, data: Record<string, string>) =>
    void api.secrets.set(name, { data: Object.fromEntries(Object.entries(data).map(([k, v]) => [k, btoa(v)])) });
  const failures = () => events.events.splice(0).map(({ reason, message }) => `${reason} ${message}`);
  return { clock, host, log, api, make, manager: make(), secret, failures, signal: new AbortController().signal };
}

function podWith(list: Volume[], more: Partial<PodSpec> = {}): BoundPod {
  return {
    metadata: { name: "p", namespace: "ns", uid: "u1", labels: { app: "x" } },
    spec: {
      containers: [{ name: "c", volumeMounts: list.map((v) => ({ name: v.name, mountPath: `/${v.name}` })) }],
      volumes: list,
      serviceAccountName: "sa",
      ...more,
    },
  };
}

async function files(host: FakeHost, dir: string): Promise<Record<string, string>> {
  const shown: Record<string, string> = {};
  for (const line of host.tree(dir)) {
    const name = / -> \.\.data\//.test(line) ? line.split(" -> ")[0] ?? "" : "";
    if (name === "") continue;
    const path = `${dir}/${name}`;
    const info = await host.stat(path);
    shown[name] = info?.kind === "file" ? `${host.text(path)} ${info.mode.toString(8)} ${info.uid}:${info.gid}` : "dir";
  }
  return shown;
}

const mode = (text: string, bits: string, owner = "0:0") => `${text} ${bits} ${owner}`;

export { files, mode, podWith, scene, volumes };
