import assert from "@assert";
import { FakeClock } from "../base/fake_clock.ts";
import { KubeletError } from "../base/errors.ts";
import { resources } from "../kube/api/resources.ts";
import { type ApiClient, ApiError } from "../kube/api/types.ts";
import { countedReviews } from "./counted_reviews.ts";

Deno.test("reviews are counted by what they ask and how they are answered", async () => {
  const clock = new FakeClock(0);
  const told: unknown[] = [];
  let fault: Error | undefined;
  const client: Pick<ApiClient, "create"> = {
    create: (_resource, object) => fault ? Promise.reject(fault) : Promise.resolve(object),
  };
  const counted = countedReviews(client, { reviewed: (...args) => void told.push(args) }, clock);
  const { signal } = new AbortController();
  const review = { metadata: {}, spec: {} };
  await counted.create(resources.tokenReviews, review, { signal });
  await counted.create(resources.subjectAccessReviews, review, { signal });
  fault = new ApiError("no", { status: 403, reason: "Forbidden" });
  await assert.rejects(counted.create(resources.subjectAccessReviews, review, { signal }), fault);
  fault = new KubeletError("Network", "away");
  await assert.rejects(counted.create(resources.tokenReviews, review, { signal }), fault);
  assert.deepEqual(told, [["token", "201", 0], ["access", "201", 0], ["access", "403", 0], ["token", "<error>", 0]]);
});
