import type { Clock } from "../../mod/base/clock.ts";
import { KubeletError, messageOf } from "../../mod/base/errors.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Random } from "../../mod/base/random.ts";
import type { Scope } from "../../mod/base/scope.ts";
import type { ApiClient, Change, Informer } from "../../mod/kube/api/types.ts";
import type { EventSink } from "../../mod/kube/events.ts";
import type { BoundPod, PodCertificateProjection } from "../../mod/kube/types.ts";
import { makeKeyAndProof } from "./key.ts";
import { type CredentialBundle, type PodCertificateRequest, podCertificateRequests } from "./types.ts";

/** How often every certificate is looked at, whatever the server tells; milliseconds, stretched by up to as much. */
const lookMs = 60_000;
/** A request that was made so long ago and is not to be seen has been deleted, in milliseconds. */
const abandonMs = 600_000;
/** Renewals are spread over so long, and are overdue after so long; milliseconds. */
const spreadMs = 300_000;
const overdueMs = 600_000;

export interface PodCertificatesOptions {
  readonly client: Pick<ApiClient, "create">;
  /** Makes the watch of this node's requests, and runs it; called once, when somebody needs it. */
  readonly watch: (onChange: (change: Change<PodCertificateRequest>) => void) => Informer<PodCertificateRequest>;
  /** The UID of a service account. */
  readonly accountUid: (namespace: string, name: string, signal: AbortSignal) => Promise<string>;
  /** This node; the UID is not known before the node was read. */
  readonly node: () => { readonly name: string; readonly uid: string | undefined };
  readonly clock: Clock;
  readonly random: Random;
  readonly log: Logger;
  readonly events: EventSink;
  readonly scope: Scope;
  /** The pod's certificate has come, or has been renewed. */
  readonly onChange: (podUid: string) => void;
}

interface Issued extends CredentialBundle {
  readonly renewAt: number;
  readonly notAfter: number;
  toldOverdue: boolean;
  toldExpired: boolean;
}

/** So many certificates of a signer are in a state, in the words of the metric. */
export interface PodCertificateState {
  readonly signer: string;
  readonly state: "not_yet_issued" | "denied" | "failed" | "fresh" | "overdue_for_refresh" | "expired";
  readonly count: number;
}

interface Entry {
  readonly pod: BoundPod;
  readonly source: PodCertificateProjection;
  issued: Issued | undefined;
  /** The request that is waited for. */
  pending: { readonly name: string; readonly key: string; readonly abandonAt: number } | undefined;
  /** Why there will never be a certificate. */
  ended: { readonly how: "denied" | "failed"; readonly message: string } | undefined;
  busy: boolean;
}

/**
 * Gets and renews the certificates that pods' projected volumes ask for (features.md H12). Nothing is kept across a
 * restart: an agent that starts asks for new ones.
 */
export class PodCertificates {
  readonly #o: PodCertificatesOptions;
  readonly #entries = new Map<string, Entry>();
  #informer: Informer<PodCertificateRequest> | undefined;

  constructor(options: PodCertificatesOptions) {
    this.#o = options;
  }

  /** Number of certificates that are looked after. */
  get size(): number {
    return this.#entries.size;
  }

  /** How many certificates are in which state, by their signers; for the metrics. */
  states(): PodCertificateState[] {
    const now = this.#o.clock.now();
    const counted = new Map<string, PodCertificateState>();
    for (const entry of this.#entries.values()) {
      const signer = entry.source.signerName ?? "", state = stateOf(entry, now);
      const key = JSON.stringify([signer, state]);
      counted.set(key, { signer, state, count: (counted.get(key)?.count ?? 0) + 1 });
    }
    return [...counted.values()];
  }

  /** Key and certificates of a part of a pod's volume. Throws until they have been issued. */
  bundle(pod: BoundPod, volume: string, source: PodCertificateProjection): CredentialBundle {
    this.#watch();
    const key = `${pod.metadata.uid}/${volume}/${JSON.stringify(source)}`;
    let entry = this.#entries.get(key);
    if (!entry) {
      entry = { pod, source, issued: undefined, pending: undefined, ended: undefined, busy: false };
      this.#entries.set(key, entry);
      this.#look(entry);
    }
    if (entry.ended) throw new KubeletError("Volume", entry.ended.message);
    if (!entry.issued) throw new KubeletError("Volume", "credential bundle is not issued yet");
    return entry.issued;
  }

  /** The pod has gone. */
  forget(podUid: string): void {
    for (const [key, { pod }] of this.#entries) if (pod.metadata.uid === podUid) this.#entries.delete(key);
  }

  #watch(): Informer<PodCertificateRequest> {
    if (this.#informer) return this.#informer;
    const { scope, clock, random } = this.#o;
    this.#informer = this.#o.watch(({ object }) => {
      for (const entry of this.#entries.values()) {
        if (entry.pod.metadata.uid === object.spec?.podUID) this.#look(entry);
      }
    });
    scope.spawn("pod certificates", async (signal) => {
      while (!signal.aborted) {
        await clock.sleep(lookMs * (1 + random()), signal);
        for (const entry of this.#entries.values()) this.#look(entry);
      }
    });
    return this.#informer;
  }

  /** Brings one certificate on; what fails is tried again with the next look. */
  #look(entry: Entry): void {
    if (entry.busy) return;
    entry.busy = true;
    this.#o.scope.spawn("pod certificate", async (signal) => {
      try {
        await this.#bringOn(entry, signal);
      } catch (thrown) {
        if (signal.aborted) throw thrown;
        const { name, namespace } = entry.pod.metadata;
        const fields = { pod: `${namespace}/${name}`, signer: entry.source.signerName, error: messageOf(thrown) };
        this.#o.log.error("the pod's certificate cannot be asked for", fields);
      } finally {
        entry.busy = false;
      }
    });
  }

  async #bringOn(entry: Entry, signal: AbortSignal): Promise<void> {
    const now = this.#o.clock.now();
    if (entry.ended) return;
    this.#tellLate(entry, now);
    if (entry.pending) this.#read(entry, entry.pending, now);
    else if (!entry.issued || now >= entry.issued.renewAt) await this.#request(entry, signal);
  }

  /** Tells of a certificate that is late to be renewed, or too late, once each. */
  #tellLate({ pod, issued }: Entry, now: number): void {
    const warn = (reason: string, message: string) => this.#o.events.pod({ pod, type: "Warning", reason, message });
    if (!issued) return;
    if (now > issued.renewAt + overdueMs && !issued.toldOverdue) {
      issued.toldOverdue = true;
      warn("CertificateOverdueForRefresh", "PodCertificate refresh overdue");
    }
    if (now > issued.notAfter && !issued.toldExpired) {
      issued.toldExpired = true;
      warn("CertificateExpired", "PodCertificate expired");
    }
  }

  async #request(entry: Entry, signal: AbortSignal): Promise<void> {
    const { client, clock, random, accountUid, node } = this.#o;
    const { pod, source } = entry;
    const { namespace, name, uid } = pod.metadata;
    const account = pod.spec.serviceAccountName ?? "";
    const serviceAccountUID = await accountUid(namespace, account, signal);
    const { name: nodeName, uid: nodeUID } = node();
    if (nodeUID === undefined) throw new KubeletError("Network", "the node's object has not been read yet");
    const { keyPem, request } = await makeKeyAndProof(source.keyType ?? "");
    const made = await client.create<PodCertificateRequest>(podCertificateRequests, {
      metadata: {
        namespace,
        generateName: "req-",
        ownerReferences: [{ apiVersion: "v1", kind: "Pod", name, uid }],
      },
      spec: {
        signerName: source.signerName ?? "",
        podName: name,
        podUID: uid,
        serviceAccountName: account,
        serviceAccountUID,
        nodeName,
        nodeUID,
        ...(source.maxExpirationSeconds === undefined ? {} : { maxExpirationSeconds: source.maxExpirationSeconds }),
        stubPKCS10Request: request.toBase64(),
        ...(source.userAnnotations ? { unverifiedUserAnnotations: source.userAnnotations } : {}),
      },
    }, { signal });
    const abandonAt = clock.now() + abandonMs + random() * spreadMs;
    entry.pending = { name: made.metadata?.name ?? "", key: keyPem, abandonAt };
    // The answer may have come by the watch before that of the request itself.
    this.#read(entry, entry.pending, clock.now());
  }

  /** Takes over what the server says of the request that is waited for. */
  #read(entry: Entry, pending: NonNullable<Entry["pending"]>, now: number): void {
    const { pod } = entry;
    const { namespace, uid } = pod.metadata;
    const request = this.#watch().get({ namespace, name: pending.name });
    if (!request) {
      if (now > pending.abandonAt) entry.pending = undefined;
      return;
    }
    const place = `${namespace}/${pending.name}`;
    for (const { type, reason, message } of request.status?.conditions ?? []) {
      if (type === "Denied" || type === "Failed") {
        const word = type === "Denied" ? "denied" : "failed";
        const facts = `reason=${JSON.stringify(reason)}`;
        const text = JSON.stringify(message);
        entry.ended = {
          how: word,
          message: `PodCertificateRequest was permanently ${word}: ${facts} message=${text}`,
        };
        const told = `PodCertificateRequest ${place} ${word === "denied" ? "was denied" : "failed"}`;
        this.#o.events.pod({ pod, type: "Warning", reason: type, message: `${told}, ${facts}, message=${text}` });
      } else if (type === "Issued") {
        entry.issued = this.#issued(request, pending.key);
      } else continue;
      entry.pending = undefined;
      this.#o.onChange(uid);
      return;
    }
  }

  #issued({ status }: PodCertificateRequest, key: string): Issued {
    const at = (text: string | undefined) => {
      const time = Date.parse(text ?? "");
      return Number.isNaN(time) ? this.#o.clock.now() : time;
    };
    return {
      key,
      chain: cleanChain(status?.certificateChain ?? ""),
      renewAt: at(status?.beginRefreshAt) + this.#o.random() * spreadMs,
      notAfter: at(status?.notAfter),
      toldOverdue: false,
      toldExpired: false,
    };
  }
}

function stateOf({ ended, issued }: Entry, now: number): PodCertificateState["state"] {
  if (ended) return ended.how;
  if (!issued) return "not_yet_issued";
  if (now > issued.notAfter) return "expired";
  return now > issued.renewAt + overdueMs ? "overdue_for_refresh" : "fresh";
}

/** The certificates alone, in their order, without what stands between them. */
function cleanChain(text: string): string {
  const blocks = text.matchAll(/-----BEGIN CERTIFICATE-----([^-]*)-----END CERTIFICATE-----/g);
  return [...blocks].map(([, body = ""]) => {
    const lines = body.replace(/\s/g, "").match(/.{1,64}/g) ?? [];
    return `-----BEGIN CERTIFICATE-----\n${lines.join("\n")}\n-----END CERTIFICATE-----\n`;
  }).join("");
}
