import type { Clock } from "../../mod/base/clock.ts";
import { abortedBy } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import type { Logger } from "../../mod/base/log.ts";
import type { Scope } from "../../mod/base/scope.ts";
import { Measured } from "./measured.ts";
import type { OpenFiles } from "./types.ts";

type Files = Pick<Host, "readDir" | "readLink" | "readTextNow" | "procRoot">;

/** Descriptors of one process that are looked at for sockets; the rest only counts as open. */
const looked = 4096;
/** Links read between two pauses in which other work runs. */
const chunk = 64;

/** What processes have open; those that are gone or may not be looked at count nothing. */
export async function openFiles(host: Files, pids: readonly number[], signal: AbortSignal): Promise<OpenFiles> {
  let descriptors = 0, sockets = 0;
  for (const pid of pids) {
    const directory = `${host.procRoot}/${pid}/fd`;
    const names = await host.readDir(directory).catch(() => []);
    descriptors += names.length;
    for (let from = 0; from < Math.min(names.length, looked); from += chunk) {
      if (signal.aborted) throw abortedBy(signal);
      const part = names.slice(from, from + chunk);
      const links = await Promise.all(part.map(({ name }) => host.readLink(`${directory}/${name}`).catch(() => "")));
      sockets += links.filter((link) => link.startsWith("socket:")).length;
    }
  }
  const limit = pids[0] === undefined ? undefined : softLimit(host.readTextNow(`${host.procRoot}/${pids[0]}/limits`));
  return { descriptors, sockets, ...(limit === undefined ? {} : { limit }) };
}

/** The soft limit of open files in `/proc/<pid>/limits`. */
export function softLimit(text: string | undefined): number | undefined {
  const [, word] = /^Max open files\s+(\S+)/m.exec(text ?? "") ?? [];
  if (word === "unlimited") return Infinity;
  const value = Number(word);
  return word !== undefined && Number.isSafeInteger(value) ? value : undefined;
}

/** How long it is kept, milliseconds: about as old as the reference's own figures are. */
const keepMs = 15_000;

/** What groups' processes have open, looked up behind the answers: it takes a system call for each descriptor. */
export class ProcessFiles {
  readonly #measured: Measured<OpenFiles>;
  /** The processes of the groups when they were last asked about. */
  #pids: ReadonlyMap<string, readonly number[]> = new Map();

  constructor(options: { host: Files; clock: Clock; log: Logger; scope: Scope }) {
    this.#measured = new Measured({
      ...options,
      name: "open files",
      keepMs,
      forgetMs: 10 * keepMs,
      measure: (group, signal) => openFiles(options.host, this.#pids.get(group) ?? [], signal),
    });
  }

  /** By group; a first look is waited for, at most `patienceMs`. */
  of(pids: ReadonlyMap<string, readonly number[]>, patienceMs: number): Promise<ReadonlyMap<string, OpenFiles>> {
    this.#pids = pids;
    return this.#measured.of([...pids.keys()], patienceMs);
  }
}
