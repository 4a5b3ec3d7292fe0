import { abortedBy } from "./errors.ts";

/**
 * Writes the gzip of a file to `to`, which it makes (a file that is there is replaced) with the source's permission
 * bits. Works in pieces, about 2 ms of the main thread each, so that nothing else waits for it; a file that could not
 * be written to its end is removed.
 */
export async function gzipFile(from: string, to: string, signal?: AbortSignal): Promise<void> {
  if (signal?.aborted) throw abortedBy(signal);
  const source = await Deno.open(from);
  let target: Deno.FsFile;
  let bits: number;
  try {
    const { mode, isFile } = await source.stat();
    if (!isFile) throw Object.assign(new Error("is no regular file"), { code: "EINVAL" });
    bits = (mode ?? 0o600) & 0o777;
    target = await Deno.open(to, { write: true, create: true, truncate: true, mode: bits });
  } catch (thrown) {
    source.close();
    throw thrown;
  }
  try {
    // Both files are closed by their streams, however this ends.
    await source.readable.pipeThrough(new CompressionStream("gzip")).pipeTo(target.writable, signal ? { signal } : {});
    await Deno.chmod(to, bits);
  } catch (thrown) {
    // What went wrong first tells more than why the rest of it cannot be removed.
    await Deno.remove(to).catch(() => {});
    throw signal?.aborted ? abortedBy(signal) : thrown;
  }
}
