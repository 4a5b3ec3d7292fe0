import { closeSync, openSync, readSync } from "node:fs";
import { asciiText } from "./ascii.ts";
import { isAbsent } from "./deno_read_now.ts";
import type { KeptFile } from "./host.ts";
import { errnoOf, hostError } from "./host_error.ts";

/** What one read takes; values and lists of groups are far shorter. */
const bufferBytes = 65_536;

/** Makes the opener of kernel files that are read again and again (see Host.keepOpen); they share a buffer. */
export function makeFileKeeper(): (path: string) => KeptFile | undefined {
  const buffer = new Uint8Array(bufferBytes);
  const decoder = new TextDecoder();
  return (path) => {
    let file: number;
    try {
      file = openSync(path, "r");
    } catch (thrown) {
      if (isAbsent(thrown)) return undefined;
      throw hostError("keepOpen", path, thrown);
    }
    let open = true;
    return {
      read() {
        try {
          // From its beginning: the kernel makes the text up anew.
          const n = readSync(file, buffer, 0, bufferBytes, 0);
          if (n >= bufferBytes) return undefined;
          const bytes = buffer.subarray(0, n);
          return asciiText(bytes) ?? decoder.decode(bytes);
        } catch (thrown) {
          if (isAbsent(thrown)) return undefined;
          // Deno closes descriptors of unix sockets twice at times, and so may have closed this one: it is no more ours.
          if (errnoOf(thrown) === "EBADF") {
            open = false;
            return undefined;
          }
          throw hostError("keepOpen", path, thrown);
        }
      },
      [Symbol.dispose]() {
        if (open) closeSync(file);
        open = false;
      },
    };
  };
}
