import type { BoundPod } from "../../../mod/kube/types.ts";

/** Which Secret or service account a credential came from. */
export interface Coordinates {
  readonly uid: string;
  readonly namespace: string;
  readonly name: string;
}

/** Where a credential came from; a credential of the node itself has no source, and every pod may use it. */
export type CredentialSource =
  | ({ readonly kind: "secret" } & Coordinates)
  | ({ readonly kind: "serviceAccount" } & Coordinates);

/** What proves to a registry that an image may be pulled. */
export interface PullCredential {
  readonly username: string;
  readonly password: string;
  /** Tells one credential from another without showing it. */
  readonly hash: string;
  readonly source?: CredentialSource;
}

/** Where pull credentials come from: pull secrets, the node's own configuration, credential plugins. */
export interface Keyring {
  /**
   * Credentials for an image, most fitting first; they are tried in turn, none means an anonymous pull. Rejects when
   * something that should give some is broken; one that only gives none is told and passed over.
   * @param request `repository` is the image's full name without tag and digest
   */
  lookup(request: {
    readonly image: string;
    readonly repository: string;
    readonly pod: BoundPod;
    readonly signal: AbortSignal;
  }): Promise<readonly PullCredential[]>;
}
