import { grpcCode, RuntimeError } from "./api.ts";

/** What Linux takes of one program's name (PATH_MAX) and of one argument (MAX_ARG_STRLEN), both with a zero at the end. */
const programBytes = 4095;
const argumentBytes = 128 * 1024 - 1;

/**
 * Throws InvalidArgument for a command that no kernel could ever start. It must not come to the runtime: runc with a
 * program's name of a megabyte waits without end for itself to tell how that failed, and with it every later exec in the
 * container, probes included (measured with runc 1.1.5).
 */
export function assertStartable(call: string, target: string | undefined, argv: readonly string[]): void {
  const encoder = new TextEncoder();
  for (const [i, text] of argv.entries()) {
    const limit = i === 0 ? programBytes : argumentBytes;
    // A character is three bytes at most: most texts need no count.
    if (text.length * 3 <= limit) continue;
    const { length } = encoder.encode(text);
    if (length <= limit) continue;
    const what = i === 0 ? "the program's name" : `argument ${i}`;
    throw new RuntimeError(
      call,
      grpcCode.InvalidArgument,
      `${what} has ${length} bytes, and Linux takes ${limit} at most; give long input by a file or standard input`,
      target === undefined ? {} : { target },
    );
  }
}
