import { KubeletError, messageOf } from "../../base/errors.ts";
import { localSocket } from "../../server/local/name.ts";
import type { LocalImages, LocalPods, LocalRecords, LocalState } from "../../server/local/types.ts";

/** Longest answer that is taken, in bytes, and how long it may take, in milliseconds. */
const limits = { bytes: 256 << 20, ms: 10_000 } as const;
const slow = `it has not answered within ${limits.ms / 1000} s`;

/** What the running agent tells on its local socket. Each question rejects when the agent does not answer. */
export interface AskAgent {
  pods(): Promise<LocalPods>;
  records(uid?: string): Promise<LocalRecords>;
  state(): Promise<LocalState>;
  /** What becomes of the node's images; rejects with Network when the runtime does not answer. */
  images(): Promise<LocalImages>;
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
    images: async () => await ask("/images") as LocalImages,
  };
}

/** By fetch, not node:http: Deno 2.9.3 closes the descriptor of a node:net unix socket twice. */
async function get(socketPath: string, route: string): Promise<string> {
  using client = Deno.createHttpClient({ proxy: { transport: "unix", path: socketPath }, poolMaxIdlePerHost: 0 });
  const signal = AbortSignal.timeout(limits.ms);
  let answer: Response;
  try {
    // The failure of a fetch has no code that says why.
    (await Deno.connect({ transport: "unix", path: socketPath })).close();
    answer = await fetch(`http://agent${route}`, { client, signal });
  } catch (thrown) {
    throw unreachable(socketPath, signal.aborted ? new Error(slow) : thrown);
  }
  const text = await bounded(answer);
  if (answer.status === 200) return text;
  throw new KubeletError("Network", `the agent answers ${answer.status} to ${route}: ${text.slice(0, 500)}`);
}

async function bounded(answer: Response): Promise<string> {
  let size = 0;
  const counted = answer.body?.pipeThrough(
    new TransformStream<Uint8Array<ArrayBuffer>, Uint8Array<ArrayBuffer>>({
      transform(part, to) {
        size += part.length;
        if (size > limits.bytes) throw new KubeletError("Network", `its answer has more than ${limits.bytes} bytes`);
        to.enqueue(part);
      },
    }),
  );
  return counted ? await new Response(counted).text() : "";
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
