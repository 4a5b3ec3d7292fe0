import type { Clock } from "../../mod/base/clock.ts";
import { isAborted, KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Random } from "../../mod/base/random.ts";
import { apiVersionOf, resources } from "../../mod/kube/api/resources.ts";
import { type ApiClient, ApiError } from "../../mod/kube/api/types.ts";
import type { TokenRequest } from "../../mod/kube/types.ts";
import type { Token, TokenManager, TokenWanted } from "./types.ts";

/** Rules of renewal (features.md section 11): after this part of its life, or this age, a little earlier by chance. */
const renewAfter = 0.8;
const longestAgeMs = 24 * 3600_000;
const jitterSeconds = 10;
/** How often it is looked for what is due or has expired, in milliseconds. */
const lookMs = 60_000;

export interface TokenManagerOptions {
  readonly client: Pick<ApiClient, "post">;
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  /** A token of the pod is due: whoever shows it asks for it again. */
  readonly onDue: (podUid: string) => void;
}

interface Kept extends Token {
  readonly podUid: string;
  readonly renewAt: number;
}

/** Requests, keeps and renews tokens of service accounts; each is bound to its pod. */
export class ServiceAccountTokens implements TokenManager {
  readonly #o: TokenManagerOptions;
  readonly #kept = new Map<string, Kept>();
  /** Pods that asked in vain: they are told to ask again. */
  readonly #waiting = new Set<string>();

  constructor(options: TokenManagerOptions) {
    this.#o = options;
  }

  /** Number of tokens that are kept. */
  get size(): number {
    return this.#kept.size;
  }

  async token(wanted: TokenWanted, signal: AbortSignal): Promise<Token> {
    const { clock, log } = this.#o;
    const key = keyOf(wanted);
    const kept = this.#kept.get(key);
    if (kept && clock.now() <= kept.renewAt) return kept;
    const { uid } = wanted.pod;
    try {
      const fresh = await this.#request(wanted, signal);
      this.#kept.set(key, fresh);
      this.#waiting.delete(uid);
      return fresh;
    } catch (thrown) {
      if (signal.aborted || isAborted(thrown)) throw thrown;
      this.#waiting.add(uid);
      if (!kept) throw because("failed to fetch token", thrown);
      if (clock.now() > kept.expiresAt) throw because(`token ${key} expired and refresh failed`, thrown);
      log.error("the service account's token could not be renewed; the old one serves until it expires", {
        namespace: wanted.namespace,
        serviceAccount: wanted.serviceAccount,
        podUid: uid,
        error: messageOf(thrown),
      });
      return kept;
    }
  }

  async #request(wanted: TokenWanted, signal: AbortSignal): Promise<Kept> {
    const { client, clock, random } = this.#o;
    const { namespace, serviceAccount, audiences, expirationSeconds, pod, serviceAccountUid } = wanted;
    const request: TokenRequest = {
      apiVersion: "authentication.k8s.io/v1",
      kind: "TokenRequest",
      ...(serviceAccountUid === undefined ? {} : { metadata: { uid: serviceAccountUid } }),
      spec: {
        audiences: [...audiences],
        ...(expirationSeconds === undefined ? {} : { expirationSeconds }),
        boundObjectRef: { apiVersion: apiVersionOf(resources.pods), kind: "Pod", name: pod.name, uid: pod.uid },
      },
    };
    const { spec, status } = await client.post<TokenRequest, TokenRequest>(
      resources.serviceAccounts,
      { namespace, name: serviceAccount },
      "token",
      request,
      { signal },
    );
    const expiresAt = Date.parse(status?.expirationTimestamp ?? "");
    if (!status?.token || Number.isNaN(expiresAt)) {
      throw new KubeletError("Network", "the API server's answer holds no token with an expiration time");
    }
    const seconds = spec?.expirationSeconds;
    const jitterMs = Math.floor(random() * jitterSeconds) * 1000;
    // A server that does not say how long the token lives leaves nothing to go by but its end.
    const lifeMs = seconds === undefined ? expiresAt - clock.now() : seconds * 1000;
    const issuedAt = expiresAt - lifeMs;
    const renewAt = Math.min(issuedAt + longestAgeMs, issuedAt + lifeMs * renewAfter) - jitterMs;
    return { token: status.token, expiresAt, renewAt, podUid: pod.uid };
  }

  forget(podUid: string): void {
    this.#waiting.delete(podUid);
    for (const [key, kept] of this.#kept) if (kept.podUid === podUid) this.#kept.delete(key);
  }

  /** Tells of what is due and drops what has expired, until the signal aborts. */
  async run(signal: AbortSignal): Promise<void> {
    const { clock, onDue } = this.#o;
    while (!signal.aborted) {
      await clock.sleep(lookMs, signal);
      const due = new Set(this.#waiting);
      for (const [key, { podUid, renewAt, expiresAt }] of this.#kept) {
        if (clock.now() > renewAt) due.add(podUid);
        if (clock.now() > expiresAt) this.#kept.delete(key);
      }
      for (const uid of due) onDue(uid);
    }
  }
}

/** Names no secret: it may be logged. */
function keyOf(
  { namespace, serviceAccount, audiences, expirationSeconds, pod, serviceAccountUid }: TokenWanted,
): string {
  return JSON.stringify([
    namespace,
    serviceAccount,
    audiences,
    expirationSeconds,
    pod.name,
    pod.uid,
    serviceAccountUid,
  ]);
}

function because(what: string, thrown: unknown): KubeletError {
  const message = `${what}: ${messageOf(thrown)}`;
  if (thrown instanceof ApiError) {
    const { status, reason } = thrown;
    return new ApiError(message, { status, reason }, { cause: thrown });
  }
  return new KubeletError(thrown instanceof KubeletError ? thrown.code : "Network", message, { cause: thrown });
}
