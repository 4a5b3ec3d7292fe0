/** The fields of the configuration that the server acts on; mod/app's KubeletConfig has them all. */
export interface ServerConfig {
  readonly address: string;
  /** -1: any free port (tests). */
  readonly port: number;
  /** 0: no read-only server; -1: any free port (tests). */
  readonly readOnlyPort: number;
  readonly tlsCertFile: string;
  readonly tlsPrivateKeyFile: string;
  readonly tlsCipherSuites: readonly string[];
  readonly tlsCurvePreferences: readonly number[];
  readonly tlsMinVersion: string;
  readonly serverTLSBootstrap: boolean;
  readonly authentication: {
    readonly x509: { readonly clientCAFile: string };
    readonly webhook: { readonly enabled: boolean };
    readonly anonymous: { readonly enabled: boolean };
  };
  readonly authorization: { readonly mode: string };
  readonly enableDebuggingHandlers: boolean;
  readonly enableSystemLogHandler: boolean;
  readonly enableSystemLogQuery: boolean;
  readonly enableProfilingHandler: boolean;
  readonly enableDebugFlagsHandler: boolean;
  readonly podLogsDir: string;
  readonly runtimeRequestTimeoutMs: number;
}
