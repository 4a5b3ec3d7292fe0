import { createHash } from "node:crypto";
import type { Clock } from "../../../mod/base/clock.ts";
import { parseDuration } from "../../../mod/base/duration.ts";
import { abortedBy, KubeletError, messageOf } from "../../../mod/base/errors.ts";
import type { Host } from "../../../mod/base/host.ts";
import type { Logger } from "../../../mod/base/log.ts";
import { within } from "../../../mod/base/within.ts";
import type { BoundPod } from "../../../mod/kube/types.ts";
import type { Token, TokenWanted } from "../../tokens/types.ts";
import type { RegistryUser, RegistryUsers } from "./docker_config.ts";
import type { ProviderConfig, TokenAttributes } from "./provider_config.ts";
import { registryMatches } from "./registry_match.ts";
import { RegistryKeyring } from "./registry_keyring.ts";
import type { CredentialSource, Keyring } from "./types.ts";

/** The longest that a plugin may run, and how often expired credentials are dropped; milliseconds. */
const runLimitMs = 60_000;
const purgeMs = 15 * 60_000;

/** Service accounts of pods, and their tokens. */
export interface ServiceAccounts {
  get(namespace: string, name: string, signal: AbortSignal): Promise<{
    readonly uid: string;
    readonly annotations: Readonly<Record<string, string>>;
  }>;
  token(wanted: TokenWanted, signal: AbortSignal): Promise<Token>;
}

export interface ProvidersOptions {
  readonly configs: readonly ProviderConfig[];
  /** Directory of the plugins' programs. */
  readonly binDir: string;
  readonly host: Pick<Host, "run">;
  readonly clock: Clock;
  readonly log: Logger;
  /** None without an API server. */
  readonly accounts?: ServiceAccounts | undefined;
  /** Told of each run of a plugin. */
  readonly onRun?: (plugin: string, seconds: number, failed: boolean) => void;
}

/** Credentials by the node's credential provider plugins (features.md E6, E7); one that fails is logged and gives none. */
export function providersKeyring(options: ProvidersOptions): Keyring {
  const providers = options.configs.map((config) => new Provider(config, options));
  return {
    async lookup({ repository, pod, signal }) {
      const keyring = new RegistryKeyring();
      const given = await Promise.all(providers.map((provider) => provider.provide(repository, pod, signal)));
      for (const { users, source } of given) keyring.add(users, source);
      return keyring.lookup(repository);
    },
  };
}

interface Provided {
  readonly users: RegistryUsers;
  readonly source?: CredentialSource;
}

const nothing: Provided = { users: new Map() };

/** What a plugin is told of a service account, and what tells accounts apart. */
interface Account {
  readonly source: CredentialSource;
  readonly annotations: Readonly<Record<string, string>>;
  readonly token: string;
  readonly cacheKey: string;
}

interface Answer {
  readonly users: RegistryUsers;
  readonly scope: "Image" | "Registry" | "Global";
  /** Milliseconds; undefined when the plugin leaves that to the configuration. */
  readonly cacheMs: number | undefined;
}

class Provider {
  readonly #config: ProviderConfig;
  readonly #o: ProvidersOptions;
  readonly #kept = new Map<string, { users: RegistryUsers; until: number }>();
  /** Requests under way: equal ones share a run of the plugin. */
  readonly #runs = new Map<string, Promise<Answer>>();
  #purgedAt: number;

  constructor(config: ProviderConfig, options: ProvidersOptions) {
    this.#config = config;
    this.#o = options;
    this.#purgedAt = options.clock.now();
  }

  async provide(image: string, pod: BoundPod, signal: AbortSignal): Promise<Provided> {
    if (!this.#config.matchImages.some((pattern) => registryMatches(pattern, image))) return nothing;
    try {
      return await this.#provide(image, pod, signal);
    } catch (thrown) {
      if (signal.aborted) throw thrown;
      const { name, namespace } = pod.metadata;
      this.#o.log.error("a credential provider plugin gives no credentials", {
        provider: this.#config.name,
        image,
        pod: `${namespace}/${name}`,
        error: messageOf(thrown),
      });
      return nothing;
    }
  }

  async #provide(image: string, pod: BoundPod, signal: AbortSignal): Promise<Provided> {
    const { token } = this.#config;
    const account = token ? await this.#account(token, pod, signal) : undefined;
    if (account === "none") return nothing;
    const source = account ? { source: account.source } : {};
    const accountKey = account?.cacheKey ?? "";
    const kept = this.#cached(image, accountKey);
    if (kept) return { users: kept, ...source };
    const answer = await this.#run(image, account, signal);
    if (account && token?.cacheType !== "Token") {
      const echoed = [...answer.users.values()].some(({ password }) => password === account.token);
      if (echoed) throw new KubeletError("Image", "it returned the token as password, which needs cacheType: Token");
    }
    const cacheMs = answer.cacheMs ?? this.#config.defaultCacheMs;
    if (cacheMs > 0) {
      const key = { Image: image, Registry: registryOf(image), Global: globalKey }[answer.scope];
      this.#kept.set(cacheKey(key, accountKey), { users: answer.users, until: this.#o.clock.now() + cacheMs });
    }
    return { users: answer.users, ...source };
  }

  /** The pod's account; `none` when the plugin gives such a pod nothing, undefined when it is asked without one. */
  async #account(
    attributes: TokenAttributes,
    pod: BoundPod,
    signal: AbortSignal,
  ): Promise<Account | "none" | undefined> {
    const { accounts } = this.#o;
    const { namespace, name: podName, uid: podUid } = pod.metadata;
    const name = pod.spec.serviceAccountName ?? "";
    if (name === "") return attributes.required ? "none" : undefined;
    if (!accounts) throw new KubeletError("Image", "it needs tokens of service accounts, which take an API server");
    const { uid, annotations: all } = await accounts.get(namespace, name, signal);
    const has = (key: string) => Object.hasOwn(all, key);
    // A missing annotation is how workloads say that they don't want the plugin.
    if (!attributes.requiredAnnotations.every(has)) return "none";
    const wanted = [...attributes.requiredAnnotations, ...attributes.optionalAnnotations].filter(has).sort();
    const annotations = Object.fromEntries(wanted.map((key) => [key, all[key] ?? ""]));
    const { token } = await accounts.token({
      namespace,
      serviceAccount: name,
      audiences: [attributes.audience],
      pod: { name: podName, uid: podUid },
      serviceAccountUid: uid,
    }, signal);
    const key = [namespace, name, uid, annotations, ...attributes.cacheType === "Token" ? [digest(token)] : []];
    const source = { kind: "serviceAccount", uid, namespace, name } as const;
    return { source, annotations, token, cacheKey: JSON.stringify(key) };
  }

  #cached(image: string, accountKey: string): RegistryUsers | undefined {
    const now = this.#o.clock.now();
    if (now - this.#purgedAt > purgeMs) {
      for (const [key, { until }] of this.#kept) if (now > until) this.#kept.delete(key);
      this.#purgedAt = now;
    }
    for (const key of [image, registryOf(image), globalKey]) {
      const kept = this.#kept.get(cacheKey(key, accountKey));
      if (kept && now <= kept.until) return kept.users;
    }
    return undefined;
  }

  /** Asks the plugin, or shares the answer to the same question. */
  async #run(image: string, account: Account | undefined, signal: AbortSignal): Promise<Answer> {
    const key = JSON.stringify([image, account && [digest(account.token), account.annotations]]);
    let run = this.#runs.get(key);
    if (!run) {
      run = this.#measured(image, account).finally(() => this.#runs.delete(key));
      this.#runs.set(key, run);
    }
    if (signal.aborted) throw abortedBy(signal);
    const left = Promise.withResolvers<never>();
    const onAbort = () => left.reject(abortedBy(signal));
    signal.addEventListener("abort", onAbort, { once: true });
    try {
      return await Promise.race([run, left.promise]);
    } finally {
      signal.removeEventListener("abort", onAbort);
    }
  }

  async #measured(image: string, account: Account | undefined): Promise<Answer> {
    const { clock, onRun } = this.#o;
    const began = clock.now();
    let failed = true;
    try {
      const answer = await this.#execute(image, account);
      failed = false;
      return answer;
    } finally {
      onRun?.(this.#config.name, (clock.now() - began) / 1000, failed);
    }
  }

  async #execute(image: string, account: Account | undefined): Promise<Answer> {
    const { host, clock, binDir } = this.#o;
    const { name, apiVersion, args, env } = this.#config;
    const request = {
      kind: "CredentialProviderRequest",
      apiVersion,
      image,
      ...(account ? { serviceAccountToken: account.token } : {}),
      ...(account && Object.keys(account.annotations).length > 0
        ? { serviceAccountAnnotations: account.annotations }
        : {}),
    };
    const what = `error execing credential provider plugin ${name} for image ${image}`;
    const stdin = `${JSON.stringify(request)}\n`;
    let result;
    try {
      // Left when the time is over: a program of the plugin's own may hold its output open for longer.
      result = await within(
        { clock, ms: runLimitMs, what: `${what}: it did not end` },
        (signal) => host.run(`${binDir}/${name}`, [...args], { stdin, env: { ...env }, signal }),
      );
    } catch (thrown) {
      if (thrown instanceof KubeletError && thrown.code === "Timeout") throw thrown;
      throw new KubeletError("Image", `${what}: ${messageOf(thrown)}`, { cause: thrown });
    }
    if (result.code !== 0) {
      throw new KubeletError("Image", `${what}: exit status ${result.code}: ${result.stderr.trim().slice(0, 2000)}`);
    }
    return readAnswer(result.stdout, apiVersion);
  }
}

const globalKey = "<global>";

function cacheKey(key: string, account: string): string {
  return JSON.stringify([key, account]);
}

function registryOf(image: string): string {
  return image.split("/", 1)[0] ?? "";
}

function digest(text: string): string {
  return createHash("sha256").update(text).digest("hex");
}

type Fields = Readonly<Record<string, unknown>>;

function fieldsOf(value: unknown): Fields | undefined {
  return typeof value === "object" && value !== null && !Array.isArray(value) ? value as Fields : undefined;
}

/** Reads what a plugin has printed. Errors don't show it: it holds credentials. */
function readAnswer(text: string, apiVersion: string): Answer {
  const undecodable = () => new KubeletError("Image", "error decoding credential provider plugin response from stdout");
  let answer: Fields | undefined;
  try {
    answer = fieldsOf(JSON.parse(text));
  } catch {
    throw undecodable();
  }
  if (!answer || answer["kind"] !== "CredentialProviderResponse") throw undecodable();
  if (answer["apiVersion"] !== apiVersion) {
    throw new KubeletError(
      "Image",
      "apiVersion from credential plugin response did not match expected " +
        `apiVersion:${apiVersion}, actual apiVersion:${String(answer["apiVersion"]).slice(0, 100)}`,
    );
  }
  const scope = answer["cacheKeyType"];
  if (scope !== "Image" && scope !== "Registry" && scope !== "Global") {
    const shown = String(scope).slice(0, 100);
    throw new KubeletError("Image", `credential provider plugin did not return a valid cacheKeyType: ${shown}`);
  }
  const users = new Map<string, RegistryUser>();
  for (const [registry, value] of Object.entries(fieldsOf(answer["auth"]) ?? {})) {
    const { username = "", password = "" } = fieldsOf(value) ?? {};
    if (typeof username !== "string" || typeof password !== "string") throw undecodable();
    users.set(registry, { username, password, email: "" });
  }
  const duration = answer["cacheDuration"];
  let cacheMs: number | undefined;
  try {
    if (typeof duration === "string") cacheMs = parseDuration(duration);
    else if (duration !== undefined && duration !== null) throw undecodable();
  } catch (thrown) {
    throw new KubeletError("Image", undecodable().message, { cause: thrown });
  }
  return { users, scope, cacheMs };
}
