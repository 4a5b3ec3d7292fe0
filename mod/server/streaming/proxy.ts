import { KubeletError, messageOf } from "../../base/errors.ts";
import type { Clock } from "../../base/clock.ts";
import { httpError, send } from "../respond.ts";
import type { RequestContext } from "../types.ts";
import { nodeStream } from "./byte_stream.ts";
import { join, keepOpen } from "./join.ts";
import { readBody, requestUpgrade, type UpgradeAnswer, type UpgradeRequest } from "./upstream.ts";

/** How long a refusal of the runtime may take to come whole. */
const refusalMs = 10_000;
/** Headers that say who the client is to us; the runtime asks for none of it. */
const notPassedOn = new Set(["authorization", "x-forwarded-for"]);

/** The client's request as it goes on to the runtime. */
export function passedOn({ request }: RequestContext): UpgradeRequest {
  const headers: [string, string][] = [];
  const raw = request.rawHeaders;
  for (let i = 0; i + 1 < raw.length; i += 2) {
    const [name = "", value = ""] = [raw[i], raw[i + 1]];
    if (!notPassedOn.has(name.toLowerCase())) headers.push([name, value]);
  }
  const before = request.headers["x-forwarded-for"];
  const from = request.socket.remoteAddress;
  const via = [...(before === undefined ? [] : [before].flat()), ...(from === undefined ? [] : [from])];
  if (via.length > 0) headers.push(["X-Forwarded-For", via.join(", ")]);
  return { method: request.method ?? "GET", headers };
}

/**
 * Asks the runtime for an upgrade. Undefined when it gave none: the client has then been answered, with the runtime's
 * own words where it had any.
 */
export async function upgradeOrRefuse(
  context: RequestContext,
  clock: Clock,
  url: URL,
  request: UpgradeRequest,
): Promise<UpgradeAnswer | undefined> {
  let answer: UpgradeAnswer;
  try {
    answer = await requestUpgrade(url, request, context.signal);
  } catch (thrown) {
    httpError(context, 500, messageOf(thrown));
    return undefined;
  }
  if (answer.status === 101) return answer;
  using _end = clock.after(refusalMs, () => answer.stream.close());
  try {
    if (answer.status < 400) httpError(context, 500, `invalid upgrade response: status code ${answer.status}`);
    else {
      const type = answer.headers.get("content-type");
      send(context, answer.status, await readBody(answer), { ...(type === undefined ? {} : { "content-type": type }) });
    }
  } catch (thrown) {
    if (!context.response.headersSent) httpError(context, 500, messageOf(thrown));
  } finally {
    answer.stream.close();
  }
  return undefined;
}

/** Hands the client's request to the runtime's streaming server and passes on all bytes both ways, as they are. */
export async function proxyUpgrade(context: RequestContext, clock: Clock, url: URL): Promise<void> {
  const answer = await upgradeOrRefuse(context, clock, url, passedOn(context));
  if (!answer) return;
  const { socket, head } = context.takeSocket();
  keepOpen(socket);
  const client = nodeStream(socket, head);
  try {
    await client.write(answer.rawHead);
  } catch (thrown) {
    answer.stream.close();
    client.close();
    throw new KubeletError("Network", "the client was gone before the stream began", { cause: thrown });
  }
  await join({ client, runtime: answer.stream, clock, signal: context.signal, log: context.log });
}
