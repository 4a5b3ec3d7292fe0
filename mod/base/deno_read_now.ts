import { errnoOf, hostError, isMissing } from "./host_error.ts";

/** Errors that mean: no such thing here. ENODEV: the control group was removed; ENOTSUP: the kernel does without it. */
const absent = new Set(["ENODEV", "EOPNOTSUPP", "ENOTSUP", "ESRCH"]);

/** Whether a file of procfs or a control group is not there, or has gone while it was read. */
export function isAbsent(thrown: unknown): boolean {
  return isMissing(thrown) || absent.has(errnoOf(thrown));
}

/** What one read takes; kernel files are shorter, but for lists of many processes. */
const chunkBytes = 65_536;

/** Less than this from a read is all there is: the kernel ends one early only when the next record does not fit a page. */
const surelyWhole = 2048;

/**
 * Makes a reader of kernel files that reads at once (see Host.readTextNow); the buffer is shared by its reads. A system
 * call less for each file makes a fifth of what a scrape of many pods takes.
 */
export function makeNowReader(): (path: string) => string | undefined {
  let buffer: Uint8Array | undefined;
  const decoder = new TextDecoder();
  return (path) => {
    buffer ??= new Uint8Array(chunkBytes);
    try {
      using file = Deno.openSync(path);
      const first = file.readSync(buffer) ?? 0;
      if (first < surelyWhole) return decoder.decode(buffer.subarray(0, first));
      const parts = new TextDecoder();
      let text = parts.decode(buffer.subarray(0, first), { stream: true });
      for (;;) {
        const n = file.readSync(buffer) ?? 0;
        if (n === 0) return text + parts.decode();
        text += parts.decode(buffer.subarray(0, n), { stream: true });
      }
    } catch (thrown) {
      if (isAbsent(thrown)) return undefined;
      throw hostError("readTextNow", path, thrown);
    }
  };
}
