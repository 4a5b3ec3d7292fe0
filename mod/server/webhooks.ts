import { createHash } from "node:crypto";
import type { Clock } from "../base/clock.ts";
import { isAborted, KubeletError } from "../base/errors.ts";
import { jitter, type Random } from "../base/random.ts";
import { type ApiClient, ApiError, type KubeObject, type ResourceType } from "../kube/api/types.ts";
import type { TokenAuthenticator } from "./authentication.ts";
import type { Attributes, Authorizer } from "./authorization.ts";
import { ExpiringCache } from "./expiring_cache.ts";
import type { User } from "./types.ts";

/** How many answers are kept of each kind. */
const cacheLimit = 8192;
/** Questions longer than this are not kept, so that a client cannot fill the memory with them. */
const longestKey = 10_000;
/** A review that failed for a reason that may pass is asked again, after these milliseconds (and up to a fifth more). */
const retriesMs = [500, 750, 1125, 1687] as const;
const spread = 0.2;
/** For one try. */
const timeoutMs = 10_000;

interface Review<Spec, Status> extends KubeObject {
  spec: Spec;
  status?: Status;
}
interface TokenStatus {
  authenticated?: boolean;
  error?: string;
  user?: { username?: string; uid?: string; groups?: string[]; extra?: Record<string, string[]> };
}
interface AccessStatus {
  allowed?: boolean;
  denied?: boolean;
  evaluationError?: string;
}

const tokenReviews: ResourceType<Review<{ token: string }, TokenStatus>> = {
  group: "authentication.k8s.io",
  version: "v1",
  plural: "tokenreviews",
  kind: "TokenReview",
  namespaced: false,
};
const accessReviews: ResourceType<Review<unknown, AccessStatus>> = {
  group: "authorization.k8s.io",
  version: "v1",
  plural: "subjectaccessreviews",
  kind: "SubjectAccessReview",
  namespaced: false,
};

/** What the webhooks ask with. */
export interface WebhookOptions {
  readonly client: Pick<ApiClient, "create">;
  readonly clock: Clock;
  readonly random: Random;
}

/**
 * Looks bearer tokens up by TokenReview (http.md section 2). Answers, good and bad, are kept for `ttlMs` under a hash of
 * the token; failures are not kept. Rejects when the API server cannot say.
 */
export function tokenWebhook(o: WebhookOptions & { readonly ttlMs: number }): TokenAuthenticator {
  const cache = new ExpiringCache<User | undefined>({ clock: o.clock, limit: cacheLimit });
  return {
    authenticate: (token, signal) => {
      const key = createHash("sha256").update(token).digest("base64");
      return cache.get(key, () => reviewToken(o, token, signal), () => o.ttlMs);
    },
  };
}

async function reviewToken(o: WebhookOptions, token: string, signal: AbortSignal): Promise<User | undefined> {
  const { status } = await review(o, tokenReviews, { token }, signal);
  if (!status) throw new KubeletError("Api", "the API server's TokenReview has no status");
  if (!status.authenticated) {
    if (status.error) throw new KubeletError("Api", `the API server could not review a token: ${status.error}`);
    return undefined;
  }
  const { username = "", uid, groups = [], extra } = status.user ?? {};
  return { name: username, groups, ...(uid ? { uid } : {}), ...(extra ? { extra } : {}) };
}

/** Asks by SubjectAccessReview who may do what (http.md section 2); what is allowed is kept longer than what is not. */
export function accessWebhook(
  o: WebhookOptions & { readonly allowedTtlMs: number; readonly deniedTtlMs: number },
): Authorizer {
  const cache = new ExpiringCache<"allow" | "deny">({ clock: o.clock, limit: cacheLimit });
  return {
    authorize: (attributes, signal) => {
      const spec = accessSpec(attributes);
      const key = JSON.stringify(spec);
      const keep = key.length < longestKey;
      const ttl = (answer: "allow" | "deny") => !keep ? 0 : answer === "allow" ? o.allowedTtlMs : o.deniedTtlMs;
      return cache.get(key, () => reviewAccess(o, spec, signal), ttl);
    },
  };
}

/** The specification of a SubjectAccessReview. */
function accessSpec({ user, verb, apiVersion, resource, subresource, name }: Attributes) {
  return {
    user: user.name,
    groups: user.groups,
    ...(user.uid ? { uid: user.uid } : {}),
    ...(user.extra ? { extra: user.extra } : {}),
    resourceAttributes: { verb, version: apiVersion, resource, subresource, name },
  };
}

async function reviewAccess(o: WebhookOptions, spec: unknown, signal: AbortSignal): Promise<"allow" | "deny"> {
  const { status } = await review(o, accessReviews, spec, signal);
  if (!status) throw new KubeletError("Api", "the API server's SubjectAccessReview has no status");
  if (status.allowed && !status.denied) return "allow";
  if (!status.denied && status.evaluationError) {
    throw new KubeletError("Api", `the API server could not review an access: ${status.evaluationError}`);
  }
  return "deny";
}

async function review<Spec, Status>(
  o: WebhookOptions,
  resource: ResourceType<Review<Spec, Status>>,
  spec: Spec,
  signal: AbortSignal,
): Promise<Review<Spec, Status>> {
  const { group, version, kind } = resource;
  const body = { apiVersion: `${group}/${version}`, kind, spec };
  for (const wait of [...retriesMs, undefined]) {
    try {
      return await o.client.create(resource, body, { signal, timeoutMs });
    } catch (thrown) {
      if (wait === undefined || !mayPass(thrown)) throw thrown;
      await o.clock.sleep(jitter(o.random, wait, spread), signal);
    }
  }
  throw new KubeletError("Internal", "a review ended without an answer");
}

function mayPass(thrown: unknown): boolean {
  if (isAborted(thrown)) return false;
  if (thrown instanceof ApiError) return thrown.status >= 500 || thrown.status === 429;
  return thrown instanceof KubeletError && (thrown.code === "Network" || thrown.code === "Timeout");
}
