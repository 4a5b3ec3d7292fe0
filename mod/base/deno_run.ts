import { abortedBy } from "./errors.ts";
import type { CommandResult, Host } from "./host.ts";
import { hostError } from "./host_error.ts";

/** Bytes of output kept from each stream; a program that prints more is read to its end, but not kept. */
const keep = 4 * 2 ** 20;

async function collect(stream: ReadableStream<Uint8Array>): Promise<string> {
  const decoder = new TextDecoder();
  let text = "";
  let size = 0;
  for await (const chunk of stream) {
    if (size < keep) text += decoder.decode(chunk.subarray(0, keep - size), { stream: true });
    size += chunk.length;
  }
  return text + decoder.decode();
}

async function feed(stream: WritableStream<Uint8Array>, text: string): Promise<void> {
  const writer = stream.getWriter();
  try {
    await writer.write(new TextEncoder().encode(text));
    await writer.close();
  } catch (thrown) {
    // A program may end without reading its input; its exit code tells whether that was right.
    if (!(thrown instanceof Deno.errors.BrokenPipe)) throw thrown;
  }
}

/** See Host.run. */
export async function run(
  command: string,
  args: string[],
  options: NonNullable<Parameters<Host["run"]>[2]> = {},
): Promise<CommandResult> {
  const { stdin, env, signal } = options;
  if (signal?.aborted) throw abortedBy(signal);
  let child: Deno.ChildProcess;
  try {
    child = new Deno.Command(command, {
      args,
      ...(env ? { env } : {}),
      stdin: stdin === undefined ? "null" : "piped",
      stdout: "piped",
      stderr: "piped",
    }).spawn();
  } catch (thrown) {
    throw hostError("run", command, thrown);
  }
  const onAbort = () => {
    try {
      child.kill("SIGKILL");
    } catch (thrown) {
      if (!(thrown instanceof Deno.errors.NotFound || thrown instanceof TypeError)) throw thrown;
    }
  };
  signal?.addEventListener("abort", onAbort, { once: true });
  try {
    const [status, stdout, stderr] = await Promise.all([
      child.status,
      collect(child.stdout),
      collect(child.stderr),
      stdin === undefined ? undefined : feed(child.stdin, stdin),
    ]);
    if (signal?.aborted) throw abortedBy(signal);
    return { code: status.code, stdout, stderr };
  } catch (thrown) {
    throw hostError("run", command, thrown);
  } finally {
    signal?.removeEventListener("abort", onAbort);
  }
}
