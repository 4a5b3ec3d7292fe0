import { closeSync, constants, openSync, readSync } from "node:fs";
import { systemClock } from "./clock.ts";
import { isAborted } from "./errors.ts";
import { errnoOf, hostError } from "./host_error.ts";

/** Longer than any record: the kernel refuses a read that one does not fit into. */
const recordBytes = 16_384;
/** Milliseconds between two looks. A read that waits would hold a thread of the process for good. */
const pollMs = 1000;
/** Records read at a stretch, so that a kernel that never stops talking does not keep the agent from its work. */
const atOnce = 500;

/** See Host.kernelLog. @param path of the device that has the records */
export async function* kernelLog(path: string, signal: AbortSignal): AsyncIterable<string> {
  const fd = attempt(path, () => openSync(path, constants.O_RDONLY | constants.O_NONBLOCK));
  const buffer = new Uint8Array(recordBytes);
  const next = () => attempt(path, () => readRecord(fd, buffer));
  try {
    // What was said before is over; only reading it leads past it.
    for (let count = 1; !signal.aborted && next() !== undefined; count++) {
      if (count % atOnce === 0) await systemClock.sleep(0);
    }
    while (!signal.aborted) {
      for (let count = 0; count < atOnce; count++) {
        const record = next();
        if (record === undefined) break;
        if (record !== "") yield record;
      }
      try {
        await systemClock.sleep(pollMs, signal);
      } catch (thrown) {
        if (!isAborted(thrown)) throw thrown;
      }
    }
  } finally {
    closeSync(fd);
  }
}

function attempt<T>(path: string, body: () => T): T {
  try {
    return body();
  } catch (thrown) {
    throw hostError("kernelLog", path, thrown);
  }
}

/** The next record's text, "" when it is none of the kernel's lines or was overwritten, undefined when there is none now. */
function readRecord(fd: number, buffer: Uint8Array): string | undefined {
  try {
    const n = readSync(fd, buffer, 0, buffer.length, null);
    return n === 0 ? undefined : messageOfRecord(new TextDecoder().decode(buffer.subarray(0, n)));
  } catch (thrown) {
    // EPIPE: the kernel wrote over records that were not read yet; the next read goes on with the oldest there is.
    if (errnoOf(thrown) === "EPIPE") return "";
    if (errnoOf(thrown) === "EAGAIN") return undefined;
    throw thrown;
  }
}

/** The text of a record `<priority>,<sequence>,<time>,<flags>;<text>`; fields that follow on lines of their own are left out. */
function messageOfRecord(record: string): string {
  const [first = ""] = record.split("\n", 1);
  const at = first.indexOf(";");
  return at < 0 ? "" : first.slice(at + 1);
}
