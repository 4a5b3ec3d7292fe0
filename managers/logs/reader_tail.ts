import type { OpenFile } from "../../mod/base/host.ts";

const newline = 0x0a;
const blockSize = 64 * 1024;

/**
 * Where the last `lines` lines of a file begin, found from its end. A last line without its end does not count, and
 * comes with them.
 */
export async function tailStart(file: OpenFile, lines: number): Promise<number> {
  const { size } = await file.info();
  const block = new Uint8Array(blockSize);
  let wanted = lines + 1;
  for (let right = size; right > 0;) {
    const left = Math.max(0, right - blockSize);
    const read = await file.read(block.subarray(0, right - left), left);
    for (let at = read; at > 0; wanted--) {
      at = block.lastIndexOf(newline, at - 1);
      if (at < 0) break;
      if (wanted === 1) return left + at + 1;
    }
    right = left;
  }
  return 0;
}
