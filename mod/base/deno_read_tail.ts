import { constants } from "node:fs";
import { open } from "node:fs/promises";
import { HostError } from "./host_error.ts";

/**
 * See Host.readTail. What is opened is looked at, not the name before it: nobody can put a link or a FIFO in its place
 * in between. Not waiting is for FIFOs and devices; files do not care.
 */
export async function readTail(path: string, bytes: number, options: { nofollow?: boolean } = {}): Promise<Uint8Array> {
  const flags = constants.O_RDONLY | constants.O_NONBLOCK | (options.nofollow ? constants.O_NOFOLLOW : 0);
  const file = await open(path, flags);
  try {
    const info = await file.stat();
    if (!info.isFile()) throw new HostError("readTail", path, "EINVAL", `readTail ${path}: it is no regular file`);
    const into = new Uint8Array(Math.min(bytes, info.size));
    const start = info.size - into.length;
    let filled = 0;
    while (filled < into.length) {
      const { bytesRead } = await file.read(into, filled, into.length - filled, start + filled);
      // It has become shorter meanwhile.
      if (bytesRead === 0) break;
      filled += bytesRead;
    }
    return into.subarray(0, filled);
  } finally {
    await file.close();
  }
}
