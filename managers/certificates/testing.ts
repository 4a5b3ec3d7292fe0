import "reflect-metadata";
import * as x509 from "@peculiar/x509";
import type { Clock } from "../../mod/base/clock.ts";
import { type ApiClient, ApiError, type WatchEvent } from "../../mod/kube/api/types.ts";
import type { SigningRequest } from "./signing.ts";

const algorithm = { name: "ECDSA", namedCurve: "P-256", hash: "SHA-256" };

/** A certificate authority, for tests. */
export async function testAuthority(clock: Pick<Clock, "now">): Promise<
  { readonly pem: string; sign(request: string, lifeMs: number): Promise<string> }
> {
  const keys = await crypto.subtle.generateKey(algorithm, true, ["sign", "verify"]);
  const notBefore = () => new Date(Math.floor(clock.now() / 1000) * 1000);
  const ca = await x509.X509CertificateGenerator.createSelfSigned({
    name: "CN=test-ca",
    keys,
    signingAlgorithm: algorithm,
    notBefore: notBefore(),
    notAfter: new Date(clock.now() + 1e12),
    extensions: [new x509.BasicConstraintsExtension(true, undefined, true)],
  });
  return {
    pem: `${ca.toString("pem")}\n`,
    /** Signs a request for so many milliseconds. */
    async sign(request: string, lifeMs: number): Promise<string> {
      const asked = new x509.Pkcs10CertificateRequest(request);
      if (!await asked.verify()) throw new Error("the request's signature is wrong");
      const cert = await x509.X509CertificateGenerator.create({
        subject: asked.subjectName,
        issuer: ca.subjectName,
        publicKey: asked.publicKey,
        signingKey: keys.privateKey,
        signingAlgorithm: algorithm,
        notBefore: notBefore(),
        notAfter: new Date(notBefore().getTime() + lifeMs),
        extensions: asked.extensions,
      });
      return `${cert.toString("pem")}\n`;
    },
  };
}

/** The part of an API server that keeps signing requests; a test answers them. */
export class FakeSigning implements Pick<ApiClient, "create" | "get" | "list" | "watch"> {
  readonly requests = new Map<string, SigningRequest>();
  readonly #watchers = new Set<(event: { type: "MODIFIED"; object: SigningRequest }) => void>();
  /** Thrown by the next calls, one each. */
  readonly faults: Error[] = [];
  #names = 0;

  create = <T>(_: unknown, object: T): Promise<T> => {
    const fault = this.faults.shift();
    if (fault) return Promise.reject(fault);
    const request = structuredClone(object) as unknown as SigningRequest;
    const name = request.metadata?.name ?? `${request.metadata?.generateName}${this.#names++}`;
    if (this.requests.has(name)) {
      return Promise.reject(new ApiError("it is there", { status: 409, reason: "AlreadyExists" }));
    }
    const kept = { ...request, metadata: { ...request.metadata, name } };
    this.requests.set(name, kept);
    return Promise.resolve(kept as unknown as T);
  };
  get = <T>(_: unknown, { name }: { name: string }): Promise<T> => {
    const found = this.requests.get(name);
    if (found) return Promise.resolve(found as unknown as T);
    return Promise.reject(new ApiError("not found", { status: 404, reason: "NotFound" }));
  };
  list = <T>(_: unknown, options: { fieldSelector?: string }) => {
    const fault = this.faults.shift();
    if (fault) return Promise.reject(fault);
    const found = this.requests.get(options.fieldSelector?.replace("metadata.name=", "") ?? "");
    return Promise.resolve({ items: (found ? [found] : []) as unknown as T[], resourceVersion: "1" });
  };
  async *watch<T>(_: unknown, o: { signal: AbortSignal; fieldSelector?: string }): AsyncGenerator<WatchEvent<T>> {
    // What was answered between a list and its watch is told, as by a real server.
    const { signal, fieldSelector } = o;
    const wanted = (request: SigningRequest) => `metadata.name=${request.metadata?.name}` === fieldSelector;
    const queue = [...this.requests.values()].filter(wanted).map((object): WatchEvent<SigningRequest> => ({
      type: "MODIFIED",
      object,
    }));
    let wake = () => {};
    const push = (event: { type: "MODIFIED"; object: SigningRequest }) => {
      if (wanted(event.object)) queue.push(event);
      wake();
    };
    this.#watchers.add(push);
    const abort = () => wake();
    signal.addEventListener("abort", abort);
    try {
      for (;;) {
        if (signal.aborted) throw signal.reason;
        const event = queue.shift();
        if (event) yield event as unknown as WatchEvent<T>;
        else await new Promise<void>((resolve) => wake = resolve);
      }
    } finally {
      signal.removeEventListener("abort", abort);
      this.#watchers.delete(push);
    }
  }

  /** The request that was made last. */
  get last(): SigningRequest {
    const last = [...this.requests.values()].at(-1);
    if (!last) throw new Error("nothing was asked for");
    return last;
  }

  /** Answers a request; with `silent` no watch tells of it. */
  answer(request: SigningRequest, status: NonNullable<SigningRequest["status"]>): void {
    const answered = { ...request, status };
    this.requests.set(request.metadata?.name ?? "", answered);
    for (const push of this.#watchers) push({ type: "MODIFIED", object: answered });
  }
}
