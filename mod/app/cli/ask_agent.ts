import { request } from "node:http";
import { KubeletError, messageOf } from "../../base/errors.ts";
import { localSocket } from "../../server/local/name.ts";
import type { LocalPods, LocalRecords, LocalState } from "../../server/local/types.ts";

/** Longest answer that is taken, in bytes, and how long it may take, in milliseconds. */
const limits = { bytes: 256 << 20, ms: 10_000 } as const;

/** What the running agent tells on its local socket. Each question rejects when the agent does not answer. */
export interface AskAgent {
  pods(): Promise<LocalPods>;
  records(uid?: string): Promise<LocalRecords>;
  state(): Promise<LocalState>;
}

/** No agent answers: none runs with this root directory, or it may not be asked. */
export class NoAgent extends KubeletError {}

/** Asks the agent of a root directory. Rejects with NoAgent when it cannot be reached, with Network when its answer is none. */
export function askAgent(rootDir: string): AskAgent {
  const path = `${rootDir}/${localSocket}`;
  const ask = async (route: string): Promise<unknown> => JSON.parse(await get(path, route));
  return {
    pods: async () => await ask("/pods") as LocalPods,
    records: async (uid) =>
      await ask(uid === undefined ? "/journal" : `/journal?uid=${encodeURIComponent(uid)}`) as LocalRecords,
    state: async () => await ask("/state") as LocalState,
  };
}

function get(socketPath: string, route: string): Promise<string> {
  const { promise, resolve, reject } = Promise.withResolvers<string>();
  const asked = request({ socketPath, path: route, timeout: limits.ms, agent: false }, (answer) => {
    const parts: Uint8Array[] = [];
    let size = 0;
    answer.on("data", (part: Uint8Array) => {
      parts.push(part);
      size += part.length;
      if (size > limits.bytes) answer.destroy(new Error(`its answer has more than ${limits.bytes} bytes`));
    });
    answer.on("error", reject);
    answer.on("end", () => {
      const text = new TextDecoder().decode(joined(parts, size));
      if (answer.statusCode === 200) resolve(text);
      else {reject(
          new KubeletError("Network", `the agent answers ${answer.statusCode} to ${route}: ${text.slice(0, 500)}`),
        );}
    });
  });
  asked.on("timeout", () => asked.destroy(new Error(`it has not answered within ${limits.ms / 1000} s`)));
  asked.on("error", (thrown) => reject(unreachable(socketPath, thrown)));
  asked.end();
  return promise;
}

function joined(parts: readonly Uint8Array[], size: number): Uint8Array {
  const all = new Uint8Array(size);
  let at = 0;
  for (const part of parts) {
    all.set(part, at);
    at += part.length;
  }
  return all;
}

/** Why the agent cannot be asked, with what to do. */
export function unreachable(socketPath: string, thrown: unknown): NoAgent {
  const code = typeof thrown === "object" && thrown !== null && "code" in thrown ? thrown.code : undefined;
  const dir = socketPath.slice(0, socketPath.lastIndexOf("/"));
  const why = code === "EACCES" || code === "EPERM"
    ? "only root may ask the agent: run this as root"
    : code === "ENOENT" || code === "ECONNREFUSED"
    ? `no agent runs with the root directory ${dir}; start it, or name another one's directory with --root-dir`
    : messageOf(thrown);
  return new NoAgent("Network", `${socketPath}: ${why}`, { cause: thrown });
}
