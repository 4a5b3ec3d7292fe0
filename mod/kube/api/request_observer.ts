import type { PluginCertificate } from "./exec_plugin.ts";

/** What is told of requests, for metrics (metrics.md, rest_client_…). Hosts are `name:port`, verbs HTTP's methods. */
export interface RequestObserver {
  /** A request ended. `code` is the HTTP status, or `<error>` when there was no answer; sizes in bytes. */
  request?(told: {
    readonly verb: string;
    readonly host: string;
    readonly code: string;
    /** From sending to the head of the answer. */
    readonly seconds: number;
    readonly requestBytes: number;
  }): void;
  /** An answer was read to its end; never told of a watch. */
  received?(told: { readonly verb: string; readonly host: string; readonly bytes: number }): void;
  /** A request waited for the client's own limit of rate; 0 when it did not have to. */
  waited?(told: { readonly verb: string; readonly host: string; readonly seconds: number }): void;
  /** A request is sent again because the server asked for time. */
  retried?(told: { readonly verb: string; readonly host: string; readonly code: string }): void;
  /** Told once how many transports of the clients are open can be asked. */
  transports?(open: () => number): void;
  /** A credential plugin was run. */
  pluginCall?(outcome: string, code: number): void;
  /** A credential plugin gave another certificate than before. */
  pluginCertificate?(told: PluginCertificate): void;
}
