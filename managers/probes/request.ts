import type { Container, HTTPHeader } from "../../mod/kube/types.ts";
import { KubeletError } from "../../mod/base/errors.ts";
import type { HttpGetCall } from "./types.ts";

/** An HTTP request as it goes on the wire. */
export interface WireRequest {
  readonly scheme: "http" | "https";
  /** Address or name to connect to, without brackets. */
  readonly host: string;
  readonly port: number;
  /** Path and query, escaped. */
  readonly target: string;
  readonly hostHeader: string | undefined;
  readonly headers: readonly (readonly [string, string])[];
}

/** Version in user agents, `kube-probe/1.36`. */
export const userAgentVersion = "1.36";

/** The port a probe or hook means: a number, a port name of the container, or digits in a string. Code Probe. */
export function resolvePort(port: number | string, container: Pick<Container, "ports">): number {
  const named = typeof port === "string" ? container.ports?.find((p) => p.name === port)?.containerPort : port;
  const number = named ?? (typeof port === "string" && /^\+?\d{1,9}$/.test(port) ? Number(port) : undefined);
  if (number === undefined) {
    throw new KubeletError("Probe", `port ${port} not found: name one of the container's ports or give a number`);
  }
  if (!Number.isInteger(number) || number < 1 || number > 65535) {
    throw new KubeletError("Probe", `invalid port number: ${number}`);
  }
  return number;
}

/** `host:port`, an IPv6 address in brackets. */
export function hostPort(host: string, port: number): string {
  return host.includes(":") ? `[${host}]:${port}` : `${host}:${port}`;
}

const escapeByte = (c: string) =>
  [...new TextEncoder().encode(c)].map((b) => `%${b.toString(16).toUpperCase().padStart(2, "0")}`).join("");

/**
 * Path and query of a request from what a manifest says: a scheme and authority in front are dropped, as is a
 * fragment, and what may not stand in a request line is escaped. A path with a broken escape is taken literally.
 */
export function requestTarget(path: string): string {
  const unsafe = /[^\x21-\x7e]|["<>\\^`{|}]/gu;
  let text = path;
  // deno-lint-ignore no-control-regex
  const literal = /[\x00-\x1f\x7f]/.test(text) || /%(?![0-9a-f]{2})/i.test(text.split("?")[0] ?? "");
  if (literal) text = text.replace(/[%?#]/g, escapeByte);
  else text = text.replace(/#.*$/s, "").replace(/^(?:[a-z][a-z0-9+.-]*:)?\/\/[^/?]*/i, "");
  text = text.replace(unsafe, escapeByte);
  return text.startsWith("/") ? text : `/${text}`;
}

const token = /^[!#$%&'*+.^_`|~0-9A-Za-z-]+$/;
/** Headers that the connection itself decides. */
const ours = new Set(["host", "content-length", "transfer-encoding", "trailer", "connection"]);

function headersOf(list: readonly HTTPHeader[], purpose: string): [string, string][] {
  const headers: [string, string][] = [];
  for (const { name, value } of list) {
    if (!token.test(name)) throw new KubeletError("Probe", `invalid header field name ${JSON.stringify(name)}`);
    if (!ours.has(name.toLowerCase())) headers.push([name, (value ?? "").replace(/[\r\n\0]/g, " ").trim()]);
  }
  const has = (name: string) => headers.find(([n]) => n.toLowerCase() === name);
  const agent = has("user-agent");
  if (!agent) headers.unshift(["User-Agent", `kube-${purpose}/${userAgentVersion}`]);
  const accept = has("accept");
  if (!accept) headers.push(["Accept", "*/*"]);
  // An empty User-Agent or Accept in the manifest means: do not send one.
  return headers.filter((h) => !((h === accept || h === agent) && h[1] === ""));
}

/** Turns an httpGet action into a request (runtime-contract.md section 18, http). Rejects bad actions, code Probe. */
export function buildRequest(
  call: Pick<HttpGetCall, "action" | "container" | "podIP" | "purpose" | "fallbackScheme">,
): WireRequest {
  const { action } = call;
  const asked = (action.scheme || "http").toLowerCase();
  if (asked !== "http" && asked !== "https") {
    throw new KubeletError("Probe", `unsupported protocol scheme ${JSON.stringify(asked)}: use HTTP or HTTPS`);
  }
  const host = action.host || call.podIP;
  if (!host) throw new KubeletError("Probe", "the pod has no IP address yet and httpGet.host is empty");
  const port = resolvePort(action.port, call.container);
  const all = action.httpHeaders ?? [];
  const list = call.fallbackScheme ? all.filter((h) => h.name.toLowerCase() !== "authorization") : all;
  const headers = headersOf(list, call.purpose);
  const named = list.find((h) => h.name.toLowerCase() === "host")?.value.replace(/[\r\n\0]/g, " ").trim();
  return {
    scheme: call.fallbackScheme ?? asked,
    host: host.replace(/^\[(.*)\]$/, "$1"),
    port,
    target: requestTarget(action.path ?? ""),
    hostHeader: named || undefined,
    headers,
  };
}

/** The request's URL, for messages. */
export function urlOf(request: WireRequest): string {
  return `${request.scheme}://${hostPort(request.host, request.port)}${request.target}`;
}

/** The request's head on the wire; the connection is closed after the reply. */
export function headOf(request: WireRequest): string {
  const host = request.hostHeader ?? hostPort(request.host.replace(/%.*$/, ""), request.port);
  const lines = [`GET ${request.target} HTTP/1.1`, `Host: ${host}`];
  for (const [name, value] of request.headers) lines.push(`${name}: ${value}`);
  lines.push("Connection: close", "", "");
  return lines.join("\r\n");
}
