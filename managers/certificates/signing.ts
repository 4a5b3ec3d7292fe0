import type { Clock } from "../../mod/base/clock.ts";
import { Deadline } from "../../mod/base/deadline.ts";
import { isAborted, KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import {
  type ApiClient,
  isAlreadyExists,
  isApiNotFound,
  type KubeObject,
  type ResourceType,
} from "../../mod/kube/api/types.ts";

/** A request for a certificate, as the API has it (certificates.k8s.io/v1). */
export interface SigningRequest extends KubeObject {
  spec: { request: string; signerName: string; usages: readonly string[]; expirationSeconds?: number };
  status?: {
    certificate?: string;
    conditions?: readonly { type: string; status?: string; reason?: string; message?: string }[];
  };
}

export const signingRequests: ResourceType<SigningRequest> = {
  group: "certificates.k8s.io",
  version: "v1",
  plural: "certificatesigningrequests",
  kind: "CertificateSigningRequest",
  namespaced: false,
};

/** What a certificate is for. */
export interface Signer {
  readonly signerName: string;
  readonly usages: readonly string[];
}

/** Signs the client certificate of a node. */
export const clientSigner: Signer = {
  signerName: "kubernetes.io/kube-apiserver-client-kubelet",
  usages: ["digital signature", "client auth"],
};
/** Signs the serving certificate of a node. */
export const servingSigner: Signer = {
  signerName: "kubernetes.io/kubelet-serving",
  usages: ["digital signature", "server auth"],
};

export interface SignOptions {
  readonly client: Pick<ApiClient, "create" | "get" | "list" | "watch">;
  readonly clock: Clock;
  readonly log: Logger;
  readonly signer: Signer;
  /** The request, PEM. */
  readonly request: string;
  /** The object's name; one of the server's choice when not given. One that is there already is waited for. */
  readonly name?: string;
  /** How long to wait for the certificate, milliseconds. */
  readonly withinMs: number;
  readonly signal: AbortSignal;
}

/** How often the request is read again while no watch tells of it, milliseconds. */
const lookMs = 5_000;

/**
 * Asks the API server to have a certificate signed and waits until it is; PEM. Rejects with Api when it is denied or
 * the server fails, with Timeout when nobody signed it in time.
 */
export async function sign(o: SignOptions): Promise<string> {
  const asked = await submit(o);
  const name = asked.metadata?.name ?? "";
  const { clock, signal, withinMs: ms } = o;
  using deadline = new Deadline({ clock, signal, ms, what: "the certificate request was not signed" });
  try {
    return await issued(o, name, deadline.signal);
  } catch (thrown) {
    if (!deadline.over) throw thrown;
    throw new KubeletError(
      "Timeout",
      `the certificate request ${name} was not signed within ${o.withinMs / 1000} s: approve it ` +
        `(kubectl certificate approve ${name}), and see that a controller signs for ${o.signer.signerName}`,
    );
  }
}

async function submit(o: SignOptions): Promise<SigningRequest> {
  const { signer, request, signal } = o;
  const body: SigningRequest = {
    apiVersion: "certificates.k8s.io/v1",
    kind: "CertificateSigningRequest",
    metadata: o.name === undefined ? { generateName: "csr-" } : { name: o.name },
    spec: { request: btoa(request), signerName: signer.signerName, usages: signer.usages },
  };
  try {
    return await o.client.create(signingRequests, body, { signal });
  } catch (thrown) {
    if (o.name === undefined || !isAlreadyExists(thrown)) throw thrown;
    o.log.info("the certificate request is there already", { name: o.name });
    return await o.client.get(signingRequests, { name: o.name }, { signal });
  }
}

async function issued(o: SignOptions, name: string, signal: AbortSignal): Promise<string> {
  let told = "";
  for (;;) {
    try {
      const fieldSelector = `metadata.name=${name}`;
      const { items, resourceVersion } = await o.client.list(signingRequests, { fieldSelector, signal });
      const [found] = items;
      if (!found) throw gone(name);
      const now = answer(found);
      if (now !== undefined) return now;
      for await (const event of o.client.watch(signingRequests, { fieldSelector, resourceVersion, signal })) {
        if (event.type === "BOOKMARK") continue;
        if (event.type === "DELETED") throw gone(name);
        const later = answer(event.object);
        if (later !== undefined) return later;
      }
    } catch (thrown) {
      if (signal.aborted || isAborted(thrown) || thrown instanceof Refused || isApiNotFound(thrown)) throw thrown;
      const error = messageOf(thrown);
      if (error !== told) o.log.warn("waiting for a certificate: the API server cannot be asked", { name, error });
      told = error;
    }
    await o.clock.sleep(lookMs, signal);
  }
}

/** The request will never be answered. */
class Refused extends KubeletError {
  constructor(message: string) {
    super("Api", message);
  }
}

function gone(name: string): Refused {
  return new Refused(`the certificate request ${name} was deleted before it was signed`);
}

/** The certificate, PEM; undefined while there is none. Throws when it was denied or failed. */
function answer({ metadata, status }: SigningRequest): string | undefined {
  for (const { type, status: value = "True", reason = "", message = "" } of status?.conditions ?? []) {
    if (value !== "True" || (type !== "Denied" && type !== "Failed")) continue;
    const what = type === "Denied" ? "was denied" : "failed";
    throw new Refused(
      `the certificate request ${metadata?.name} ${what}: ${[reason, message].filter(Boolean).join(": ")}`,
    );
  }
  return status?.certificate ? atob(status.certificate) : undefined;
}
