import type { IncomingMessage } from "node:http";
import { isWebSocket } from "./websocket.ts";

/** The streams that a client of exec or attach wants. */
export interface StreamChoice {
  readonly stdin: boolean;
  readonly stdout: boolean;
  readonly stderr: boolean;
  readonly tty: boolean;
}

/**
 * Which streams a request asks for (http.md section 4): each parameter counts only when it is `1`, and a terminal has
 * no standard error. Text for the client when there is none.
 */
export function streamChoice(query: URLSearchParams): StreamChoice | string {
  const is = (name: string) => query.get(name) === "1";
  const tty = is("tty");
  const choice = { stdin: is("input"), stdout: is("output"), stderr: is("error") && !tty, tty };
  if (choice.stdin || choice.stdout || choice.stderr) return choice;
  return "you must specify at least 1 of stdin, stdout, stderr";
}

/** Most ports that one request may name. */
const mostPorts = 1_000;

/**
 * The ports of a port-forward: a WebSocket names them in the query (`port`, repeated or with commas), other clients
 * per stream. Text for the client when they cannot be used.
 */
export function forwardedPorts(request: IncomingMessage, query: URLSearchParams): number[] | string {
  if (!isWebSocket(request)) return [];
  const given = query.getAll("port");
  if (given.length === 0) return 'query parameter "port" is required';
  const ports: number[] = [];
  for (const text of given) {
    if (text === "") return 'query parameter "port" cannot be empty';
    for (const part of text.split(",")) {
      const quoted = JSON.stringify(text);
      if (!/^\d+$/.test(part)) {
        return `unable to parse ${quoted} as a port: strconv.ParseUint: parsing ${
          JSON.stringify(part)
        }: invalid syntax`;
      }
      const port = Number(part);
      if (port > 65_535) {
        return `unable to parse ${quoted} as a port: strconv.ParseUint: parsing ${
          JSON.stringify(part)
        }: value out of range`;
      }
      if (port < 1) return `port ${quoted} must be > 0`;
      ports.push(port);
    }
    if (ports.length > mostPorts) return `more than ${mostPorts} ports in one request: use several`;
  }
  return ports;
}
