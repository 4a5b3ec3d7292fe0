import type { Clock } from "../base/clock.ts";
import { KubeletError, messageOf } from "../base/errors.ts";
import type { Host } from "../base/host.ts";
import type { Journal, JournalRecord } from "../base/journal.ts";
import type { Logger } from "../base/log.ts";
import type { LocalBackend, LocalImages, LocalPod, LocalState } from "../server/local/types.ts";
import type { ServedAgent } from "./agent_types.ts";
import type { LoadedConfig } from "./config/load.ts";
import { getPath, isObject, setPath } from "./config/json.ts";
import { type Trail, trailFile } from "./trail.ts";
import { kubernetesVersion } from "./version.ts";

/** What the local socket tells of the agent: also before there is one, while its start waits for the runtime. */
export class LocalView implements LocalBackend {
  readonly #o: { loaded: Pick<LoadedConfig, "config" | "flags" | "v1beta1">; clock: Clock; pid: number };
  readonly #startedAt: number;
  /** Set once the agent has been put together. */
  agent: { readonly agent: ServedAgent; readonly journal: Journal; readonly nodeName: string } | undefined;

  constructor(options: { loaded: Pick<LoadedConfig, "config" | "flags" | "v1beta1">; clock: Clock; pid: number }) {
    this.#o = options;
    this.#startedAt = options.clock.now();
  }

  pods(): LocalPod[] {
    const agent = this.agent?.agent;
    if (!agent) return [];
    const one = ({ pod, status }: ReturnType<ServedAgent["pods"]>[number]) => ({ pod, ...(status ? { status } : {}) });
    return [...agent.pods().map(one), ...agent.leaving().map((each) => ({ ...one(each), leaving: true as const }))];
  }

  records(uid?: string): readonly JournalRecord[] {
    return this.agent?.journal.records(uid) ?? [];
  }

  /** Values of HTTP headers may be credentials. */
  config(): unknown {
    const shown = structuredClone(this.#o.loaded.v1beta1);
    const headers = getPath(shown, "staticPodURLHeader");
    if (isObject(headers)) {
      setPath(
        shown,
        "staticPodURLHeader",
        Object.fromEntries(Object.keys(headers).map((name) => [name, ["<masked>"]])),
      );
    }
    return shown;
  }

  state(): LocalState {
    const { loaded, pid } = this.#o;
    const base = { version: kubernetesVersion, pid, startedAt: this.#startedAt };
    if (!this.agent) {
      return {
        ...base,
        nodeName: "",
        waitingFor: `the container runtime at ${loaded.config.containerRuntimeEndpoint}`,
        sourcesReady: false,
        manifestProblems: [],
        unhealthy: [],
      };
    }
    const { agent, nodeName } = this.agent;
    return {
      ...base,
      nodeName,
      sourcesReady: agent.sourcesReady,
      manifestProblems: [...agent.problems()].map(([where, problem]) => ({ where, problem })),
      ...agent.runtimeTrouble,
      unhealthy: agent.healthChecks.flatMap(({ name, check }) => {
        const reason = check();
        return reason === undefined ? [] : [{ name, reason }];
      }),
    };
  }

  async images(signal: AbortSignal): Promise<Omit<LocalImages, "left">> {
    if (!this.agent) throw new KubeletError("RuntimeUnavailable", "the agent waits for the container runtime");
    const { verdicts, usagePercent } = await this.agent.agent.imageGC.preview(signal);
    const images = verdicts.map(({ image: { id, names, sizeBytes }, remove, message }) => ({
      id,
      names,
      size: sizeBytes,
      remove,
      message,
    }));
    return { images, usagePercent };
  }

  /** Leaves the trail file. A failure is logged: only `kubelet logs` misses it. */
  async leaveTrail(host: Pick<Host, "write">, log: Logger): Promise<void> {
    const { config, flags } = this.#o.loaded;
    const trail: Trail = { podLogsDir: config.podLogsDir };
    try {
      await host.write(`${flags.rootDir}/${trailFile}`, `${JSON.stringify(trail)}\n`, { mode: 0o600, atomic: true });
    } catch (thrown) {
      log.warn("kubelet logs will not find this agent's logs by itself", { error: messageOf(thrown) });
    }
  }
}
