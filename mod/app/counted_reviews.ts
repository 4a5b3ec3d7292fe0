import type { Clock } from "../base/clock.ts";
import { type ApiClient, ApiError, type CallOptions, type KubeObject, type ResourceType } from "../kube/api/types.ts";
import type { AuthMetrics } from "../server/metrics/auth_metrics.ts";

/** Creates reviews by a client, and tells the metrics how each was answered and how long that took. */
export function countedReviews(
  client: Pick<ApiClient, "create">,
  metrics: Pick<AuthMetrics, "reviewed">,
  clock: Clock,
): Pick<ApiClient, "create"> {
  return {
    async create<T extends KubeObject>(resource: ResourceType<T>, object: T, options: CallOptions): Promise<T> {
      const what = resource.plural === "tokenreviews" ? "token" : "access";
      const began = clock.now();
      const told = (code: string) => metrics.reviewed(what, code, (clock.now() - began) / 1000);
      try {
        const answer = await client.create(resource, object, options);
        told("201");
        return answer;
      } catch (thrown) {
        told(thrown instanceof ApiError ? String(thrown.status) : "<error>");
        throw thrown;
      }
    },
  };
}
