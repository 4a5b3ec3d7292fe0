import { createGzip } from "node:zlib";
import type { Writable } from "node:stream";
import { finished } from "node:stream/promises";
import { drained } from "../drained.ts";
import type { RequestContext } from "../types.ts";
import { hasOptions, journalArguments, type LogQuery } from "./log_query.ts";
import { findLog } from "./log_files.ts";

/** Longest that a query may take, milliseconds. */
const limitMs = 30_000;
const journalctl = "/usr/bin/journalctl";

/**
 * Runs journalctl; its output goes out as it comes. When the signal aborts, nobody reads on, which ends the program: the
 * agent may not send it a signal. Rejects when it cannot be run, and when the signal aborts.
 */
async function journal(
  args: string[],
  write: (bytes: Uint8Array) => Promise<void>,
  signal: AbortSignal,
): Promise<void> {
  const child = new Deno.Command(journalctl, { args, stdin: "null", stdout: "piped", stderr: "piped" }).spawn();
  const errors = new Response(child.stderr).bytes();
  const reader = child.stdout.getReader();
  const stop = () => void reader.cancel().catch(() => {});
  signal.addEventListener("abort", stop, { once: true });
  try {
    if (signal.aborted) stop();
    for (let part = await reader.read(); !part.done; part = await reader.read()) await write(part.value);
    if (signal.aborted) throw signal.reason;
    await write(await errors);
    await child.status;
  } finally {
    signal.removeEventListener("abort", stop);
    stop();
  }
}

/** Names of the journal's units, or none when there is no journal. */
async function units(signal: AbortSignal): Promise<string> {
  let text = "";
  const decoder = new TextDecoder();
  try {
    await journal(["--field", "_SYSTEMD_UNIT"], (bytes) => {
      text += decoder.decode(bytes, { stream: true });
      return Promise.resolve();
    }, signal);
  } catch (thrown) {
    if (signal.aborted) throw thrown;
    return ""; // no journalctl, or no leave to run it: services are looked for among the files
  }
  return text;
}

/** Answers a checked query for services: from the journal, else from files of /var/log named after them. */
export async function answerServices(
  context: RequestContext,
  query: LogQuery,
  roots: readonly string[],
): Promise<void> {
  const { response, request } = context;
  const zipped = request.headers["accept-encoding"] === "gzip";
  response.writeHead(200, {
    "content-type": "text/plain;charset=UTF-8",
    ...(zipped ? { "content-encoding": "gzip" } : {}),
  });
  const gzip = zipped ? createGzip({ level: 1 }) : undefined;
  gzip?.pipe(response);
  const out: Writable = gzip ?? response;
  const signal = AbortSignal.any([context.signal, AbortSignal.timeout(limitMs)]);
  const write = async (bytes: Uint8Array) => {
    if (!out.write(bytes) && !signal.aborted) await drained(out, signal);
  };
  const say = (text: string) => write(new TextEncoder().encode(`\n${text}\n`));
  try {
    const known = await units(signal);
    const native = query.services.filter((service) => known.includes(`${service}.service`));
    const others = query.services.filter((service) => !native.includes(service));
    if (native.length > 0) await journal(journalArguments(query, native), write, signal);
    if (others.length > 0 && hasOptions(query)) {
      await say(
        `options present and query resolved to log files for [${others.join(" ")}]\ntry without specifying options`,
      );
    } else for (const service of others) await copyFile(service, roots, write, say);
  } catch (thrown) {
    if (context.signal.aborted) throw thrown;
    await say(signal.aborted ? "context error: context deadline exceeded" : "error: journal output not available");
  }
  out.end();
  // A client that has not taken what it was sent by now is let go.
  AbortSignal.timeout(limitMs).addEventListener("abort", () => response.destroy(), { once: true });
  await finished(response).catch(() => {});
}

async function copyFile(
  service: string,
  roots: readonly string[],
  write: (bytes: Uint8Array) => Promise<void>,
  say: (text: string) => Promise<void>,
): Promise<void> {
  for (const name of [service, `${service}.log`, `${service}/${service}.log`]) {
    const file = await findLog(roots, name);
    if (!file) continue;
    for await (const bytes of file.readable) await write(bytes);
    return;
  }
  await say(`log not found for ${service}`);
}
