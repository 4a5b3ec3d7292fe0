import { errnoOf, hostError, isMissing } from "./host_error.ts";

/** Errors that mean: no such thing here. ENODEV: the control group was removed; ENOTSUP: the kernel does without it. */
const absent = new Set(["ENODEV", "EOPNOTSUPP", "ENOTSUP", "ESRCH"]);

/** Whether a file of procfs or a control group is not there, or has gone while it was read. */
export function isAbsent(thrown: unknown): boolean {
  return isMissing(thrown) || absent.has(errnoOf(thrown));
}

/** What one read takes; kernel files are shorter, but for lists of many processes. */
const chunkBytes = 65_536;

/** Makes a reader of kernel files that reads at once (see Host.readTextNow); the buffer is shared by its reads. */
export function makeNowReader(): (path: string) => string | undefined {
  let buffer: Uint8Array | undefined;
  return (path) => {
    buffer ??= new Uint8Array(chunkBytes);
    try {
      using file = Deno.openSync(path);
      let text = "";
      const decoder = new TextDecoder();
      for (;;) {
        const n = file.readSync(buffer);
        if (n === null || n === 0) return text === "" ? text : text + decoder.decode();
        text += decoder.decode(buffer.subarray(0, n), { stream: true });
      }
    } catch (thrown) {
      if (isAbsent(thrown)) return undefined;
      throw hostError("readTextNow", path, thrown);
    }
  };
}
