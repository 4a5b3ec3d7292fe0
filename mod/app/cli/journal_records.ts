import type { Host } from "../../base/host.ts";
import { isMissing } from "../../base/host_error.ts";
import type { JournalRecord, PodRef } from "../../base/journal.ts";
import { getKey } from "../config/json.ts";

/** Most bytes that are read of each of the two files: the newest records. */
const mostBytes = 16 << 20;

function text(value: unknown, key: string): string | undefined {
  const found = getKey(value, key);
  return typeof found === "string" ? found : undefined;
}

function podOf(value: unknown): PodRef | undefined {
  const pod = getKey(value, "pod");
  const [namespace, name, uid] = ["namespace", "name", "uid"].map((key) => text(pod, key));
  return namespace !== undefined && name !== undefined && uid !== undefined ? { namespace, name, uid } : undefined;
}

/** One line of a journal file; undefined when it is none, such as the end of a file that was being written. */
export function parseRecord(line: string): JournalRecord | undefined {
  let value: unknown;
  try {
    value = JSON.parse(line);
  } catch (thrown) {
    if (thrown instanceof SyntaxError) return undefined;
    throw thrown;
  }
  const at = Date.parse(text(value, "at") ?? "");
  const action = text(value, "action");
  if (Number.isNaN(at) || action === undefined) return undefined;
  const [pod, seq, tookMs] = [podOf(value), getKey(value, "seq"), getKey(value, "tookMs")];
  const [container, target, error] = ["container", "target", "error"].map((key) => text(value, key));
  return {
    seq: typeof seq === "number" ? seq : 0,
    at,
    action,
    reason: text(value, "reason") ?? "",
    message: text(value, "message") ?? "",
    ...(pod ? { pod } : {}),
    ...(container === undefined ? {} : { container }),
    ...(target === undefined ? {} : { target }),
    ...(error === undefined ? {} : { error }),
    ...(typeof tookMs === "number" ? { tookMs } : {}),
  };
}

/** The records in a root directory's journal files, oldest first; of one pod when a UID is given. Missing files have none. */
export async function readJournal(
  host: Pick<Host, "readTail">,
  rootDir: string,
  uid?: string,
): Promise<JournalRecord[]> {
  const records: JournalRecord[] = [];
  for (const name of ["journal.jsonl.1", "journal.jsonl"]) {
    try {
      const bytes = await host.readTail(`${rootDir}/${name}`, mostBytes);
      for (const line of new TextDecoder().decode(bytes).split("\n")) {
        if (line === "" || (uid !== undefined && !line.includes(uid))) continue;
        const record = parseRecord(line);
        if (record && (uid === undefined || record.pod?.uid === uid)) records.push(record);
      }
    } catch (thrown) {
      if (!isMissing(thrown)) throw thrown;
    }
  }
  return records;
}
