import type { SecureVersion } from "node:tls";
import type { Logger } from "../base/log.ts";

/** What of TLS the configuration decides. */
export interface TlsSettings {
  readonly minVersion: SecureVersion;
  /** Suites of TLS 1.2 that are allowed, by their standard names; undefined allows all that the library has. */
  readonly suites: ReadonlySet<string> | undefined;
}

/** Suites of TLS 1.2 that the TLS library of Deno has; the older ones of Go's list it has not. */
const available = new Set(
  ["ECDSA", "RSA"].flatMap((key) =>
    ["AES_128_GCM_SHA256", "AES_256_GCM_SHA384", "CHACHA20_POLY1305_SHA256"].map((c) => `TLS_ECDHE_${key}_WITH_${c}`)
  ),
);

/** Go's short names of two suites. */
const longNames: Readonly<Record<string, string>> = {
  TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305: "TLS_ECDHE_RSA_WITH_CHACHA20_POLY1305_SHA256",
  TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305: "TLS_ECDHE_ECDSA_WITH_CHACHA20_POLY1305_SHA256",
};

/**
 * Reads tlsMinVersion, tlsCipherSuites and tlsCurvePreferences, and warns of what this agent cannot do: TLS below 1.2,
 * old suites, curves. Like in Go, the suites of TLS 1.3 are not configurable: the list concerns TLS 1.2 only.
 */
export function tlsSettings(config: {
  readonly tlsMinVersion: string;
  readonly tlsCipherSuites: readonly string[];
  readonly tlsCurvePreferences: readonly number[];
}, log: Logger): TlsSettings {
  const { tlsMinVersion, tlsCipherSuites, tlsCurvePreferences } = config;
  const only13 = tlsMinVersion === "VersionTLS13";
  if (tlsMinVersion === "VersionTLS10" || tlsMinVersion === "VersionTLS11") {
    log.warn("TLS below 1.2 is not available; clients need TLS 1.2 at least", { tlsMinVersion });
  }
  if (tlsCurvePreferences.length > 0) {
    log.warn("tlsCurvePreferences has no effect; the TLS library's own order is used");
  }
  if (tlsCipherSuites.length === 0) return { minVersion: only13 ? "TLSv1.3" : "TLSv1.2", suites: undefined };
  if (only13) log.warn("the suites of TLS 1.3 are not configurable; tlsCipherSuites has no effect");
  const suites = new Set(
    tlsCipherSuites.map((name) => (Object.hasOwn(longNames, name) ? longNames[name] : name) ?? name),
  );
  const missing = [...suites].filter((name) => !available.has(name) && !/^TLS_(AES|CHACHA20)_/.test(name));
  if (missing.length > 0 && !only13) {
    log.warn("cipher suites that are not available are passed over", { suites: missing.join(",") });
  }
  return { minVersion: only13 ? "TLSv1.3" : "TLSv1.2", suites };
}

/** True when a connection may go on. The library ignores `ciphers`, so it is judged after the handshake. */
export function suiteAllowed(settings: TlsSettings, connection: { protocol: string | null; suite: string }): boolean {
  return settings.suites === undefined || connection.protocol === "TLSv1.3" || settings.suites.has(connection.suite);
}
