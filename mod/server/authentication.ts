import type { IncomingMessage } from "node:http";
import { messageOf } from "../base/errors.ts";
import type { Logger } from "../base/log.ts";
import type { User } from "./types.ts";

/** Looks a bearer token up (TokenReview, with its cache); undefined when the token is not valid. */
export interface TokenAuthenticator {
  authenticate(token: string, signal: AbortSignal): Promise<User | undefined>;
}

/** The certificate that a client showed, and whether the handshake verified it. */
export interface PeerCertificate {
  readonly verified: boolean;
  readonly names: readonly string[];
  readonly organizations: readonly string[];
  /** Milliseconds since the epoch. */
  readonly notAfter: number;
}

/** How to tell who makes a request. */
export interface AuthenticationOptions {
  /** True when authentication.x509.clientCAFile is set; else certificates say nothing. */
  readonly certificates: boolean;
  readonly anonymous: boolean;
  /** Absent while authentication.webhook is off: tokens say nothing then. */
  readonly tokens?: TokenAuthenticator;
  readonly now: () => number;
  readonly log: Logger;
}

const anonymousUser: User = { name: "system:anonymous", groups: ["system:unauthenticated"] };
const authenticated = "system:authenticated";
const webSocketToken = "base64url.bearer.authorization.k8s.io.";

/** The bearer token of a request, from its header or its WebSocket protocols. */
export function bearerToken(headers: IncomingMessage["headers"]): string | undefined {
  const [scheme, token] = (headers.authorization ?? "").trim().split(" ");
  if (scheme?.toLowerCase() === "bearer" && token) return token;
  const protocols = (headers["sec-websocket-protocol"] ?? "").split(",").map((each) => each.trim());
  const encoded = protocols.find((each) => each.startsWith(webSocketToken))?.slice(webSocketToken.length);
  if (!encoded) return undefined;
  try {
    return atob(encoded.replaceAll("-", "+").replaceAll("_", "/"));
  } catch {
    return undefined;
  }
}

/**
 * Says who makes a request; undefined means 401 (http.md section 2). A certificate or token that is shown but not valid
 * is refused even where anonymous requests are allowed, as by the reference.
 */
export async function authenticate(options: AuthenticationOptions, request: {
  headers: IncomingMessage["headers"];
  peer: PeerCertificate | undefined;
  signal: AbortSignal;
}): Promise<User | undefined> {
  const { certificates, anonymous, tokens, now, log } = options;
  let refused = false;
  if (certificates && request.peer) {
    const { verified, names, organizations, notAfter } = request.peer;
    const name = names.at(-1) ?? "";
    if (!verified || !(now() < notAfter)) {
      refused = true;
      log.detail(2, "a client certificate is not valid", { name, verified });
    } else if (name !== "") return { name, groups: [...organizations, authenticated] };
  }
  const token = tokens && bearerToken(request.headers);
  if (tokens && token !== undefined) {
    try {
      const user = await tokens.authenticate(token, request.signal);
      if (user) return { ...user, groups: [...new Set([...user.groups, authenticated])] };
    } catch (thrown) {
      log.error("a token could not be checked", { error: messageOf(thrown) });
    }
    refused = true;
  }
  return anonymous && !refused ? anonymousUser : undefined;
}
