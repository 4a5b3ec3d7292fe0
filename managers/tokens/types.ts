/** A token for a pod's service account. */
export interface TokenWanted {
  readonly namespace: string;
  readonly serviceAccount: string;
  /** Empty: the API server's own. */
  readonly audiences: readonly string[];
  /** Seconds; the server decides when not given. */
  readonly expirationSeconds?: number | undefined;
  /** The pod with which the token ends. */
  readonly pod: { readonly name: string; readonly uid: string };
  /** The account must be this one, not a later one of the same name. */
  readonly serviceAccountUid?: string | undefined;
}

export interface Token {
  readonly token: string;
  /** Wall time in milliseconds. */
  readonly expiresAt: number;
}

/** Gives tokens of service accounts (features.md H10). */
export interface TokenManager {
  /**
   * The token as it is now, renewed when it is due; one that cannot be renewed serves until it expires. Rejects with the
   * API server's error, its text after `failed to fetch token: `, and with Aborted.
   */
  token(wanted: TokenWanted, signal: AbortSignal): Promise<Token>;
  /** Forgets the tokens of a pod that has gone. */
  forget(podUid: string): void;
}
