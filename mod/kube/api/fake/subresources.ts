import type { Clock } from "../../../base/clock.ts";

import type { Pod, TokenRequest } from "../../types.ts";
import { resources } from "../resources.ts";
import type { ObjectName, ResourceType } from "../types.ts";
import { failures } from "./failures.ts";
import type { FakeApi } from "./fake_api.ts";

/** Carries out a post to a subresource: tokens of service accounts, evictions and bindings of pods. */
export function postSubresource(
  api: FakeApi,
  clock: Clock,
  request: { resource: ResourceType; name: ObjectName; subresource: string; body: unknown },
): unknown {
  const { resource, name, subresource, body } = request;
  switch (`${resource.plural}/${subresource}`) {
    case "serviceaccounts/token":
      return token(api, clock, name, body as TokenRequest);
    case "pods/eviction":
      api.server.delete(resource, name, (body as { deleteOptions?: object }).deleteOptions ?? {});
      return { kind: "Status", apiVersion: "v1", status: "Success", code: 201 };
    case "pods/binding":
      api.server.bind(name, (body as { target: { name: string } }).target.name);
      return { kind: "Status", apiVersion: "v1", status: "Success", code: 201 };
    default:
      throw failures.notFound(resource, `${name.name}/${subresource}`);
  }
}

/** The shortest and the usual life of a token, in seconds. */
const shortest = 600;
const usual = 3600;

function token(api: FakeApi, clock: Clock, account: ObjectName, request: TokenRequest): TokenRequest {
  api.server.get(resources.serviceAccounts, account);
  const { spec } = request;
  const bound = spec.boundObjectRef;
  if (bound?.kind === "Pod" && bound.name) {
    const pod: Pod = api.server.get(resources.pods, { name: bound.name, namespace: account.namespace ?? "" });
    if (bound.uid && bound.uid !== pod.metadata?.uid) {
      const why = `the UID in the bound object reference (${bound.uid}) does not match the UID in record`;
      throw failures.conflict(resources.pods, bound.name, why);
    }
  }
  const seconds = spec.expirationSeconds ?? usual;
  if (seconds < shortest) {
    throw failures.invalid(
      resources.serviceAccounts,
      account.name,
      `spec.expirationSeconds: Invalid value: ${seconds}: may not specify a duration less than 10 minutes`,
    );
  }
  const expires = clock.now() + seconds * 1000;
  const made = `token-${api.tokens.length + 1}-of-${account.namespace}-${account.name}`;
  api.tokens.push({ account, token: made, expires });
  return {
    ...request,
    spec: { ...spec, expirationSeconds: seconds },
    status: { token: made, expirationTimestamp: new Date(expires).toISOString().replace(/\.\d+Z$/, "Z") },
  };
}
