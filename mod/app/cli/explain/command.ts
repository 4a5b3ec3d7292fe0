import type { Clock } from "../../../base/clock.ts";
import { KubeletError } from "../../../base/errors.ts";
import type { Host } from "../../../base/host.ts";
import type { PodRef } from "../../../base/journal.ts";
import type { LocalPod, LocalState } from "../../../server/local/types.ts";
import { type AskAgent, NoAgent } from "../ask_agent.ts";
import { onePodNamed, podsNamed } from "../find_pod.ts";
import { readJournal } from "../journal_records.ts";
import { explainPod } from "./pod.ts";
import { ago, line } from "./words.ts";

export interface ExplainPodOptions {
  /** A name, namespace/name, or a UID or its beginning. */
  readonly word: string;
  readonly rootDir: string;
  readonly agent: AskAgent;
  readonly host: Pick<Host, "readTail">;
  readonly clock: Clock;
}

/**
 * The text of `kubelet explain POD`: from the running agent, or from the journal file when the agent does not run or
 * does not know the pod any more, which the text says. Rejects with BadConfig when the name means no pod, or several.
 */
export async function explainPodNamed(options: ExplainPodOptions): Promise<string> {
  const { word, rootDir, agent, clock } = options;
  let state: LocalState;
  try {
    state = await agent.state();
  } catch (thrown) {
    if (!(thrown instanceof NoAgent)) throw thrown;
    return await fromFile(
      options,
      `The agent does not answer (${thrown.message}), so only its journal file is looked at.`,
      [],
    );
  }
  const { pods } = await agent.pods();
  const known = pods.map((one) => ({ ...one, ...one.pod.metadata }));
  if (podsNamed(word, known, state.nodeName).length === 0) {
    const notes = [
      ...troubles(state),
      `The agent has no such pod now. This is from its journal file ${rootDir}/journal.jsonl.`,
    ];
    return await fromFile(options, notes.join("\n"), pods, state);
  }
  const { pod: found, ending } = onePodNamed(word, known, state.nodeName);
  const { records } = await agent.records(found.uid);
  // An agent that was started anew keeps only its own records in memory.
  const first = records[0]?.at ?? Infinity;
  const older = (await readJournal(options.host, rootDir, found.uid)).filter((r) => r.at < first);
  const explained = { ...found.pod, ...(found.leaving ? { leaving: found.leaving } : {}) };
  const text = explainPod(explained, found.status, [...older, ...records], clock.now());
  const more = ending.map(({ uid }) => `Another pod of this name is ending: uid ${uid} (kubelet explain ${uid})`);
  return [...troubles(state), text, ...more].join("\n\n");
}

/** What is wrong with the agent itself, before anything about a pod. */
function troubles(state: LocalState): string[] {
  const found: string[] = [];
  if (state.waitingFor !== undefined) {
    found.push(`The agent waits for ${line(state.waitingFor)}; no pod is looked after until then.`);
  }
  if (state.runtimeError !== undefined) {
    found.push(`The runtime has a problem: ${line(state.runtimeError)}. Remedy: kubelet check`);
  }
  if (state.networkError !== undefined) {
    found.push(`The node's network has a problem: ${line(state.networkError)}. Remedy: kubelet check`);
  }
  for (const { where, problem } of state.manifestProblems) {
    found.push(`${line(where)} cannot be used: ${line(problem)}`);
  }
  return found;
}

async function fromFile(
  { word, rootDir, host, clock }: ExplainPodOptions,
  note: string,
  known: readonly LocalPod[],
  state?: LocalState,
): Promise<string> {
  const records = await readJournal(host, rootDir);
  const seen = new Map<string, PodRef & { last: number }>();
  for (const { pod, at } of records) if (pod) seen.set(pod.uid, { ...pod, last: at });
  const nodeName = state?.nodeName || nodeOf(word, [...seen.values()]);
  const found = podsNamed(word, [...seen.values()], nodeName).sort((a, b) => b.last - a.last);
  const [newest, ...others] = found;
  if (!newest) {
    const problems = state ? troubles(state) : [];
    const shown = JSON.stringify(word.slice(0, 80));
    const where = state
      ? `neither the agent nor its journal file knows a pod ${shown}`
      : `the journal file in ${rootDir} knows no pod ${shown}. ${note}`;
    const names = known.map(({ pod }) => pod.metadata.name).slice(0, 20).join(", ");
    throw new KubeletError(
      "BadConfig",
      [`${where}${names === "" ? "" : `; there are: ${names}`}`, ...problems].join("\n"),
    );
  }
  const text = explainPod({ metadata: newest }, undefined, records, clock.now());
  const more = others.slice(0, 5).map((pod) =>
    `Another pod of this name: uid ${pod.uid}, last ${ago(pod.last, clock.now())}`
  );
  return [note, text, ...more].join("\n\n");
}

/** The node's name, when the word is the beginning of static pods' names that all go on in the same way. */
function nodeOf(word: string, pods: readonly PodRef[]): string {
  const name = word.slice(word.indexOf("/") + 1);
  const rests = new Set(
    pods.filter((pod) => pod.name.startsWith(`${name}-`)).map((pod) => pod.name.slice(name.length + 1)),
  );
  const [only] = rests;
  return rests.size === 1 ? only ?? "" : "";
}
