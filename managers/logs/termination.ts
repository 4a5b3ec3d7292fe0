import { ContainerState, type ContainerStatus } from "../../cri/gen/runtime_pb.ts";
import { messageOf } from "../../mod/base/errors.ts";
import type { Host } from "../../mod/base/host.ts";
import { isMissing } from "../../mod/base/host_error.ts";
import { containerNotes } from "../../mod/pod/config/labels.ts";
import { terminationPath } from "../../mod/pod/config/mounts.ts";
import { lastContent } from "./cri_log.ts";

/** Bytes of the termination file that count (runtime-contract.md section 3). */
const fileLimit = 4096;
/** Lines and bytes of the log that stand in for it. */
const logLines = 80;
const logLimit = 2048;
/** Bytes of the log's end that are read to find them: the longest usual lines are 16 KiB. */
const logTail = 128 * 1024;

type Files = Pick<Host, "stat" | "lstat" | "readTail">;

/** Decodes the end of a text; half a character at its beginning is dropped. */
function decodeTail(bytes: Uint8Array): string {
  let start = 0;
  while (start < 3 && start < bytes.length && ((bytes[start] ?? 0) & 0xc0) === 0x80) start++;
  return new TextDecoder().decode(bytes.subarray(start));
}

/** The end of a regular file; undefined when it is missing. A pipe or device is refused: reading it could hang.
 * So is a link in the place of a termination file (`lstat`), which could lead to any secret of the node; a log may be
 * one, as some runtimes keep their logs elsewhere. */
async function tailOf(
  host: Files,
  path: string,
  bytes: number,
  look: "stat" | "lstat",
): Promise<{ data: Uint8Array; cut: boolean } | undefined> {
  try {
    const info = await host[look](path);
    if (!info) return undefined;
    if (info.kind !== "file") throw new Error(`it is a ${info.kind}, not a regular file`);
    // The look makes good words; what is opened is refused all the same when something else is in its place by now.
    const data = await host.readTail(path, bytes, { nofollow: look === "lstat" });
    return { data, cut: info.size > bytes };
  } catch (thrown) {
    if (isMissing(thrown)) return undefined;
    throw thrown;
  }
}

async function fromFile(host: Files, status: ContainerStatus): Promise<{ text: string; useLogs: boolean }> {
  const asked = status.annotations[containerNotes.terminationMessagePath] ?? "";
  const inside = asked === "" ? undefined : terminationPath(asked);
  const mount = status.mounts.find((m) => m.containerPath === inside);
  if (!mount) return { text: "", useLogs: true };
  try {
    const tail = await tailOf(host, mount.hostPath, fileLimit, "lstat");
    const text = tail ? decodeTail(tail.data) : "";
    return { text, useLogs: text === "" };
  } catch (thrown) {
    return { text: `Error on reading termination log ${mount.hostPath}: ${messageOf(thrown)}`, useLogs: false };
  }
}

async function fromLogs(host: Files, path: string): Promise<string> {
  try {
    const tail = path === "" ? undefined : await tailOf(host, path, logTail, "stat");
    if (!tail) throw new Error(`there is no log file at ${JSON.stringify(path)}`);
    return decodeTail(lastContent(tail.data, { maxLines: logLines, maxBytes: logLimit, cut: tail.cut }));
  } catch (thrown) {
    return `Error on reading termination message from logs: ${messageOf(thrown)}`;
  }
}

/**
 * The message of an exited container's status (runtime-contract.md section 3): the runtime's, joined by `: ` with what
 * the container left in its termination file, or, by policy and after an error, with the end of its log. Never
 * rejects: what cannot be read is said in the message. A container that has not exited has the runtime's message only.
 */
export async function terminationMessage(host: Files, status: ContainerStatus): Promise<string> {
  if (status.state !== ContainerState.CONTAINER_EXITED) return status.message;
  const policy = status.annotations[containerNotes.terminationMessagePolicy];
  const mayUseLogs = policy === "FallbackToLogsOnError" && status.exitCode !== 0 &&
    status.reason !== "ContainerCannotRun";
  const { text, useLogs } = await fromFile(host, status);
  const words = useLogs && mayUseLogs ? await fromLogs(host, status.logPath) : text;
  return [status.message, words].filter((part) => part !== "").join(": ");
}
