import { createHash } from "node:crypto";
import type { Image } from "../../../cri/gen/runtime_pb.ts";
import type { Clock } from "../../../mod/base/clock.ts";
import { asError, isAborted, messageOf } from "../../../mod/base/errors.ts";
import type { Host } from "../../../mod/base/host.ts";
import type { Logger } from "../../../mod/base/log.ts";
import {
  allows,
  type Credentials,
  credentialsOf,
  merged,
  type PullRecord,
  readRecord,
  writtenRecord,
} from "./pull_record.ts";
import type { PullCredential } from "./types.ts";

/** Whether a pod must prove that it may use an image which is here (imagePullCredentialsVerificationPolicy). */
export type VerificationRule = (image: { readonly bareName: string; readonly pulledHere: boolean }) => boolean;

/** The rule of a policy's name (features.md section 13). @param allowlist names, or prefixes that end in `/*` */
export function verificationRule(policy: string, allowlist: readonly string[]): VerificationRule {
  switch (policy) {
    case "NeverVerify":
      return () => false;
    case "AlwaysVerify":
      return () => true;
    case "NeverVerifyAllowlistedImages":
      return ({ bareName }) =>
        !allowlist.some((name) => name.endsWith("/*") ? bareName.startsWith(name.slice(0, -1)) : name === bareName);
    default:
      return ({ pulledHere }) => pulledHere;
  }
}

export interface PullRecordsOptions {
  readonly host: Pick<Host, "readDir" | "readText" | "write" | "remove" | "mkdir">;
  readonly clock: Pick<Clock, "now">;
  readonly log: Logger;
  /** `<root>/image_manager`. */
  readonly dir: string;
  readonly rule: VerificationRule;
  readonly listImages: (signal: AbortSignal) => Promise<readonly Image[]>;
  /** Told what each look at an image that is here has come to. */
  readonly onChecked?: (result: CheckResult) => void;
  /** Told how many records there are, once they were read and at each change. */
  readonly onCounts?: (counts: RecordCounts) => void;
  /** Records that the reference would keep in memory on this node; here all are kept. */
  readonly capacity?: { readonly intents: number; readonly records: number };
}

/** Records of pulls that have begun and of images that were pulled, and the room that the reference has for each. */
export interface RecordCounts {
  readonly intents: number;
  readonly records: number;
  readonly capacity: { readonly intents: number; readonly records: number };
}

/** What a look at an image that is here has come to, in the words of its metric. */
export type CheckResult = "credentialPolicyAllowed" | "credentialRecordFound" | "mustAuthenticate" | "error";

const fileOf = (text: string) => `sha256-${createHash("sha256").update(text).digest("hex")}`;
const version = { apiVersion: "kubelet.config.k8s.io/v1beta1" } as const;

/**
 * Remembers which images were pulled, and with whose credentials, so that a pod which has none of them does not use what
 * another was given (features.md E8). Names of images are as pods write them; `ref` is the runtime's own.
 */
export class PullRecords {
  readonly #o: PullRecordsOptions;
  readonly #records = new Map<string, PullRecord>();
  /** Images that are being pulled, or were when an agent was killed, and how many pulls go on. */
  readonly #intents = new Map<string, number>();
  #loaded: Promise<void> | undefined;
  #turn: Promise<unknown> = Promise.resolve();

  constructor(options: PullRecordsOptions) {
    this.#o = options;
  }

  /** A pull is about to begin; ended by `pulled` or `failed`. Rejects when that cannot be written. */
  async intend(image: string, signal: AbortSignal): Promise<void> {
    await this.#load(signal);
    await this.#inTurn(async () => {
      const file = `${this.#o.dir}/pulling/${fileOf(image)}`;
      await this.#write(file, { kind: "ImagePullIntent", ...version, image });
      this.#intents.set(image, (this.#intents.get(image) ?? 0) + 1);
      this.#tell();
    });
  }

  /** A pull has ended well. @param credential what it was done with; none for an anonymous pull */
  async pulled(image: { name: string; bareName: string; ref: string }, credential?: PullCredential): Promise<void> {
    try {
      await this.#note(image, credentialsOf(credential));
    } catch (thrown) {
      // The intent stays: the image then counts as pulled by the agent, with nobody's credentials.
      this.#o.log.error("a pulled image cannot be recorded", { image: image.name, error: messageOf(thrown) });
      return;
    }
    await this.#endIntent(image.name);
  }

  /** A pull has failed. */
  failed(image: string): Promise<void> {
    return this.#endIntent(image);
  }

  /** True when a pod may use an image that is here only if a pull with its own credentials works. */
  async mustPull(request: {
    readonly image: { readonly name: string; readonly bareName: string; readonly ref: string };
    readonly credentials: () => Promise<readonly PullCredential[]>;
    readonly signal: AbortSignal;
  }): Promise<boolean> {
    const { image, credentials, signal } = request;
    const said = (result: CheckResult): boolean => {
      this.#o.onChecked?.(result);
      return result === "mustAuthenticate";
    };
    await this.#load(signal);
    const record = this.#records.get(image.ref);
    const pulledHere = record !== undefined || this.#intents.has(image.name);
    if (!this.#o.rule({ bareName: image.bareName, pulledHere })) return said("credentialPolicyAllowed");
    const known = record?.credentials.get(image.bareName);
    if (!known) return said("mustAuthenticate");
    if (known.anyPod) return said("credentialRecordFound");
    if (known.secrets.length === 0 && known.accounts.length === 0) return said("mustAuthenticate");
    let own: readonly PullCredential[];
    try {
      own = await credentials();
    } catch (thrown) {
      said("error");
      throw thrown;
    }
    const answer = allows(known, own);
    if (!answer.allowed) return said("mustAuthenticate");
    if (answer.learn) {
      try {
        await this.#note(image, credentialsOf(answer.learn));
      } catch (thrown) {
        this.#o.log.warn("a pull record cannot be completed", { image: image.name, error: messageOf(thrown) });
      }
    }
    return said("credentialRecordFound");
  }

  /** Forgets images that the node has no more. @param refs those that it has @param before records from then on stay */
  async prune(refs: ReadonlySet<string>, before: number): Promise<void> {
    for (const [ref, record] of this.#records) {
      if (refs.has(ref) || record.updatedAt >= before) continue;
      await this.#inTurn(async () => {
        await this.#o.host.remove(`${this.#o.dir}/pulled/${fileOf(ref)}`);
        this.#records.delete(ref);
        this.#tell();
      });
    }
  }

  async #note({ bareName, ref }: { bareName: string; ref: string }, added: Credentials | undefined): Promise<void> {
    await this.#inTurn(async () => {
      const before = this.#records.get(ref);
      const record = merged(before, { ref, bareName, added, now: this.#o.clock.now() });
      if (record === before) return;
      await this.#write(`${this.#o.dir}/pulled/${fileOf(ref)}`, {
        kind: "ImagePulledRecord",
        ...version,
        ...writtenRecord(record),
      });
      this.#records.set(ref, record);
      this.#tell();
    });
  }

  #tell(): void {
    const { onCounts, capacity = { intents: 0, records: 0 } } = this.#o;
    onCounts?.({ intents: this.#intents.size, records: this.#records.size, capacity });
  }

  async #endIntent(image: string): Promise<void> {
    await this.#inTurn(async () => {
      const left = (this.#intents.get(image) ?? 1) - 1;
      if (left > 0) {
        this.#intents.set(image, left);
        return;
      }
      try {
        await this.#o.host.remove(`${this.#o.dir}/pulling/${fileOf(image)}`);
        this.#intents.delete(image);
        this.#tell();
      } catch (thrown) {
        this.#o.log.error("the record of a pull that has ended cannot be removed", { image, error: messageOf(thrown) });
      }
    });
  }

  async #write(path: string, content: unknown): Promise<void> {
    await this.#o.host.mkdir(path.slice(0, path.lastIndexOf("/")), { mode: 0o700 });
    await this.#o.host.write(path, `${JSON.stringify(content)}\n`, { mode: 0o600, atomic: true });
  }

  /** One change of the records at a time, in the order of asking. */
  async #inTurn<T>(work: () => Promise<T>): Promise<T> {
    const mine = this.#turn.then(work, work);
    this.#turn = mine.catch(() => {});
    return await mine;
  }

  /** Reads what an earlier life of the agent has written, once. */
  async #load(signal: AbortSignal): Promise<void> {
    this.#loaded ??= this.#read(signal);
    try {
      await this.#loaded;
    } catch (thrown) {
      this.#loaded = undefined;
      if (signal.aborted || !isAborted(thrown)) throw thrown;
      await this.#load(signal);
    }
  }

  async #read(signal: AbortSignal): Promise<void> {
    for (const value of await this.#files("pulled")) {
      const record = readRecord(value);
      if (record) this.#records.set(record.ref, record);
    }
    const intents: string[] = [];
    for (const value of await this.#files("pulling")) {
      const image = typeof value === "object" && value !== null && "image" in value ? value.image : undefined;
      if (typeof image === "string" && image !== "") intents.push(image);
    }
    for (const image of intents) this.#intents.set(image, 1);
    this.#tell();
    if (intents.length === 0) return;
    // A pull that ended while nobody looked: the image was pulled by the agent, but nobody knows with what.
    for (const image of await this.#images(signal)) {
      const names = new Set([...image.repoTags, ...image.repoDigests]);
      for (const name of intents.filter((intent) => names.has(intent))) {
        await this.#note({ bareName: bareNameOf(name), ref: image.id }, undefined);
        await this.#endIntent(name);
      }
    }
  }

  async #images(signal: AbortSignal): Promise<readonly Image[]> {
    try {
      return await this.#o.listImages(signal);
    } catch (thrown) {
      if (signal.aborted || isAborted(thrown)) throw thrown;
      // The intents stay: their images count as pulled by the agent until they are pulled again.
      this.#o.log.error("images cannot be listed, to see which pulls had ended", { error: messageOf(thrown) });
      return [];
    }
  }

  async #files(kind: "pulled" | "pulling"): Promise<unknown[]> {
    const { host, log, dir } = this.#o;
    await host.mkdir(`${dir}/${kind}`, { mode: 0o700 });
    const found: unknown[] = [];
    for (const { name, kind: type } of await host.readDir(`${dir}/${kind}`)) {
      if (type !== "file" || !/^sha256-[0-9a-f]{64}$/.test(name)) continue;
      try {
        found.push(JSON.parse(await host.readText(`${dir}/${kind}/${name}`)));
      } catch (thrown) {
        log.error("a record of image pulls cannot be read", { file: name, error: asError(thrown).message });
      }
    }
    return found;
  }
}

/** A name as a pod writes it, without tag and digest. */
function bareNameOf(image: string): string {
  return image.replace(/@[^@]*$/, "").replace(/:[^:/]*$/, "");
}
